/*
 * From method, path and host to a route (docs/OPERATIONS.md section 2.1): a tree of path segments, built once per
 * configuration; a literal segment wins over {var}, {var} over {var=**}, segment by segment.
 *
 * The table is immutable and shared by all workers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "gateway/problem.h"
#include "gateway/request.h"
#include "gateway/settings.h"

enum { ROUTE_VARS_MAX = 16, ROUTE_SEGMENTS_MAX = 64 };

struct route_var {
    struct str name;
    struct str value; /* decoded */
};

struct route_match {
    const struct route *route;
    struct route_var vars[ROUTE_VARS_MAX];
    size_t n_vars;
    bool head; /* HEAD on a GET route: the body is left out */
};

enum route_result {
    ROUTE_FOUND = 0,
    ROUTE_NONE,    /* 404: route_not_found says so */
    ROUTE_METHOD,  /* 405: p->allow is set */
    ROUTE_OPTIONS, /* OPTIONS on a known path: 204 with p->allow */
    ROUTE_BAD,     /* 400: a segment cannot be decoded */
};

struct route_table;

/* The settings must outlive the table. */
struct route_table *route_table_build(const struct settings *s) NONNULL MUST_CHECK;
void route_table_free(struct route_table *t); /* NULL is fine */

/* Decoded texts go to `a`. */
enum route_result route_match(const struct route_table *t, const struct request *r, struct arena *a,
                              struct route_match *m, struct problem *p) NONNULL MUST_CHECK;
/* After ROUTE_NONE, when nobody else takes the request: fills `p`, with a path that would have matched. */
void route_not_found(const struct route_table *t, const struct request *r, struct arena *a,
                     struct problem *p) NONNULL;
/* The value of a path variable; STR_NONE when there is none of that name. */
struct str route_var(const struct route_match *m, struct str name) __attribute__((nonnull(1)));

/* For the configuration check: is it a template, does it hold the variable, do two match the same paths? */
bool route_template_check(struct str path, struct err *e) __attribute__((nonnull(2))) MUST_CHECK;
bool route_template_has(struct str path, struct str variable);
bool route_template_same(struct str a, struct str b);
