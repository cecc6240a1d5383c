/*
 * What conn.c (life, writing, timers) and conn_read.c (frames that come in) share.  Nobody else includes this.
 */
#pragma once

#include "base/buf.h"
#include "gateway/conn.h"
#include "gateway/flights.h"

enum { CONN_BODY_MAX = 256 * 1024 * 1024 }; /* a longer answer is no answer */

struct conn {
    struct list dirty; /* wctx->dirty */
    struct list dead;  /* wctx->dead */
    struct wctx *w;
    int fd;
    enum conn_state state;
    struct conn_opts opts;
    conn_state_fn on_state;
    void *ctx;
    ev_io io;
    int events; /* what io waits for; libev keeps flags of its own in io.events */
    union address addr;
    int second_fd; /* a later SYN beside the one of `fd`, while that has no answer; -1 = none */
    ev_io second;
    ev_timer timer;
    struct flights flights;
    struct buf in; /* what is left of the last read: a frame that is not whole */
    size_t skip;   /* bytes of an oversized body still to come */
    struct buf out;
    uint64_t added;      /* stream offset of the end of `out` */
    uint64_t sent;       /* stream offset of its beginning */
    struct list watched; /* flights that want on_written, in stream order */
    uint64_t opened_ms;
    uint64_t last_read_ms;
    uint64_t last_write_ms;
    uint64_t probe_until_ms; /* a heartbeat must be answered until then; 0 = none asked */
    unsigned timeouts_in_a_row;
    bool greeted; /* the first heartbeat is on its way */
    bool readonly;
    bool by_peer;
};

/* The only way to another state. */
void conn_enter(struct conn *c, enum conn_state to) NONNULL;
/* Out of the table; its callback may follow. */
void conn_end_flight(struct conn *c, struct flight *f) NONNULL;
/* It is looked at before the loop sleeps: something to send, or to close. */
void conn_mark_dirty(struct conn *c) NONNULL;
void conn_send_event(struct conn *c, uint8_t flags, uint8_t status, uint64_t id, struct str body)
    __attribute__((nonnull(1)));
/* Bytes of the provider; may close the connection. */
void conn_take_bytes(struct conn *c, const uint8_t *p, size_t n) NONNULL;
