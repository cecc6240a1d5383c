/*
 * Asks providers of 2.6 for the methods of an interface: `ls -l INTERFACE` on the service port (docs/REGISTRY.md section
 * 7.5).  The registry thread has no loop for that, so a worker asks for it, over a connection of its own: bytes that are
 * no frames would be the end of one that calls use.
 *
 * Worker thread only.
 */
#pragma once

#include "base/list.h"
#include "registry/registry.h"
#include "gateway/wctx.h"

enum { TELNET_OPEN_MAX = 16 }; /* connections at once; further questions wait */

struct telnet {
    struct wctx *w;
    struct registry *registry;
    struct list open;
    struct list waiting;
    unsigned n_open;
};

void telnet_init(struct telnet *t, struct wctx *w, struct registry *registry) NONNULL;
/* Ends what is open without an answer. */
void telnet_free(struct telnet *t) NONNULL;
/* Takes `ask` over; the answer, which always comes, goes to the registry thread. */
void telnet_ask(struct telnet *t, struct telnet_ask *ask) NONNULL;
