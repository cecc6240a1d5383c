/*
 * Decimal numbers as texts: digits and a power of ten, compared without loss.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* sign * 0.DIGITS * 10^exponent with neither leading nor trailing zeros; zero has n == 0. */
struct decimal {
    bool negative;
    const char *text; /* the token: digits are picked from it */
    size_t first;     /* position of the first significant digit */
    size_t last;      /* of the last one */
    size_t n;         /* significant digits */
    int64_t exponent;
    bool whole; /* no fraction is left */
};

/* `s` must be a number token of JSON; false when the exponent is absurd. */
bool decimal_read(struct str s, struct decimal *out) __attribute__((nonnull(2))) MUST_CHECK;
bool decimal_equal(const struct decimal *a, const struct decimal *b) NONNULL;
/* The value, when it is a whole number that fits. */
bool decimal_to_i64(const struct decimal *d, int64_t *out) NONNULL MUST_CHECK;
