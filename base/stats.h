/*
 * Counters and latency histograms with one writing thread and any number of readers.
 *
 * The writer pays a plain load and store, no locked instruction; readers may be one step behind,
 * never torn.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

struct counter {
    _Atomic uint64_t n;
};

static inline void counter_add(struct counter *c, uint64_t by)
{
    uint64_t n = atomic_load_explicit(&c->n, memory_order_relaxed);

    atomic_store_explicit(&c->n, n + by, memory_order_relaxed);
}

static inline void counter_set(struct counter *c, uint64_t to)
{
    atomic_store_explicit(&c->n, to, memory_order_relaxed);
}

static inline uint64_t counter_get(const struct counter *c)
{
    return atomic_load_explicit(&c->n, memory_order_relaxed);
}

/* Bounds of docs/OPERATIONS.md section 5.1, in microseconds; the last bucket has no bound. */
enum { HIST_BUCKETS = 15 };
extern const uint64_t hist_bounds_us[HIST_BUCKETS - 1];

struct hist {
    struct counter bucket[HIST_BUCKETS];
    struct counter sum_us;
};

void hist_add(struct hist *h, uint64_t us) NONNULL;
/* Adds what `from` holds to `to`, which belongs to the calling thread. */
void hist_merge(struct hist *to, const struct hist *from) NONNULL;
uint64_t hist_count(const struct hist *h) NONNULL;
