/*
 * Numbers as JSON text.
 *
 * Doubles get the shortest text that parses back to the same bits, always with '.' or 'e', as Java
 * prints them (docs/JSON.md parts B1 and D).  Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

void number_add_i64(struct buf *out, int64_t v);
/* Finite values only. */
void number_add_double(struct buf *out, double v);
void number_add_float(struct buf *out, float v);

/* Is the text a number token of JSON (RFC 8259 section 6)? */
bool number_is_json(struct str s);
/* 32-bit big-endian words, most significant first, as decimal digits; at most 4096 words. */
bool number_add_big(struct buf *out, const uint32_t *words, size_t n, bool negative) MUST_CHECK;
