/*
 * UTF-8 as JSON and HTTP have it, and CESU-8 as Hessian has it: each UTF-16 unit on its own, so that a
 * character beyond U+FFFF is two groups of three bytes (docs/HESSIAN2.md section 3).
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Length of the prefix that is ASCII. */
size_t utf_ascii_run(const uint8_t *p, size_t n);
/* Length of the prefix that JSON copies as it is: ASCII without '"', '\\' and control bytes. */
size_t utf_plain_run(const uint8_t *p, size_t n);

/* Bytes of the well-formed UTF-8 character at p (n > 0), 0 when it is none. */
size_t utf_char_len(const uint8_t *p, size_t n);
/* Its code point; the length must come from utf_char_len. */
uint32_t utf_code_point(const uint8_t *p, size_t len);
void utf_add_code_point(struct buf *out, uint32_t cp);

bool utf_valid(struct str s);
/* UTF-16 units of valid UTF-8. */
size_t utf_units(struct str s);
/* Appends valid UTF-8 as CESU-8. */
void utf_add_cesu(struct buf *out, struct str s);
/* The longest prefix of at most `max` bytes that does not end inside a character. */
struct str utf_cut(struct str s, size_t max);

#define UTF_REPLACEMENT "\xef\xbf\xbd"
