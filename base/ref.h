/*
 * Reference count for immutable objects that several threads hold.
 *
 * The object is built by one thread with the count 1, published by mail, and never changed again.
 * The last put frees it, in whichever thread that happens.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/fatal.h"

struct ref_count {
    atomic_uint n;
};

static inline void ref_init(struct ref_count *r)
{
    atomic_init(&r->n, 1U);
}

static inline void ref_get(struct ref_count *r)
{
    unsigned before = atomic_fetch_add_explicit(&r->n, 1U, memory_order_relaxed);

    ASSERT(before != 0 && before < 1U << 30);
}

/* True for the last holder, who then frees the object. */
static inline bool ref_put(struct ref_count *r) MUST_CHECK;
static inline bool ref_put(struct ref_count *r)
{
    unsigned before = atomic_fetch_sub_explicit(&r->n, 1U, memory_order_acq_rel);

    ASSERT(before != 0);
    return before == 1;
}

/*
 * A pointer in such an object that is set later, once, by whoever needs it first: what it points to is made of the
 * object and is the same whoever makes it.  Freed by the last holder of the object.
 */
struct ref_late {
    _Atomic(void *) p;
};

static inline void *ref_late_get(struct ref_late *l)
{
    return atomic_load_explicit(&l->p, memory_order_acquire);
}

/* The one that stands: `mine`, or that of somebody faster. */
static inline void *ref_late_set(struct ref_late *l, void *mine) MUST_CHECK;
static inline void *ref_late_set(struct ref_late *l, void *mine)
{
    void *there = NULL;

    return atomic_compare_exchange_strong(&l->p, &there, mine) ? mine : there;
}
