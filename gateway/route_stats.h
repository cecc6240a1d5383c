/*
 * Numbers of one route: answers by status and method with their times, errors, bytes.
 *
 * Each worker has its own; they outlive a reload, so they are found by the route's name.  A worker writes
 * them, and whoever prints metrics runs in the worker's thread too.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/stats.h"
#include "base/str.h"
#include "gateway/outcome.h"

enum { STATUSES_MAX = 24 };

struct route_stats {
    UT_hash_handle hh;
    char *name; /* of the route, "direct" or "-" */
    char *path; /* template, for http_route */
    struct {
        uint16_t status;
        uint8_t method; /* index into http_method_names; HTTP_METHODS = another */
        struct hist *hist;
    } seen[STATUSES_MAX];
    size_t n_seen;
    uint64_t errors[OUTCOMES];
    uint64_t bytes_in;
    uint64_t bytes_out;
};

/* The numbers of the route of this name in the table `all`, which owns them; made when they are new.  `path`
 * replaces the former one. */
struct route_stats *route_stats_get(struct route_stats **all, struct str name,
                                    struct str path) NONNULL MUST_CHECK;
void route_stats_free_all(struct route_stats *all); /* NULL = an empty table */

/* One answer after `us` microseconds. */
void route_stats_count(struct route_stats *s, uint16_t status, struct str method,
                       uint64_t us) NONNULL;
