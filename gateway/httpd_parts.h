/*
 * One HTTP request in work, shared by httpd.c (its life, from head to access log) and httpd_call.c (the call that
 * it asks for).
 */
#pragma once

#include "gateway/httpd.h"

struct req {
    struct list link; /* free_requests */
    struct httpd *home;
    struct exchange *x;
    struct generation *gen;
    struct route_match m;
    struct direct_match d;
    const struct route *route;   /* NULL: direct form or none */
    const struct policy *policy; /* NULL until one is found */
    struct route_stats *stats;
    struct call *call;
    struct out_buf *out;
    struct answer answer;
    struct problem problem;
    struct bound bound;
    struct reply_opts reply; /* the policy's, when the method asks for others */
    enum outcome outcome;
    bool refused; /* the answer is known from the head */
    bool options; /* it is a 204 with Allow */
    struct refkey key;
    struct str method;
    unsigned tries;
    uint64_t provider_us;
    char provider[72];
    char id[REQUEST_ID_MAX + 1];
    char traceparent[TRACEPARENT_LEN + 1];
};

/* ---- httpd_call.c ---- */
/* Plan, arguments, timeout and attachments into the call; false: r->problem is set. */
bool req_prepare(struct req *r, struct call *c) NONNULL MUST_CHECK;
/* The reference of the service; asks the registry where nobody has before.  NULL: there can be none. */
struct ref *req_ref(struct req *r) NONNULL MUST_CHECK;
