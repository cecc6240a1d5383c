/*
 * Serialization ids: one row per id whose error texts we can read (docs/PROTOCOL.md sections 2 and 6).  Only
 * Hessian2 is spoken in full; a default 3.2 provider says "no" in fastjson2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { SERIAL_HESSIAN2 = 2, SERIAL_FASTJSON = 6, SERIAL_FASTJSON2 = 23 };

struct serial {
    const char *name;
    /* Appends the one string that the body of a frame holds, as UTF-8; false when it holds none. */
    bool (*decode_text)(const uint8_t *p, size_t n, struct buf *out);
};

/* NULL for an id without a row. */
const struct serial *serial_find(unsigned id);

bool serial_hessian2_text(const uint8_t *p, size_t n, struct buf *out) __attribute__((nonnull(3)));
bool serial_fastjson_text(const uint8_t *p, size_t n, struct buf *out) __attribute__((nonnull(3)));
bool serial_fastjson2_text(const uint8_t *p, size_t n, struct buf *out) __attribute__((nonnull(3)));
