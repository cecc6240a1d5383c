/*
 * The turn of a worker's loop: when libmicrohttpd runs, when provider frames leave, and what keeps a
 * misbehaving client from taking the whole core (docs/ROBUSTNESS.md section 2.1, docs/ARCHITECTURE.md).
 *
 * One per worker; its thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "gateway/exchange.h"
#include "gateway/wctx.h"

enum { TURN_LISTENERS_MAX = 16 };

struct turn_listener {
    struct turn *home;
    struct MHD_Daemon *daemon;
    int fd;
    ev_io io;
};

struct turn {
    struct wctx *w;
    struct exchanges *http;
    struct turn_listener listeners[TURN_LISTENERS_MAX];
    unsigned n_listeners;
    ev_check check;     /* after the loop slept: takes the time */
    ev_prepare prepare; /* before it sleeps: runs the library, flushes provider connections */
    ev_idle idle;       /* running = do not sleep */
    ev_timer tick;      /* 100 ms */
    ev_timer brake;     /* 10 ms while braking */
    ev_timer batch;     /* 1 ms while very many requests are suspended */
    void (*on_tick)(struct turn *t);
    uint64_t last_run_us;
    uint64_t seen_activity;
    unsigned empty_turns;
    bool braking;
};

void turn_start(struct turn *t, struct wctx *w, struct exchanges *http,
                void (*on_tick)(struct turn *t)) NONNULL;
/* Takes a listening socket into the loop; false when the library refuses (the socket is closed). */
bool turn_listen(struct turn *t, int fd) NONNULL MUST_CHECK;
/* No new connections from now on. */
void turn_quiesce(struct turn *t) NONNULL;
/* Stops the daemons; no exchange may be suspended. */
void turn_stop(struct turn *t) NONNULL;
