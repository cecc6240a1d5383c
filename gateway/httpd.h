/*
 * One worker's HTTP side: from a request to a call and back (docs/ARCHITECTURE.md, "one call's way").
 *
 *   head:     request id, client address -> route or direct form -> limits
 *   request:  content type -> arguments encoded -> reference -> call_start
 *   end:      outcome -> answer
 *   done:     access log, counters
 *
 * All of it belongs to the worker's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/stats.h"
#include "gateway/accesslog.h"
#include "gateway/answer.h"
#include "gateway/bind.h"
#include "gateway/call.h"
#include "gateway/direct.h"
#include "gateway/exchange.h"
#include "gateway/route.h"
#include "gateway/settings.h"
#include "gateway/trace.h"

enum { STATUSES_MAX = 24 };

/* Numbers of one route; they outlive a reload. */
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

/* One configuration in use; it goes when its last request has ended and a newer one is there. */
struct generation {
    struct settings *settings;
    struct route_table *routes;
    struct ref **service_refs; /* of preloaded services; NULL for others */
    struct route_stats **route_stats;
    unsigned users;
};

struct httpd_opts {
    struct settings *settings; /* a count of its own is taken */
    struct registry *registry;
    struct mailbox *box; /* for the registry's mail */
};

struct httpd {
    struct wctx *w;
    struct exchanges http;
    struct calls calls;
    struct peers *peers;
    struct refs *refs;
    struct accesslog log;
    struct generation *gen;
    struct list free_requests;
    unsigned n_requests;
    unsigned n_workers;
    struct route_stats *stats; /* by name */
    struct route_stats *direct_stats;
    struct route_stats *other_stats;
    struct counter cycles;
};

bool httpd_init(struct httpd *h, struct wctx *w, const struct httpd_opts *o,
                struct err *e) NONNULL MUST_CHECK;
/* The daemons are stopped, no request is left. */
void httpd_free(struct httpd *h) NONNULL;
/* A reload: new requests use the new settings. */
void httpd_use_settings(struct httpd *h, struct settings *s) NONNULL;
void httpd_on_registry(struct httpd *h, struct registry_mail *m) NONNULL;
/* Every 100 ms. */
void httpd_tick(struct httpd *h) NONNULL;
/* Ends every call with DRAINING. */
void httpd_cut_calls(struct httpd *h) NONNULL;
