/*
 * Several providers at once; the first good answer counts and the other calls are given up: they may run all the same.
 */
#include "gateway/cluster_run.h"

static void begin(struct cluster_run *r)
{
    const struct ref *ref = r->front->plan.ref;
    struct call_plan p = r->front->plan;
    size_t n = ref->n_usable < r->forks ? ref->n_usable : r->forks;

    p.wish.others = &r->others;
    r->n_planned = n != 0 ? (unsigned)n : 1; /* without any: what a call says of it */
    for (unsigned i = 0; i < r->n_planned && !r->over; i++)
        cluster_call(r, i, &p);
}

static void ended(struct cluster_run *r, struct cluster_child *c)
{
    if (c->outcome == OUTCOME_OK)
        cluster_answer(r, c);
    else if (r->n_open == 0 && r->n_begun == r->n_planned)
        cluster_fail(r);
}

const struct cluster cluster_forking = {
    .name = "forking", .begin = begin, .ended = ended, .idempotent_only = true, .not_oneway = true};
