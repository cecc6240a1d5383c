/*
 * Weighted random, with Dubbo's warm-up (docs/REGISTRY.md section 8).
 */
#include "gateway/balance.h"

static struct endpoint *pick(struct wctx *w, struct endpoint *const *candidates, size_t n,
                             const struct balance_call *call)
{
    uint64_t total = 0;
    uint64_t at = 0;

    for (size_t i = 0; i < n; i++)
        total += provider_weight(candidates[i]->provider, call->method, w->wall_ms);
    if (total == 0)
        return candidates[wctx_random(w) % n];
    at = wctx_random(w) % total;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight = provider_weight(candidates[i]->provider, call->method, w->wall_ms);

        if (at < weight)
            return candidates[i];
        at -= weight;
    }
    return candidates[n - 1];
}

const struct balancer balance_random = {.name = "random", .pick = pick};
