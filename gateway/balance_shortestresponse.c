/*
 * The shortest expected answer: mean time of the good answers of the last 30 s × (calls in flight + 1), among equals by
 * weight (docs/REGISTRY.md section 8).
 *
 * Dubbo takes a provider without any good answer for one that needs no time at all, so that a new one, and one that
 * fails at once, gets every call.  Here such a provider is expected to be as good as the best of the others: it is tried,
 * and shares the calls with that one.
 */
#include "gateway/balance.h"
#include "gateway/balance_state.h"

static uint64_t best_of_known(const uint64_t *mean, const bool *known, size_t n)
{
    uint64_t best = UINT64_MAX;

    for (size_t i = 0; i < n; i++) {
        if (known[i] && mean[i] < best)
            best = mean[i];
    }
    return best != UINT64_MAX ? best : 1;
}

static size_t pick(struct wctx *w, const struct balance_choice *c, const struct balance_call *call)
{
    unsigned slot = balance_slot(c->ref, call->method);
    uint64_t mean[BALANCE_CANDIDATES_MAX];
    bool known[BALANCE_CANDIDATES_MAX];
    size_t equals[BALANCE_CANDIDATES_MAX];
    uint64_t best = 0;
    uint64_t shortest = UINT64_MAX;
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        known[i] = load_mean_us(balance_load(c->list[i], slot), w->now_ms, &mean[i]);
    best = best_of_known(mean, known, c->n);
    for (size_t i = 0; i < c->n; i++) {
        uint64_t active = balance_load(c->list[i], slot)->in_flight;
        uint64_t expected = (known[i] ? mean[i] : best) * (active + 1);

        if (expected < shortest) {
            shortest = expected;
            n = 0;
        }
        if (expected == shortest)
            equals[n++] = i;
    }
    return balance_random_among(w, c, equals, n);
}

const struct balancer balance_shortestresponse = {
    .name = "shortestresponse", .pick = pick, .per_method = true};
