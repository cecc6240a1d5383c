/*
 * Which of several methods of one name a call without types means (docs/REGISTRY.md section 7.4): each argument is
 * scored against each type, a method with an argument that cannot be is out, the highest sum wins, and two of
 * them are an error, never "the first".
 *
 * Pure functions; any thread; no allocation.
 */
#pragma once

#include <stddef.h>

#include "codec/json_args.h"
#include "gateway/signature.h"

enum overload_result {
    OVERLOAD_OK = 0,
    OVERLOAD_ARITY,     /* none takes so many arguments */
    OVERLOAD_NO_FIT,    /* several do, and the arguments fit none of them */
    OVERLOAD_AMBIGUOUS, /* the arguments fit several equally well */
};

/* `v`: the `n` overloads of one method.  An argument with a type only fits a parameter of that type.  The JSON of the
 * arguments has been checked or is found broken later: what is no JSON fits nothing here. */
enum overload_result overload_choose(const struct signature *v, size_t n, const struct arg *args,
                                     size_t n_args, const struct signature **out)
    __attribute__((nonnull(1, 5))) MUST_CHECK;

/* 0 = impossible; docs/REGISTRY.md section 7.4 has the table.  In tenths, for the share of a POJO's members. */
unsigned overload_score(const struct jtype *type, struct str json) __attribute__((nonnull(1)));
