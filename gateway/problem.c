#include "gateway/problem.h"

#include <stdarg.h>
#include <stdio.h>

void problem_set(struct problem *p, enum outcome what, const char *fmt, ...)
{
    va_list ap;

    p->outcome = what;
    va_start(ap, fmt);
    if (vsnprintf(p->detail, sizeof(p->detail), fmt, ap) < 0)
        p->detail[0] = '\0';
    va_end(ap);
}
