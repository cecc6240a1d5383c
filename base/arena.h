/*
 * Objects that die together: one call, one directory, one configuration.
 *
 * Memory is taken in blocks that double up to 64 KiB and given back all at once.  An allocation
 * that fails aborts: callers check every size from outside before they come here.
 * Threads: one owner at a time.
 */
#pragma once

#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes handed out, for memory figures */
};

void arena_init(struct arena *a) NONNULL;
void arena_free(struct arena *a) NONNULL;
/* Forgets the objects but keeps the first block, for reuse without malloc. */
void arena_reset(struct arena *a) NONNULL;

/* Zeroed, aligned for any type, never NULL. */
void *arena_alloc(struct arena *a, size_t n) NONNULL MUST_CHECK;
/* A copy with a NUL behind it (not counted in n). */
struct str arena_str(struct arena *a, struct str s) __attribute__((nonnull(1))) MUST_CHECK;
/* The same as a C string. */
char *arena_cstr(struct arena *a, struct str s) __attribute__((nonnull(1))) MUST_CHECK;
struct str arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((nonnull(1))) MUST_CHECK;
