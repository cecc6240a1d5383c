#include "gateway/flights.h"

#include <stdlib.h>

#include "base/fatal.h"

enum { SLOTS_FIRST = 64 };

void flights_init(struct flights *t, uint64_t first_id)
{
    *t = (struct flights){.n_slots = SLOTS_FIRST, .next_id = first_id};
    t->slots = xcalloc(t->n_slots, sizeof(struct flight *));
}

void flights_free(struct flights *t)
{
    free(t->slots);
}

static void grow(struct flights *t)
{
    size_t n = t->n_slots * 2;
    struct flight **bigger = xcalloc(n, sizeof(struct flight *));

    /* ids in use differ in the low bits of the old table, so they do in the new one */
    for (size_t i = 0; i < t->n_slots; i++) {
        if (t->slots[i] != NULL)
            bigger[t->slots[i]->id & (n - 1)] = t->slots[i];
    }
    free(t->slots);
    t->slots = bigger;
    t->n_slots = n;
}

/* A slow call may still hold the slot of an id: the next one is taken then. */
void flights_add(struct flights *t, struct flight *f)
{
    if ((size_t)t->n * 2 >= t->n_slots)
        grow(t);
    while (t->slots[t->next_id & (t->n_slots - 1)] != NULL)
        t->next_id++;
    f->id = t->next_id++;
    t->slots[f->id & (t->n_slots - 1)] = f;
    t->n++;
}
