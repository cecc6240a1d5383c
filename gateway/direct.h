/*
 * The direct form: POST {prefix}/{interface}/{method}?version=&group=&types=&timeout= (docs/OPERATIONS.md
 * section 2.3).  Off until it is enabled with an allow list; deny wins.
 *
 * Threads: the worker's.  Memory: the arena handed in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "codec/jtype.h"
#include "registry/refkey.h"
#include "gateway/problem.h"
#include "gateway/request.h"
#include "gateway/settings.h"

struct direct_match {
    struct refkey key;
    struct str method;
    const struct service *service;   /* configured with that key; NULL = none */
    const struct method *method_def; /* NULL = not listed */
    const struct jtype *types;
    size_t n_types;
    const struct policy *policy;
    struct str timeout; /* ?timeout=; p == NULL: not given */
};

enum direct_result {
    DIRECT_FOUND = 0,
    DIRECT_NONE,    /* not of this form, or the form is off: go on with 404 */
    DIRECT_OPTIONS, /* 204 with p->allow */
    DIRECT_REFUSED, /* p says why */
};

enum direct_result direct_match(const struct settings *s, const struct request *r, struct arena *a,
                                struct direct_match *m, struct problem *p) NONNULL MUST_CHECK;
