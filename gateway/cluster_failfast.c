/*
 * One attempt: what comes of it is answered.
 */
#include "gateway/cluster.h"

static void plan(struct call_plan *p)
{
    p->attempts = 0;
}

const struct cluster cluster_failfast = {.name = "failfast", .plan = plan};
