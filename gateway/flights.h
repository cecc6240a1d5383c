/*
 * The requests in flight on one connection, found by their id.
 *
 * slot = id & (n_slots - 1): ids rise by one, so the table is dense and finding one is a single load.  It
 * doubles when it is half full and never shrinks.  Belongs to its connection; worker thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gateway/conn.h"

struct flights {
    struct flight **slots;
    size_t n_slots;
    unsigned n;
    uint64_t next_id;
};

void flights_init(struct flights *t, uint64_t first_id) NONNULL;
void flights_free(struct flights *t) NONNULL;
/* Gives it the next free id. */
void flights_add(struct flights *t, struct flight *f) NONNULL;

static inline struct flight *flights_find(const struct flights *t, uint64_t id)
{
    struct flight *f = t->slots[id & (t->n_slots - 1)];

    return f != NULL && f->id == id ? f : NULL;
}

static inline void flights_remove(struct flights *t, const struct flight *f)
{
    t->slots[f->id & (t->n_slots - 1)] = NULL;
    t->n--;
}
