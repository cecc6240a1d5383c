/*
 * Base64, RFC 4648: standard alphabet out; standard or URL alphabet in, padding optional.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

void base64_add(struct buf *out, const uint8_t *p, size_t n);
/* Appends the bytes; false (and nothing appended) when the text is no Base64. */
bool base64_decode(struct str text, struct buf *out) __attribute__((nonnull(2))) MUST_CHECK;
