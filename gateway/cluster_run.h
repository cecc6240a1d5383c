/*
 * The calls that stand for one request, for the cluster modes that make several.  Private to gateway/cluster*.c.
 */
#pragma once

#include "base/arena.h"
#include "gateway/cluster.h"

enum { CLUSTER_CALLS_MAX = 16 }; /* at once */

struct cluster_child {
    struct cluster_run *run;
    struct call *call; /* NULL: not begun, or ended */
    struct buf json;   /* its result */
    struct buf attachments;
    enum outcome outcome;
    enum reply_kind kind;
    unsigned cycles;
    char provider[72];
};

struct cluster_run {
    struct list link; /* clusters->pool */
    struct clusters *home;
    const struct cluster *mode;
    struct call *front;
    unsigned forks;
    struct cluster_child children[CLUSTER_CALLS_MAX];
    struct cluster_child merged; /* an answer that was put together */
    unsigned n_planned;
    unsigned n_begun;
    unsigned n_open;
    unsigned n_failed;
    unsigned n_ruled_out;   /* calls that rules leave no provider; not among the failed ones */
    struct problem problem; /* of the failure that says most */
    char failed_provider[72];
    struct cluster_child *answer; /* NULL with `over`: the problem is */
    bool over;
    unsigned
        depth; /* inside the mode's functions: nobody ends the front before they have returned */
    unsigned tries;       /* of all calls */
    uint64_t provider_us; /* the longest */
    uint64_t deadline_ms; /* of the last call that ended */
    struct endpoint_set others;
    struct endpoint **targets; /* held */
    size_t n_targets;
    size_t cap_targets;
    size_t at; /* the next of them */
    bool in_loop;
    struct arena arena; /* for the time of the run */
    struct ref_waiter waiter;
    ev_timer timer; /* while there is no list of providers */
};

/* Rules took out whom the call was for: then it is as if that one were not there. */
static inline bool cluster_ruled_out(struct cluster_run *r, const struct cluster_child *c)
{
    if (c->outcome != OUTCOME_NO_PROVIDER_AFTER_RULES)
        return false;
    r->n_failed--;
    r->n_ruled_out++;
    return true;
}

/* One more call, at children[slot]; what differs from the front's plan is in `p` (a copy of it).  It may end before this
 * returns: then `ended` has been called. */
void cluster_call(struct cluster_run *r, unsigned slot, const struct call_plan *p) NONNULL;
/* The run is over: this is the answer; the other calls end. */
void cluster_answer(struct cluster_run *r, struct cluster_child *c) NONNULL;
/* The same with r->problem. */
void cluster_fail(struct cluster_run *r) NONNULL;
