#include "registry/core.h"

static bool is_in(const struct provider *p, const struct provider *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (provider_same(p, &list[i]))
            return true;
    }
    return false;
}

size_t judge_list(const struct directory *old, const struct provider *now, size_t n_now,
                  bool same_node, uint64_t grace_ms, struct provider *out, uint64_t *keep_ms)
{
    size_t n_listed = 0;
    size_t n_gone = 0;
    size_t n_out = 0;
    bool mass = false;

    for (size_t i = 0; i < old->n; i++) {
        if (old->providers[i].unlisted)
            continue;
        n_listed++;
        n_gone += is_in(&old->providers[i], now, n_now) ? 0U : 1U;
    }
    /* more than half at once: rather their sessions or the registry than they themselves */
    mass = n_gone * 2 > n_listed;
    *keep_ms = !same_node ? UINT64_MAX : grace_ms;
    for (size_t i = 0; i < old->n; i++) {
        const struct provider *p = &old->providers[i];

        if (is_in(p, now, n_now) || p->unusable != USABLE)
            continue;
        if (!p->unlisted && same_node && !mass)
            continue; /* it deregistered */
        if (same_node && grace_ms == 0)
            continue;
        out[n_out] = *p;
        out[n_out++].unlisted = true;
    }
    return n_out;
}
