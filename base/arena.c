#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

enum { FIRST_BLOCK = 1024, LARGEST_BLOCK = 65536, ALIGNMENT = 16 };

struct arena_block {
    struct arena_block *older;
    size_t cap;
    size_t len;
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

static void free_older(struct arena_block *b)
{
    while (b != NULL) {
        struct arena_block *older = b->older;

        free(b);
        b = older;
    }
}

void arena_free(struct arena *a)
{
    free_older(a->blocks);
    *a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
    if (a->blocks != NULL) {
        free_older(a->blocks->older);
        a->blocks->older = NULL;
        a->blocks->len = 0;
    }
    a->used = 0;
}

static struct arena_block *add_block(struct arena *a, size_t need)
{
    size_t cap = a->blocks != NULL ? a->blocks->cap * 2 : FIRST_BLOCK;
    struct arena_block *b = NULL;

    if (cap > LARGEST_BLOCK)
        cap = LARGEST_BLOCK;
    if (cap < need)
        cap = need;
    b = xrealloc(NULL, sizeof(*b) + cap);
    *b = (struct arena_block){.older = a->blocks, .cap = cap};
    a->blocks = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    size_t rounded = (n + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct arena_block *b = a->blocks;
    void *p = NULL;

    ASSERT(rounded >= n);

    if (b == NULL || rounded > b->cap - b->len)
        b = add_block(a, rounded);
    p = b->bytes + b->len;
    b->len += rounded;
    a->used += rounded;
    return memset(p, 0, rounded);
}

struct str arena_str(struct arena *a, struct str s)
{
    return (struct str){arena_cstr(a, s), s.n};
}

char *arena_cstr(struct arena *a, struct str s)
{
    char *p = arena_alloc(a, s.n + 1);

    if (s.n != 0)
        memcpy(p, s.p, s.n);
    return p;
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    int n = 0;
    char *p = NULL;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    ASSERT(n >= 0);
    p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return (struct str){p, (size_t)n};
}
