#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

enum { BUF_FIRST_CAP = 256 };

void buf_init(struct buf *b, size_t limit)
{
    *b = (struct buf){.limit = limit};
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.limit = b->limit};
}

uint8_t *buf_grow(struct buf *b, size_t n)
{
    if (b->failed || b->len > b->limit || n > b->limit - b->len) {
        b->failed = true;
        return NULL;
    }

    size_t cap = b->cap != 0 ? b->cap : BUF_FIRST_CAP;
    uint8_t *data = NULL;

    if (cap > b->limit)
        cap = b->limit;
    while (cap < b->len + n)
        cap = cap > b->limit / 2 ? b->limit : cap * 2;
    data = realloc(b->data, cap != 0 ? cap : 1); /* never the realloc that frees */
    if (data == NULL) {
        b->failed = true;
        return NULL;
    }
    b->data = data;
    b->cap = cap;
    return b->data + b->len;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    uint8_t *to = buf_reserve(b, n);

    if (to == NULL)
        return;
    memcpy(to, p, n);
    b->len += n;
}

void buf_add_str(struct buf *b, struct str s)
{
    if (s.n != 0)
        buf_add(b, s.p, s.n);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    int n = 0;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n < sizeof(small)) {
        buf_add(b, small, (size_t)n);
        return;
    }

    uint8_t *to = buf_reserve(b, (size_t)n + 1); /* vsnprintf writes its NUL; it is not committed */

    if (to == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

void buf_add_be16(struct buf *b, uint16_t v)
{
    const uint8_t p[2] = {(uint8_t)(v >> 8), (uint8_t)v};

    buf_add(b, p, sizeof(p));
}

void buf_add_be32(struct buf *b, uint32_t v)
{
    const uint8_t p[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

    buf_add(b, p, sizeof(p));
}

void buf_add_be64(struct buf *b, uint64_t v)
{
    buf_add_be32(b, (uint32_t)(v >> 32));
    buf_add_be32(b, (uint32_t)v);
}

void buf_patch_be32(struct buf *b, size_t at, uint32_t v)
{
    ASSERT(at <= b->len && b->len - at >= 4);

    b->data[at] = (uint8_t)(v >> 24);
    b->data[at + 1] = (uint8_t)(v >> 16);
    b->data[at + 2] = (uint8_t)(v >> 8);
    b->data[at + 3] = (uint8_t)v;
}

void buf_truncate(struct buf *b, size_t len)
{
    ASSERT(len <= b->len);

    b->len = len;
    b->failed = false;
}

void buf_consume(struct buf *b, size_t n)
{
    ASSERT(n <= b->len);

    b->len -= n;
    if (b->len != 0 && n != 0)
        memmove(b->data, b->data + n, b->len);
}

void buf_shrink(struct buf *b, size_t keep)
{
    if (b->len != 0 || b->cap <= keep)
        return;
    buf_free(b);
}
