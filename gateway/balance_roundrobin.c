/*
 * Smooth weighted round robin, a turn per method (docs/REGISTRY.md section 8): weights 5, 1, 1 give A A B A C A A.
 */
#include "gateway/balance.h"
#include "gateway/balance_state.h"

static size_t pick(struct wctx *w, const struct balance_choice *c, const struct balance_call *call)
{
    unsigned slot = balance_slot(c->ref, call->method);
    int64_t best = INT64_MIN;
    int64_t total = 0;
    size_t at = 0;

    for (size_t i = 0; i < c->n; i++) {
        struct method_load *l = balance_load(c->list[i], slot);
        /* nobody has a weight: all are alike, as for random */
        uint32_t weight = c->total != 0 ? c->weight[i] : 1;

        if (l->weight != weight) {
            l->weight = weight;
            l->current = 0;
        }
        l->current += weight;
        total += weight;
        if (l->current > best) {
            best = l->current;
            at = i;
        }
    }
    balance_load(c->list[at], slot)->current -= total;
    return at;
}

const struct balancer balance_roundrobin = {.name = "roundrobin", .pick = pick};
