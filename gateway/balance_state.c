#include "gateway/balance_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "gateway/refs.h"

enum { SHARED_SLOT = BALANCE_METHODS_MAX };

struct balance_state {
    char *names[BALANCE_METHODS_MAX];
    size_t lens[BALANCE_METHODS_MAX];
    unsigned n;
    unsigned last; /* found: mostly the next one, too */
};

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
    struct balance_state *s = r->balance;

    if (s == NULL)
        s = r->balance = xcalloc(1, sizeof(*s));
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
        ep->n_loads = (unsigned)n;
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

void balance_state_free(struct balance_state *s)
{
    if (s == NULL)
        return;
    for (unsigned i = 0; i < s->n; i++)
        free(s->names[i]);
    free(s);
}
