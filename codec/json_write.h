/*
 * JSON text: strings with their escapes.  Structure is written by the caller.
 *
 * Pure functions; any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* The text in quotes; bytes that are no UTF-8 become U+FFFD. */
void json_add_string(struct buf *out, struct str s) __attribute__((nonnull(1)));
/* Without the quotes. */
void json_add_escaped(struct buf *out, struct str s) __attribute__((nonnull(1)));
/* One character that cannot be copied as it is: '"', '\\', or a control byte. */
void json_add_special(struct buf *out, uint8_t c) NONNULL;
