/*
 * What went wrong with one request, with the detail for the client.  Fixed size: telling about an error
 * never allocates.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "gateway/outcome.h"

struct problem {
    enum outcome outcome;
    char detail[512];      /* valid UTF-8, one line */
    char source[128];      /* "path.id", "body" …: member errors[0].source; "" = none */
    char pointer[128];     /* JSON pointer inside the source; "" = none */
    unsigned line, column; /* of a JSON syntax error; 0 = none */
    char allow[64];        /* 405: value of Allow */
    char candidates[512];  /* methods that could be meant, one a line; "" = none */
    /* only with OUTCOME_PROVIDER_EXCEPTION and mapped exceptions */
    uint16_t mapped_status; /* 0 = the outcome's own */
    char mapped_code[64];   /* "" = the outcome's own */
    char exception_class[256];
    char exception_message[520];
    char business_code[64];
};

/* No problem: every text is empty.  Its kilobytes stay as they are. */
static inline void problem_clear(struct problem *p)
{
    p->outcome = OUTCOME_OK;
    p->detail[0] = p->source[0] = p->pointer[0] = p->allow[0] = p->candidates[0] = '\0';
    p->line = p->column = 0;
    p->mapped_status = 0;
    p->mapped_code[0] = p->exception_class[0] = p->exception_message[0] = '\0';
    p->business_code[0] = '\0';
}

void problem_set(struct problem *p, enum outcome what, const char *fmt, ...) PRINTF_LIKE(3, 4)
    __attribute__((nonnull(1, 3)));
