/*
 * YAML text as nodes with line and column, through libyaml's events: comments, raw scalars, no guessed
 * types, no anchors (docs: dubbogate.yaml.5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct config_errors;

enum yaml_kind { YAML_SCALAR, YAML_MAP, YAML_LIST };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line;
    unsigned column;
    struct str text; /* scalar: after ${NAME} was filled in */
    bool quoted;
    struct yaml_node **keys;   /* map: scalars */
    struct yaml_node **values; /* map and list */
    size_t n;
    size_t cap;
};

/* NULL with errors.  The nodes live in the arena. */
struct yaml_node *yaml_load(struct str text, struct arena *a, struct config_errors *errs)
    __attribute__((nonnull(2, 3))) MUST_CHECK;
/* The value of that key; NULL when it is not there. */
struct yaml_node *yaml_find(const struct yaml_node *map, struct str key)
    __attribute__((nonnull(1)));
