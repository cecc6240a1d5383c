/*
 * Weighted random, with Dubbo's warm-up (docs/REGISTRY.md section 8).
 */
#include "gateway/balance.h"

static size_t pick(struct wctx *w, const struct balance_choice *c, const struct balance_call *call)
{
    uint64_t at = 0;
    size_t i = 0;

    if (c->total == 0)
        return wctx_random(w) % c->n;
    at = wctx_random(w) % c->total;
    while (at >= c->weight[i])
        at -= c->weight[i++];
    return i;
}

const struct balancer balance_random = {.name = "random", .pick = pick};
