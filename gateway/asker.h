/*
 * Asks instances of applications what they export: a typed call of MetadataService, which does not take generic ones
 * (docs/REGISTRY.md section 6.4).  The registry thread has no connections to providers, so a worker asks for it; the
 * connection is the one that calls to that provider use.
 *
 * Worker thread only.
 */
#pragma once

#include "base/list.h"
#include "codec/reply.h"
#include "registry/registry.h"
#include "gateway/peer.h"

struct asker {
    struct wctx *w;
    struct peers *peers;
    struct registry *registry;
    struct reply_decoder *decoder; /* shared with the calls */
    struct peer_opts opts;
    struct list questions;
};

void asker_init(struct asker *a) NONNULL;
/* Ends what is open without an answer. */
void asker_free(struct asker *a) NONNULL;
/* Takes `ask` over; the answer goes to the registry thread. */
void asker_ask(struct asker *a, struct metadata_ask *ask) NONNULL;
