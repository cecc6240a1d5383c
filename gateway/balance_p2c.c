/*
 * Power of two choices: two weighted-random draws, the less loaded one wins (decision R16).
 */
#include "gateway/balance.h"

static size_t pick(struct wctx *w, const struct balance_choice *c, const struct balance_call *call)
{
    size_t a = balance_random.pick(w, c, call);
    size_t b = balance_random.pick(w, c, call);
    /* in flight / weight, compared crosswise; with nothing in flight the first draw is the share that its weight gives
     * it (one more than in flight would count the weight a second time: 100 beside 101 got a quarter) */
    uint64_t load_a = (uint64_t)c->list[a]->in_flight * c->weight[b];
    uint64_t load_b = (uint64_t)c->list[b]->in_flight * c->weight[a];

    return load_a <= load_b ? a : b;
}

const struct balancer balance_p2c = {.name = "p2c", .pick = pick};
