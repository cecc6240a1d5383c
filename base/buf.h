/*
 * Growable byte buffer with a hard limit.
 *
 * A failed append leaves the buffer as it was and sets `failed`; later appends fail too, so a writer
 * may append many times and test once at the end.  Running out of memory counts as reaching the limit,
 * because the size comes from outside (docs/HACKING.md, errors).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct buf {
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t limit; /* len never exceeds this */
    bool failed;  /* limit reached or no memory; sticky */
};

void buf_init(struct buf *b, size_t limit) NONNULL;
void buf_free(struct buf *b) NONNULL;

/* The slow part of buf_reserve: more memory, or none. */
uint8_t *buf_grow(struct buf *b, size_t n) NONNULL MUST_CHECK;

/* Room for `n` more bytes; NULL when that would pass the limit. */
static inline MUST_CHECK uint8_t *buf_reserve(struct buf *b, size_t n)
{
    if (LIKELY(!b->failed && n <= b->cap - b->len && b->data != NULL))
        return b->data + b->len;
    return buf_grow(b, n);
}

/* Makes `n` reserved and written bytes part of the buffer. */
static inline void buf_commit(struct buf *b, size_t n)
{
    b->len += n;
}

void buf_add(struct buf *b, const void *p, size_t n) NONNULL;
void buf_add_str(struct buf *b, struct str s) __attribute__((nonnull(1)));
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3) __attribute__((nonnull(1)));
static inline void buf_add_u8(struct buf *b, uint8_t v)
{
    uint8_t *to = buf_reserve(b, 1);

    if (to == NULL)
        return;
    *to = v;
    b->len++;
}

void buf_add_be16(struct buf *b, uint16_t v) NONNULL;
void buf_add_be32(struct buf *b, uint32_t v) NONNULL;
void buf_add_be64(struct buf *b, uint64_t v) NONNULL;

/* Bytes [at, at + 4) must exist already. */
void buf_patch_be32(struct buf *b, size_t at, uint32_t v) NONNULL;
/* Drops everything from `len` on and clears `failed`; keeps the memory. */
void buf_truncate(struct buf *b, size_t len) NONNULL;
/* The first `n` bytes go, the rest moves to the front. */
void buf_consume(struct buf *b, size_t n) NONNULL;
/* Gives memory above `keep` bytes back when the buffer is empty. */
void buf_shrink(struct buf *b, size_t keep) NONNULL;

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){(const char *)b->data, b->len};
}

static inline uint16_t get_be16(const uint8_t *p)
{
    return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t get_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t get_be64(const uint8_t *p)
{
    return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}
