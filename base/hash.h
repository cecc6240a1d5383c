/*
 * Hash tables for keys that come from outside: uthash with a seeded hash, so that nobody can choose
 * keys that collide.  Include this header instead of <uthash.h>.
 *
 * hash_seed() is called once, before the first thread starts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/fatal.h"

void hash_seed(uint64_t seed);
/* A seed nobody can guess. */
uint64_t hash_random_seed(void);
uint64_t hash_bytes(const void *p, size_t n);

#define HASH_FUNCTION(key, len, hashv)                        \
    do {                                                      \
        (hashv) = (unsigned)hash_bytes((key), (size_t)(len)); \
    } while (0)
#define uthash_fatal(msg) fatal("hash table: %s", msg)

/* uthash is written for looser flags than ours. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <uthash.h>
#pragma GCC diagnostic pop
