/*
 * What the parts of one worker share: the loop, the turn's time, and the lists that are worked off
 * before the loop sleeps.  One per worker thread (and one in `dubbogate call`); never shared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "base/list.h"
#include "base/stats.h"

enum { RECV_BUFFER_LEN = 65536 };

/* Written by the worker, read by whoever prints metrics. */
struct wire_stats {
    struct counter frames_in;
    struct counter frames_out;
    struct counter late_responses; /* answers whose call had ended */
    struct counter connects;
    struct counter connect_failures;
    struct counter connections_lost;
    struct counter heartbeats_sent;
    struct counter readonly_events;
    struct counter protocol_errors;
};

struct wctx {
    struct ev_loop *loop;
    unsigned index;    /* of the worker, from 0 */
    uint64_t now_ms;   /* monotonic; set once per turn */
    uint64_t wall_ms;  /* set once per turn */
    struct list dirty; /* connections with bytes to send: conn_flush_all before the loop sleeps */
    struct list dead;  /* connections closed in this turn: freed after it */
    uint8_t *recv_buffer; /* RECV_BUFFER_LEN bytes, for the duration of one callback */
    uint64_t random;      /* state of the balancers' and back-off's generator */
    struct wire_stats stats;
    uint64_t dials_since_ms; /* wctx_may_dial() */
    unsigned n_dials;
    void *owner; /* the worker */
};

/* Of connections that no call waits for so many are begun in a second. */
enum { WCTX_DIALS_PER_S = 1000 };

/* May one more be begun now?  Counts it if there were less than `per_s` in this second. */
static inline bool wctx_may_dial(struct wctx *w, unsigned per_s)
{
    if (w->now_ms - w->dials_since_ms >= 1000) {
        w->dials_since_ms = w->now_ms;
        w->n_dials = 0;
    }
    if (w->n_dials >= per_s)
        return false;
    w->n_dials++;
    return true;
}

/* xorshift64*: enough for picking providers and jitter, not for secrets. */
static inline uint64_t wctx_random(struct wctx *w)
{
    uint64_t x = w->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    w->random = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}
