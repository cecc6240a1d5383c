/*
 * From the configuration's blocks to what the parts want: the only file that knows both sides.
 *
 * Everything handed out points into the settings, which must live as long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/log.h"
#include "registry/registry.h"
#include "gateway/accesslog.h"
#include "gateway/call.h"
#include "gateway/exchange.h"
#include "gateway/peer.h"
#include "gateway/settings.h"

unsigned wiring_workers(const struct settings *s) NONNULL;
/* One worker's part of a limit for all of them, at least 1. */
uint32_t wiring_share(uint32_t whole, unsigned n_workers);
void wiring_log(const struct settings *s, struct log_opts *out) NONNULL;
void wiring_accesslog(const struct settings *s, struct accesslog_opts *out) NONNULL;
/* The share of one of `n_workers`. */
void wiring_exchange(const struct settings *s, unsigned n_workers,
                     struct exchange_limits *out) NONNULL;
void wiring_registry(const struct settings *s, struct arena *a, struct registry_opts *out) NONNULL;
/* The services that are subscribed at start (preload) or pinned. */
struct wanted_service *wiring_services(const struct settings *s, struct arena *a,
                                       size_t *n) NONNULL MUST_CHECK;
void wiring_peer(const struct settings *s, const struct service *service, struct peer_opts *out)
    __attribute__((nonnull(1, 3)));
/* What a policy says of a call; the rest of `out` is cleared. */
void wiring_plan(const struct policy *p, unsigned n_workers, struct call_plan *out) NONNULL;
