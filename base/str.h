/*
 * Text that somebody else owns: pointer and length, not terminated, never NULL-checked by readers
 * (an empty one has n == 0 and may have p == NULL).
 *
 * Threads: any; nothing here keeps state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
/* The same as an initialiser of a static table. */
#define STR_INIT(literal)               \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }
#define STR_NONE   ((struct str){NULL, 0})
#define STR_FMT    "%.*s"
#define STR_ARG(s) ((int)(s).n), ((s).n != 0 ? (s).p : "")

struct str str_from(const char *cstring);
struct str str_sub(struct str s, size_t from, size_t to);

bool str_eq(struct str a, struct str b);
/* Order of bytes: negative, 0, positive.  A prefix comes before what it begins. */
int str_cmp(struct str a, struct str b);
bool str_eq_nocase(struct str a, struct str b);
bool str_is(struct str a, const char *cstring) __attribute__((nonnull(2)));
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* Position of the first `c`, or s.n when there is none. */
size_t str_find(struct str s, char c);
/* Does `part` occur in `s`? */
bool str_contains(struct str s, struct str part);
struct str str_trim(struct str s);

/* Everything before the first `sep`; `rest` gets what follows it.  Without `sep` the whole text is
 * returned, rest->p is NULL and rest->n 0. */
struct str str_cut(struct str s, char sep, struct str *rest) __attribute__((nonnull(3)));

/* Whole decimal numbers with an optional '-', nothing around them; false also outside [lo, hi]. */
bool str_to_i64(struct str s, int64_t lo, int64_t hi, int64_t *out)
    __attribute__((nonnull(4))) MUST_CHECK;
bool str_to_u64(struct str s, uint64_t hi, uint64_t *out) __attribute__((nonnull(3))) MUST_CHECK;

/* Copies what fits into out[cap] and ends it with a 0; false when something did not fit. */
bool str_copy(struct str s, char *out, size_t cap) __attribute__((nonnull(2)));

/* '*' in `pattern` stands for any number of characters, also none. */
bool str_glob(struct str pattern, struct str s);

/* Damerau-Levenshtein distance without regard to ASCII case; SIZE_MAX for texts over 64 bytes. */
size_t str_distance(struct str a, struct str b);
