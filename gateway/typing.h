/*
 * Arguments by what the provider published of its methods: types that the caller did not give, and the types inside
 * those that he gave (docs/REGISTRY.md section 7.4).  Given types always win.
 *
 * Threads: the worker's.
 */
#pragma once

#include <stdbool.h>

#include "registry/definition.h"
#include "gateway/bind.h"
#include "gateway/problem.h"

enum typing {
    TYPING_NONE,    /* nothing is known of this method: the arguments stay as they are */
    TYPING_DONE,    /* every argument has its type */
    TYPING_REFUSED, /* the problem is set: 400 with the candidates */
};

/* The first of the definitions that knows the method so decides; `d` NULL = nothing is known.  `returns_float` is set
 * with TYPING_DONE. */
enum typing typing_apply(struct definitions *d, struct str method, struct bound *b,
                         bool *returns_float, struct problem *p)
    __attribute__((nonnull(3, 4, 5))) MUST_CHECK;

/* Could definitions change how these arguments are sent?  Not those of plain types. */
bool typing_matters(const struct bound *b) NONNULL;
