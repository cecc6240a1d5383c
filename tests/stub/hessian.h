/*
 * The little Hessian2 that the stub provider needs, written apart from codec/ on purpose: a mistake in one
 * does not hide in the other.  Reads values by skipping them, writes what JSON can say.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/str.h"

struct cursor {
    const uint8_t *p;
    const uint8_t *end;
    unsigned class_fields[64]; /* field counts of the class definitions seen */
    unsigned n_classes;
};

/* One value of any kind; false when the bytes do not hold one. */
bool hessian_skip(struct cursor *c, unsigned depth);
/* A string in one chunk or several, as UTF-8 into `out`; null gives an empty text. */
bool hessian_string(struct cursor *c, struct buf *out);
/* Number of elements of the list that starts here (fixed-length forms); leaves the cursor at the first. */
bool hessian_list(struct cursor *c, size_t *n);
bool hessian_long(struct cursor *c, int64_t *out);

void hessian_put_string(struct buf *out, struct str utf8);
void hessian_put_int(struct buf *out, int64_t v);
void hessian_put_long(struct buf *out, int64_t v);
void hessian_put_json(struct buf *out, const json_t *v);
/* java.math.BigDecimal as Java writes it: class definition and object; `n_classes` counts definitions. */
void hessian_put_decimal(struct buf *out, const char *digits, unsigned *n_classes);
