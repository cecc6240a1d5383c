/*
 * One result of several: lists are joined, objects united (docs/OPERATIONS.md section 2.8).  Pure functions.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"

enum merge_result {
    MERGE_OK = 0,
    MERGE_NULL,     /* all were null: nothing is written */
    MERGE_MISMATCH, /* neither all lists nor all objects */
};

/*
 * Appends the union of `n` JSON texts, which must be valid.  Null ones do not count; a single other one is taken as it
 * is.  Of members of the same name the last one counts.  Names are compared as they are written, so all texts must come
 * from one writer.  `out` may be at its limit afterwards (failed).
 */
enum merge_result merge_json(const struct str *texts, size_t n, struct arena *a,
                             struct buf *out) NONNULL MUST_CHECK;
