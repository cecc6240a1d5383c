/*
 * Cluster modes: what a request does when it may ask several providers, one row per mode (docs/REGISTRY.md section 8.3,
 * docs/OPERATIONS.md section 2.8).
 *
 * A layer above struct call.  The request has one call, the front; modes with one provider at a time only change its
 * plan.  Of the others the front is never started: a run makes calls of its own with the same arguments and, when the
 * mode has its answer, ends the front as if that were its own.  The worker's thread.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "base/str.h"
#include "gateway/call.h"

struct cluster_child;
struct cluster_run;

struct cluster {
    const char *name; /* as in the configuration and in Dubbo */
    /* One call; any of these may be NULL. */
    void (*plan)(struct call_plan *p);
    void (*settle)(struct call *front); /* it has ended: change what is answered */
    /* Several calls (cluster_run.h): the list of providers is known; one of the calls has ended.  Both or none. */
    void (*begin)(struct cluster_run *r);
    void (*ended)(struct cluster_run *r, struct cluster_child *c);
    /* What a route must be. */
    bool idempotent_only;
    bool groups_only; /* its service has group "*" or a list of groups */
    bool not_oneway;
};

/* One file each. */
extern const struct cluster cluster_failover;
extern const struct cluster cluster_failfast;
extern const struct cluster cluster_failsafe;
extern const struct cluster cluster_forking;
extern const struct cluster cluster_broadcast;
extern const struct cluster cluster_mergeable;

/* Of all rows, in their order; NULL ends. */
extern const char *const cluster_names[];
/* NULL when there is none of that name. */
const struct cluster *cluster_find(struct str name);

/* All of one worker. */
struct clusters {
    struct calls *calls;
    struct list pool; /* runs */
};

void clusters_init(struct clusters *cs, struct calls *calls) NONNULL;
/* No call is left. */
void clusters_free(struct clusters *cs) NONNULL;

/* Instead of call_start(): the front is filled in the same way, its on_end is called once, maybe before this returns,
 * and call_abort(front) ends everything. */
void cluster_start(struct clusters *cs, struct call *front, const struct cluster *mode,
                   unsigned forks) NONNULL;
