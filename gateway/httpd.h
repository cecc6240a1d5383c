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
#include "base/list.h"
#include "base/stats.h"
#include "gateway/accesslog.h"
#include "gateway/answer.h"
#include "gateway/asker.h"
#include "gateway/bind.h"
#include "gateway/call.h"
#include "gateway/cluster.h"
#include "gateway/direct.h"
#include "gateway/exchange.h"
#include "gateway/generation.h"
#include "gateway/identity.h"
#include "gateway/route_stats.h"
#include "gateway/settings.h"
#include "gateway/telnet.h"

struct httpd_opts {
    struct settings *settings; /* a count of its own is taken */
    struct registry *registry;
    struct mailbox *box; /* for the registry's mail */
};

struct httpd {
    struct wctx *w;
    struct exchanges http;
    struct calls calls;
    struct clusters clusters;
    struct peers *peers;
    struct refs *refs;
    struct asker asker;
    struct telnet telnet;
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
