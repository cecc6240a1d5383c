/*
 * One attempt; a failure to get an answer is answered as a null result.  An exception of the method is an answer, and a
 * request that is at fault (4xx) is told so, as in Dubbo.
 */
#include "base/log.h"
#include "gateway/cluster.h"

static void plan(struct call_plan *p)
{
    p->attempts = 0;
}

static void settle(struct call *front)
{
    enum outcome o = front->outcome;

    if (o == OUTCOME_OK || o == OUTCOME_PROVIDER_EXCEPTION || o == OUTCOME_DRAINING ||
        outcome_row(o)->status < 500)
        return;
    log_warn("cluster", "%s of " STR_FMT "." STR_FMT " is answered as null (failsafe)",
             outcome_row(o)->code, STR_ARG(front->plan.ref->key.interface),
             STR_ARG(front->plan.method));
    front->swallowed = o;
    front->outcome = OUTCOME_OK;
    front->kind = REPLY_NULL;
}

const struct cluster cluster_failsafe = {.name = "failsafe", .plan = plan, .settle = settle};
