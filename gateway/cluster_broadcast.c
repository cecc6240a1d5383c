/*
 * Every provider, one after the other, whatever comes of the ones before; good when all were.  The answer is the last
 * one's.  The timeout is for all of them together.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "gateway/cluster_run.h"

enum { MIN_CALL_MS = 5 };

static void add_target(struct cluster_run *r, struct endpoint *ep)
{
    if (r->n_targets == r->cap_targets) {
        r->cap_targets = r->cap_targets != 0 ? r->cap_targets * 2 : 16;
        r->targets = xrealloc(r->targets, r->cap_targets * sizeof(struct endpoint *));
    }
    endpoint_hold(ep);
    r->targets[r->n_targets++] = ep;
}

/* A listed one that is down is asked, too: it has not got the call, and that is a failure. */
static void find_targets(struct cluster_run *r)
{
    const struct ref *ref = r->front->plan.ref;

    for (size_t i = 0; i < ref->n_usable; i++) {
        struct endpoint *ep = ref->usable[i];

        if (!ep->provider->unlisted || peer_use(ep->peer, true) != PEER_DOWN)
            add_target(r, ep);
    }
}

static void conclude(struct cluster_run *r)
{
    char first[sizeof(r->problem.detail)];
    const char *why = r->problem.detail[0] != '\0' ? r->problem.detail
                                                   : outcome_row(r->problem.outcome)->detail;

    if (r->n_failed == 0 && r->n_ruled_out < r->n_begun) {
        cluster_answer(r, &r->merged);
        return;
    }
    snprintf(first, sizeof(first), "%s", why);
    if (r->n_targets != 0 && r->n_failed != 0)
        problem_set(&r->problem, r->problem.outcome, "%u of %zu providers failed: %.400s",
                    r->n_failed, r->n_targets - r->n_ruled_out, first);
    cluster_fail(r);
}

/* No time for the others: they are not asked. */
static void give_up(struct cluster_run *r)
{
    r->n_failed += (unsigned)(r->n_targets - r->at);
    r->at = r->n_targets;
    if (r->problem.outcome == OUTCOME_OK)
        problem_set(&r->problem, OUTCOME_PROVIDER_TIMEOUT, "no time was left for all providers");
}

/* A call that ends at once comes back into this loop, not deeper into it. */
static void go_on(struct cluster_run *r)
{
    struct call_plan p = r->front->plan;

    if (r->in_loop)
        return;
    r->in_loop = true;
    p.attempts = 0;
    while (!r->over && r->n_open == 0 && r->at < r->n_targets) {
        if (r->deadline_ms != 0 && clock_ms() + MIN_CALL_MS > r->deadline_ms) {
            give_up(r);
            break;
        }
        p.wish.only = r->targets[r->at++];
        if (!p.wish.only->retired &&
            p.wish.only->peer != NULL) /* else it left the list meanwhile */
            cluster_call(r, 0, &p);
    }
    r->in_loop = false;
    if (!r->over && r->n_open == 0)
        conclude(r);
}

static void begin(struct cluster_run *r)
{
    find_targets(r);
    if (r->n_targets != 0)
        go_on(r);
    else
        cluster_call(r, 0, &r->front->plan); /* says why there is nobody */
}

/* The next call takes the place: the result changes over. */
static void keep(struct cluster_run *r, struct cluster_child *c)
{
    struct cluster_child before = r->merged;

    r->merged = *c;
    *c = before;
}

static void ended(struct cluster_run *r, struct cluster_child *c)
{
    if (c->outcome == OUTCOME_OK)
        keep(r, c);
    else
        (void)cluster_ruled_out(r, c);
    go_on(r);
}

const struct cluster cluster_broadcast = {.name = "broadcast", .begin = begin, .ended = ended};
