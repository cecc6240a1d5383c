/*
 * Writing Hessian2, shortest forms (docs/HESSIAN2.md sections 2 to 5 and 10).  No references are written.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

void hs2_put_null(struct buf *out) NONNULL;
void hs2_put_bool(struct buf *out, bool v) NONNULL;
void hs2_put_int(struct buf *out, int32_t v) NONNULL;
void hs2_put_long(struct buf *out, int64_t v) NONNULL;
void hs2_put_double(struct buf *out, double v) NONNULL;
void hs2_put_date(struct buf *out, int64_t ms) NONNULL;
void hs2_put_binary(struct buf *out, const uint8_t *p, size_t n) __attribute__((nonnull(1)));
/* Valid UTF-8; written as CESU-8, in chunks when it is long. */
void hs2_put_string(struct buf *out, struct str s) __attribute__((nonnull(1)));
/* The same for text known to be ASCII. */
void hs2_put_ascii(struct buf *out, struct str s) __attribute__((nonnull(1)));

/* An untyped list of known length. */
void hs2_put_list(struct buf *out, size_t n) NONNULL;
/* An untyped list whose length is patched in later: the wide form (decision 17).  Returns the place. */
size_t hs2_put_open_list(struct buf *out) NONNULL;
void hs2_patch_list(struct buf *out, size_t place, size_t n) NONNULL;
/* A typed list of known length with the type as text. */
void hs2_put_typed_list(struct buf *out, struct str type, size_t n) __attribute__((nonnull(1)));

enum { HS2_MAP_BEGIN = 'H', HS2_MAP_END = 'Z' };
/* Defines a class and begins its object; `index` is the number of definitions before it in the message. */
void hs2_put_object(struct buf *out, struct str class, const char *const *fields, size_t n,
                    unsigned index) __attribute__((nonnull(1, 3)));
void hs2_put_object_again(struct buf *out, unsigned index) NONNULL;
