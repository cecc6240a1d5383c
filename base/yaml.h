/*
 * YAML text as nodes with line and column, through libyaml's events: comments, raw scalars, no guessed
 * types, no anchors.  For the configuration, and for the rules that operators publish in a registry.
 *
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum yaml_kind { YAML_SCALAR, YAML_MAP, YAML_LIST };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line;
    unsigned column;
    struct str text; /* scalar; after ${NAME} was filled in, with yaml_opts.environment */
    bool quoted;
    struct yaml_node **keys;   /* map: scalars */
    struct yaml_node **values; /* map and list */
    size_t n;
    size_t cap;
};

struct yaml_opts {
    bool environment; /* ${NAME} and ${NAME:-default} stand for variables, $$ for a dollar sign */
    /* Told about every error; line and column from 1, 0 = not at a place. */
    void (*on_error)(void *ctx, unsigned line, unsigned column, const char *text);
    void *ctx;
};

/* NULL with at least one error.  The nodes live in the arena. */
struct yaml_node *yaml_load(struct str text, struct arena *a, const struct yaml_opts *opts)
    __attribute__((nonnull(2, 3))) MUST_CHECK;
/* The same for texts that need one sentence when they are bad. */
struct yaml_node *yaml_load_plain(struct str text, struct arena *a, struct err *e)
    __attribute__((nonnull(2, 3))) MUST_CHECK;
/* The value of that key; NULL when it is not there. */
struct yaml_node *yaml_find(const struct yaml_node *map, struct str key)
    __attribute__((nonnull(1)));
/* The same for scalars: empty when there is none. */
struct str yaml_text(const struct yaml_node *map, struct str key) __attribute__((nonnull(1)));
