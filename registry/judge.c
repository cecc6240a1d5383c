#include "registry/judge.h"

#include <stdlib.h>

#include "base/fatal.h"

static int by_pointed_identity(const void *a, const void *b)
{
    return provider_compare(*(const struct provider *const *)a, *(const struct provider *const *)b);
}

/* A list of 10,000 is compared with the next one several times a second: both are searched, not walked. */
struct index {
    const struct provider **v;
    size_t n;
};

static struct index index_of(const struct provider *list, size_t n, bool with_unlisted)
{
    struct index x = {.v = xcalloc(n + 1, sizeof(struct provider *))};

    for (size_t i = 0; i < n; i++) {
        if (with_unlisted || !list[i].unlisted)
            x.v[x.n++] = &list[i];
    }
    qsort(x.v, x.n, sizeof(struct provider *), by_pointed_identity);
    return x;
}

static bool is_in(const struct provider *p, const struct index *x)
{
    return bsearch(&p, x->v, x->n, sizeof(struct provider *), by_pointed_identity) != NULL;
}

/* Counts what went and came into the window. */
static bool is_mass(const struct index *before, const struct index *now, uint64_t now_ms,
                    struct judge_window *w)
{
    uint32_t n_before = (uint32_t)before->n;
    uint32_t gone = 0;
    uint32_t came = 0;

    for (size_t i = 0; i < before->n; i++)
        gone += is_in(before->v[i], now) ? 0U : 1U;
    for (size_t i = 0; i < now->n; i++)
        came += is_in(now->v[i], before) ? 0U : 1U;
    if (w->base == 0 || now_ms - w->since_ms > JUDGE_WINDOW_MS)
        *w = (struct judge_window){.since_ms = now_ms, .base = n_before};
    if (w->base < n_before)
        w->base = n_before;
    w->gone += gone;
    w->gone -= came < w->gone ? came : w->gone;
    return gone != 0 && w->gone * 2 > w->base;
}

enum judgement judge_list(const struct judge_input *in, struct judge_window *w,
                          struct provider *out, size_t *n_out)
{
    struct index before = index_of(in->old->providers, in->old->n, false);
    struct index now = index_of(in->now, in->n_now, true);
    enum judgement j = JUDGED_NORMAL;

    if (!in->same_list)
        j = JUDGED_REPLACED;
    else if (is_mass(&before, &now, in->now_ms, w))
        j = JUDGED_MASS;
    *n_out = 0;
    for (size_t i = 0; i < in->old->n; i++) {
        const struct provider *p = &in->old->providers[i];

        if (p->unusable != USABLE || is_in(p, &now) || (j == JUDGED_NORMAL && !p->unlisted))
            continue;
        out[*n_out] = *p;
        out[(*n_out)++].unlisted = true;
    }
    free(before.v);
    free(now.v);
    return j;
}
