/*
 * What balancers remember of the methods of a reference, per endpoint.
 *
 * It hangs at the endpoints, so it lives exactly as long as they do: whatever a new list changes of a provider, its
 * turn, its calls and its times stay (refs.c takes endpoints over by identity).  Nothing is kept for balancers that ask
 * for nothing.  A worker has its own; memory is taken at the first call of a method at an endpoint and never again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct buf;
struct endpoint;
struct hash_ring;
struct ref;

enum {
    /* Names that come from outside (direct form) must not cost memory without end: those beyond share one place. */
    BALANCE_METHODS_MAX = 64,
    BALANCE_NO_SLOT = UINT16_MAX,
    BALANCE_WINDOW_PARTS = 6,
    BALANCE_PART_MS = 5000, /* 30 s in all, as in Dubbo */
};

/* One method at one endpoint. */
struct method_load {
    int64_t current;    /* roundrobin */
    uint32_t weight;    /* roundrobin: the one that `current` was made with */
    uint32_t in_flight; /* calls that were begun with balance_begin() */
    struct window_part {
        uint64_t number; /* time / BALANCE_PART_MS; other numbers' contents are old */
        uint64_t sum_us;
        uint32_t n;
    } parts[BALANCE_WINDOW_PARTS];
};

struct balance_state; /* of a reference */

/* The place of a method, from now on. */
unsigned balance_slot(struct ref *r, struct str method) __attribute__((nonnull(1))) MUST_CHECK;
/* Never NULL.  The next call for the same endpoint may move it. */
struct method_load *balance_load(struct endpoint *ep, unsigned slot) NONNULL MUST_CHECK;

void load_add_time(struct method_load *l, uint64_t now_ms, uint64_t us) NONNULL;
/* Mean time of the good answers of the last 30 s in µs; false when there was none. */
bool load_mean_us(const struct method_load *l, uint64_t now_ms, uint64_t *us) NONNULL MUST_CHECK;

/* The ring of the usable endpoints with so many nodes each: made at the first use and when the set of endpoints has
 * changed, else the same.  There must be one. */
struct hash_ring *balance_ring(struct ref *r, unsigned nodes) NONNULL MUST_CHECK;
/* Empty, for the duration of one choice. */
struct buf *balance_scratch(struct ref *r) NONNULL MUST_CHECK;

void balance_state_free(struct balance_state *s); /* NULL is fine */
