/*
 * A sentence about what went wrong, for a person.  Fixed size, so that telling about an error
 * never allocates and never fails; what does not fit is cut.
 */
#pragma once

#include "base/compiler.h"

struct err {
    char text[256]; /* empty = no error; starts lower case, no full stop */
};

void err_set(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3) NONNULL;
