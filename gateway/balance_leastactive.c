/*
 * The fewest calls of this method in flight at the provider, as this worker sees them; among equals by weight
 * (docs/REGISTRY.md section 8).  Dubbo 3.2's `adaptive` asks its providers for their load, which generic calls cannot:
 * here it is the same as leastactive.
 */
#include "gateway/balance.h"
#include "gateway/balance_state.h"

static size_t pick(struct wctx *w, const struct balance_choice *c, const struct balance_call *call)
{
    unsigned slot = balance_slot(c->ref, call->method);
    uint32_t least = UINT32_MAX;
    size_t equals[BALANCE_CANDIDATES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        uint32_t active = balance_load(c->list[i], slot)->in_flight;

        if (active < least) {
            least = active;
            n = 0;
        }
        if (active == least)
            equals[n++] = i;
    }
    return balance_random_among(w, c, equals, n);
}

const struct balancer balance_leastactive = {
    .name = "leastactive", .pick = pick, .per_method = true};
const struct balancer balance_adaptive = {.name = "adaptive", .pick = pick, .per_method = true};
