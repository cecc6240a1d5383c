/*
 * One configuration in use by a worker: the routes, the references of its services, the routes' numbers.
 *
 * A request holds the generation that was in use when its head came, so a reload never changes what a request
 * in work sees.  It goes when its last request has ended and a newer one is there.  Worker thread only.
 */
#pragma once

#include "gateway/refs.h"
#include "gateway/route.h"
#include "gateway/route_stats.h"
#include "gateway/settings.h"

struct generation {
    struct settings *settings; /* counted */
    struct route_table *routes;
    struct ref **service_refs;        /* by service; of preloaded services, NULL for others */
    struct route_stats **route_stats; /* by route */
    unsigned users;
};

/* Pins the references of the preloaded services in `refs`; the numbers of its routes are in `stats`. */
struct generation *generation_new(struct settings *s, struct refs *refs,
                                  struct route_stats **stats) NONNULL MUST_CHECK;
void generation_free(struct generation *g) NONNULL;
