#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

void err_set(struct err *e, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (vsnprintf(e->text, sizeof(e->text), fmt, ap) < 0)
        e->text[0] = '\0';
    va_end(ap);
}
