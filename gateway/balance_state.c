#include "gateway/balance_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "gateway/hash_ring.h"
#include "gateway/refs.h"

enum {
    SHARED_SLOT = BALANCE_METHODS_MAX,
    RINGS_MAX = 4, /* methods may want different numbers of nodes */
    SCRATCH_KEEP = 16 * 1024,
    SCRATCH_MAX = 64 * 1024 * 1024,
};

struct balance_state {
    char *names[BALANCE_METHODS_MAX];
    size_t lens[BALANCE_METHODS_MAX];
    unsigned n;
    unsigned last; /* found: mostly the next one, too */
    struct hash_ring *rings[RINGS_MAX];
    unsigned next_ring; /* to be replaced */
    struct buf scratch;
};

static struct balance_state *state_of(struct ref *r)
{
    if (r->balance == NULL) {
        r->balance = xcalloc(1, sizeof(*r->balance));
        buf_init(&r->balance->scratch, SCRATCH_MAX);
    }
    return r->balance;
}

static bool is_name(const struct balance_state *s, unsigned i, struct str method)
{
    return s->lens[i] == method.n && memcmp(s->names[i], method.p, method.n) == 0;
}

static unsigned add_name(struct balance_state *s, struct str method)
{
    char *name = xcalloc(method.n + 1, 1);

    memcpy(name, method.p, method.n);
    s->names[s->n] = name;
    s->lens[s->n] = method.n;
    return s->n++;
}

unsigned balance_slot(struct ref *r, struct str method)
{
    struct balance_state *s = state_of(r);

    if (method.n == 0)
        return SHARED_SLOT;
    if (s->n != 0 && is_name(s, s->last, method))
        return s->last;
    for (unsigned i = 0; i < s->n; i++) {
        if (is_name(s, i, method)) {
            s->last = i;
            return i;
        }
    }
    return s->n < BALANCE_METHODS_MAX ? add_name(s, method) : SHARED_SLOT;
}

struct method_load *balance_load(struct endpoint *ep, unsigned slot)
{
    if (slot >= ep->n_loads) {
        size_t n = slot + 1;

        ep->loads = xrealloc(ep->loads, n * sizeof(*ep->loads));
        memset(ep->loads + ep->n_loads, 0, (n - ep->n_loads) * sizeof(*ep->loads));
        ep->n_loads = n & 0x7fU; /* up to BALANCE_METHODS_MAX + 1 */
    }
    return &ep->loads[slot];
}

void load_add_time(struct method_load *l, uint64_t now_ms, uint64_t us)
{
    uint64_t number = now_ms / BALANCE_PART_MS;
    struct window_part *p = &l->parts[number % BALANCE_WINDOW_PARTS];

    if (p->number != number)
        *p = (struct window_part){.number = number};
    p->sum_us += us;
    p->n++;
}

bool load_mean_us(const struct method_load *l, uint64_t now_ms, uint64_t *us)
{
    uint64_t number = now_ms / BALANCE_PART_MS;
    uint64_t sum = 0;
    uint64_t n = 0;

    for (size_t i = 0; i < BALANCE_WINDOW_PARTS; i++) {
        const struct window_part *p = &l->parts[i];

        if (p->number + BALANCE_WINDOW_PARTS > number) {
            sum += p->sum_us;
            n += p->n;
        }
    }
    *us = n != 0 ? sum / n : 0;
    return n != 0;
}

struct hash_ring *balance_ring(struct ref *r, unsigned nodes)
{
    struct balance_state *s = state_of(r);
    struct hash_ring **at = NULL;

    nodes = nodes < RING_NODES_MIN ? RING_NODES_MIN : nodes;
    nodes = nodes > RING_NODES_MAX ? RING_NODES_MAX : nodes;
    for (size_t i = 0; i < RINGS_MAX && at == NULL; i++) {
        if (s->rings[i] != NULL && s->rings[i]->nodes == nodes)
            at = &s->rings[i];
    }
    if (at == NULL)
        at = &s->rings[s->next_ring++ % RINGS_MAX];
    else if ((*at)->version == r->set_version)
        return *at;
    hash_ring_free(*at);
    *at = hash_ring_new(r->usable, r->n_usable, nodes);
    (*at)->version = r->set_version;
    return *at;
}

struct buf *balance_scratch(struct ref *r)
{
    struct balance_state *s = state_of(r);

    buf_truncate(&s->scratch, 0);
    buf_shrink(&s->scratch, SCRATCH_KEEP);
    return &s->scratch;
}

void balance_state_free(struct balance_state *s)
{
    if (s == NULL)
        return;
    for (unsigned i = 0; i < RINGS_MAX; i++)
        hash_ring_free(s->rings[i]);
    buf_free(&s->scratch);
    for (unsigned i = 0; i < s->n; i++)
        free(s->names[i]);
    free(s);
}
