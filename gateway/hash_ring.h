/*
 * The ring of Dubbo's ConsistentHashLoadBalance (docs/REGISTRY.md section 8): the same points and the same provider for a
 * key, so that calls of the gateway and of Dubbo consumers meet at the same provider.
 *
 * A ring over all providers serves every part of them: whoever may not take a call is passed by, which is where a ring
 * without him would lead.  Worker thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct endpoint;

enum {
    RING_NODES_DEFAULT = 160,
    RING_NODES_MIN = 4,        /* fewer have no point at all: each MD5 makes four */
    RING_NODES_MAX = 1600,     /* a provider URL may say anything */
    RING_POINTS_MAX = 1 << 21, /* of a very long list each provider gets fewer */
};

struct ring_point {
    uint32_t hash;
    uint32_t index; /* of the endpoint */
};

struct hash_ring {
    unsigned nodes;
    uint64_t version; /* of the set of endpoints it was made of (struct ref) */
    size_t n_endpoints;
    size_t n;
    uint64_t *seen; /* n_endpoints bits: scratch of a walk */
    struct ring_point points[];
};

/* At least one endpoint. */
struct hash_ring *hash_ring_new(struct endpoint *const *endpoints, size_t n,
                                unsigned nodes) NONNULL MUST_CHECK;
void hash_ring_free(struct hash_ring *r); /* NULL is fine */

uint32_t hash_ring_key(struct str key) MUST_CHECK;

/* From a key's point on, every endpoint once. */
struct ring_walk {
    struct hash_ring *ring;
    size_t at;     /* of the next point */
    size_t passed; /* points */
};
struct ring_walk hash_ring_walk(struct hash_ring *r, uint32_t hash) NONNULL;
/* The index of the next endpoint; false when all have been. */
bool ring_walk_next(struct ring_walk *w, size_t *index) NONNULL MUST_CHECK;
