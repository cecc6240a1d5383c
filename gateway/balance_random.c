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

size_t balance_random_among(struct wctx *w, const struct balance_choice *c, const size_t *among,
                            size_t n)
{
    uint64_t total = 0;
    uint64_t at = 0;
    size_t i = 0;

    if (n == 1)
        return among[0];
    for (i = 0; i < n; i++)
        total += c->weight[among[i]];
    if (total == 0)
        return among[wctx_random(w) % n];
    at = wctx_random(w) % total;
    for (i = 0; at >= c->weight[among[i]]; i++)
        at -= c->weight[among[i]];
    return among[i];
}

const struct balancer balance_random = {.name = "random", .pick = pick};
