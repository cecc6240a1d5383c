/*
 * A sentence about what went wrong, for a person.  Fixed size, so that telling about an error
 * never allocates and never fails.
 */
#pragma once

#include <stdio.h>

#include "base/compiler.h"

struct err {
    char text[256]; /* empty = no error; starts lower case, no full stop */
};

#define err_set(e, ...)                                              \
    do {                                                             \
        if (snprintf((e)->text, sizeof((e)->text), __VA_ARGS__) < 0) \
            (e)->text[0] = '\0';                                     \
    } while (0)
