/*
 * Who asks, and under which ids: the request id, the client's address behind our proxies, the trace
 * (docs/OPERATIONS.md).  Only a trusted proxy may bring its own.  Worker thread only.
 */
#pragma once

#include "gateway/request.h"
#include "gateway/settings.h"
#include "gateway/trace.h"
#include "gateway/wctx.h"

enum { REQUEST_ID_MAX = 128 };

/* Sets q->id, which points into `out` from now on. */
void identity_request_id(struct request *q, struct wctx *w, char out[REQUEST_ID_MAX + 1]) NONNULL;
/* q->client_ip: the right-most address of X-Forwarded-For that is no proxy of ours. */
void identity_client_ip(struct request *q, const struct settings *s) NONNULL;
/* The traceparent for the provider; "" = none. */
void identity_trace(const struct request *q, const struct settings *s, struct wctx *w,
                    char out[TRACEPARENT_LEN + 1]) NONNULL;
