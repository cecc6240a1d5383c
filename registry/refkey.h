/*
 * A reference: interface + version + group.  That is the whole key: timeouts, balancers and all else
 * never make a second subscription (docs/REGISTRY.md).
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum { REFKEY_INTERFACE_MAX = 255, REFKEY_PART_MAX = 128, REFKEY_TEXT_MAX = 640 };

struct refkey {
    struct str interface;
    struct str version; /* empty = none; "0.0.0" is read as none */
    struct str group;   /* empty = none */
};

/* Checks every byte (docs/ROBUSTNESS.md section 3.3 rule 5) and folds "0.0.0"; the result points
 * into the texts given.  Nothing else may build a registry path. */
bool refkey_make(struct str interface, struct str version, struct str group, struct refkey *out,
                 struct err *e) __attribute__((nonnull(4, 5))) MUST_CHECK;

/* INTERFACE[:VERSION][@GROUP] */
bool refkey_parse(struct str text, struct refkey *out, struct err *e)
    __attribute__((nonnull(2, 3))) MUST_CHECK;
void refkey_print(const struct refkey *k, struct buf *out) NONNULL;
bool refkey_eq(const struct refkey *a, const struct refkey *b) NONNULL;
