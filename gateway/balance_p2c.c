/*
 * Power of two choices: two weighted-random draws, the less loaded one wins (decision R16).
 */
#include "gateway/balance.h"

static struct endpoint *pick(struct wctx *w, struct endpoint *const *candidates, size_t n,
                             const struct balance_call *call)
{
    struct endpoint *a = balance_random.pick(w, candidates, n, call);
    struct endpoint *b = balance_random.pick(w, candidates, n, call);
    uint64_t weight_a = 0;
    uint64_t weight_b = 0;

    if (a == b)
        return a;
    weight_a = provider_weight(a->provider, call->method, w->wall_ms);
    weight_b = provider_weight(b->provider, call->method, w->wall_ms);
    /* (in flight + 1) / weight, compared crosswise */
    return (uint64_t)(a->in_flight + 1) * weight_b <= (uint64_t)(b->in_flight + 1) * weight_a ? a
                                                                                              : b;
}

const struct balancer balance_p2c = {.name = "p2c", .pick = pick};
