/*
 * From a request to the encoded middle of the call and its attachments (docs/OPERATIONS.md section 2.2).
 *
 * Everything a client can do wrong with arguments is found here, before a provider is touched.
 * Threads: the worker's.  Memory: texts live in the arena handed in, slices in the request's body.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "codec/json_args.h"
#include "gateway/direct.h"
#include "gateway/problem.h"
#include "gateway/request.h"
#include "gateway/route.h"
#include "gateway/settings.h"

enum { BIND_ARGS_MAX = 64 };

struct bound {
    struct arg args[BIND_ARGS_MAX];
    struct str sources[BIND_ARGS_MAX]; /* "path.id", "body": for error messages */
    size_t n;
    bool from_list;  /* the arguments are the elements of the body's array */
    struct str body; /* for the place of an error */
};

/* The request's content type and coding: may the body be read as JSON?  False: 415. */
bool bind_content_type(const struct request *r, struct problem *p) NONNULL MUST_CHECK;
/* A BOM and blanks around the body go; empty = absent. */
struct str bind_body(const struct request *r) NONNULL;

/* False: the problem names the source.  `b` need not be cleared. */
bool bind_route(const struct route_match *m, const struct request *r, struct arena *a,
                struct bound *b, struct problem *p) NONNULL MUST_CHECK;
/* An array is the argument list, nothing no argument, an object for several named parameters their
 * values, anything else the only argument. */
bool bind_direct(const struct direct_match *d, const struct request *r, struct arena *a,
                 struct bound *b, struct problem *p) NONNULL MUST_CHECK;

/* Argument `index` as java_text_add() prints it, for rules.  False: there is none. */
bool bind_argument_text(const struct bound *b, unsigned index, struct arena *a,
                        struct str *out) NONNULL MUST_CHECK;
/* Encodes; errors name the source. */
bool bind_encode(struct str method, const struct bound *b, const struct args_opts *opts,
                 struct buf *middle, struct problem *p)
    __attribute__((nonnull(2, 3, 4, 5))) MUST_CHECK;

/* Appends the attachments of one request: configured ones, forwarded headers, request-id.  What cannot be
 * sent (absent source, control bytes, no UTF-8, longer than 8 KiB) is left out. */
void bind_attachments(const struct route_match *m, const struct policy *policy,
                      const struct request *r, struct arena *a, struct buf *out)
    __attribute__((nonnull(2, 3, 4, 5)));
/* The key of hash_policy: the texts of its sources, one behind the other; p == NULL: the request has none of them.
 * `m` NULL: direct form. */
struct str bind_hash_key(const struct route_match *m, const struct policy *policy,
                         const struct request *r, struct arena *a)
    __attribute__((nonnull(2, 3, 4)));
/* False for names that decide what the provider does: generic, path, group, token … */
bool bind_attachment_allowed(struct str name);
/* One attachment; control bytes or bad UTF-8 leave it out. */
void bind_attach(struct str name, struct str value, struct buf *out) __attribute__((nonnull(3)));

/* X-Request-Timeout and its relatives, or `query` (?timeout= of the direct form); clipped to max_ms.  Leaves
 * *ms alone when none is given.  False: 400. */
bool bind_timeout(const struct request *r, struct str query, uint32_t max_ms, uint32_t *ms,
                  bool *given, struct problem *p) __attribute__((nonnull(1, 4, 5, 6))) MUST_CHECK;
