/*
 * One TCP connection to a provider: connect, many calls at once by id, one write per loop turn,
 * heartbeats, readonly drain (docs/PROTOCOL.md sections 1, 7, 12; docs/ARCHITECTURE.md).
 *
 *   CONNECTING --> READY --> DRAINING --> CLOSED
 *        +-----------+---------------------^
 *
 * A connection belongs to one worker.  It does not know what a call is: it sees flights.
 * Callbacks run in the worker's thread, from a read or timer event or from conn_close, never from
 * inside conn_send or conn_cancel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "codec/frame.h"
#include "registry/provider.h"
#include "gateway/wctx.h"

enum conn_state { CONN_CONNECTING, CONN_READY, CONN_DRAINING, CONN_CLOSED, CONN_STATES };

/* Why a flight ended without an answer. */
enum flight_failure {
    FLIGHT_UNREACHABLE, /* not one byte of the request was written: it certainly did not run */
    FLIGHT_LOST,        /* written, at least in part; unknown whether it ran */
};

struct conn;

/* One request in flight; embedded in the call. */
struct flight {
    struct conn *conn; /* NULL = not in flight */
    uint64_t id;
    uint64_t end;   /* stream offset behind its last byte */
    uint64_t start; /* stream offset of its first byte */
    bool one_way;   /* no answer will come: ends with on_written */
    struct list link;
    /* An answer.  `body` is NULL when it was over conn_opts.max_response and skipped. The flight is
     * out of the table already. */
    void (*on_reply)(struct flight *f, const struct frame *head, const uint8_t *body);
    void (*on_fail)(struct flight *f, enum flight_failure why);
    /* The last byte is in the kernel.  Called only when set, at most once. */
    void (*on_written)(struct flight *f);
};

struct conn_opts {
    uint32_t connect_timeout_ms;
    uint32_t
        heartbeat_ms; /* idle time before a heartbeat; dead after 3 times without a byte read */
    uint32_t max_in_flight; /* calls */
    uint32_t max_response;  /* body bytes; larger ones are skipped up to 256 MiB, then closed */
    size_t max_buffered;    /* unsent bytes */
};

/* Told about every change of state; from == CLOSED never happens.  After CLOSED the conn is freed by
 * the end of the turn. */
typedef void (*conn_state_fn)(struct conn *c, void *ctx, enum conn_state from, enum conn_state to);

/* Starts connecting; NULL with errno when no socket can be had. */
struct conn *conn_open(struct wctx *w, const union address *addr, const struct conn_opts *opts,
                       conn_state_fn on_state, void *ctx) NONNULL MUST_CHECK;

enum conn_result {
    CONN_OK = 0,
    CONN_BUSY,     /* max_in_flight or max_buffered reached: nothing was taken */
    CONN_UNUSABLE, /* draining or closed */
};

/* The pieces of one request body in order; the header is made here.  Bytes are copied. */
struct frame_parts {
    struct str part[4];
};

/* Also while CONNECTING: the frame leaves when the connection stands, which is when the provider has answered
 * a first heartbeat (docs/PROTOCOL.md section 7). */
enum conn_result conn_send(struct conn *c, struct flight *f,
                           const struct frame_parts *body) NONNULL MUST_CHECK;

/* The caller gives up (deadline, client gone): a late answer is dropped and counted.  `timed_out`
 * feeds the half-open detection: 5 in a row without a byte read send a heartbeat that has 1 s. */
void conn_cancel(struct flight *f, bool timed_out) NONNULL;

/* Sends a heartbeat that has 1 s: a connection that is only half there is closed.  Only when READY. */
void conn_probe(struct conn *c) NONNULL;
/* From now on a heartbeat after so long a silence, when that is shorter than before: another user of the provider asks for it. */
void conn_hurry_heartbeats(struct conn *c, uint32_t heartbeat_ms) NONNULL;

void conn_drain(struct conn *c) NONNULL; /* no new calls; closes when the last one ended */
void conn_close(struct conn *c) NONNULL; /* now; fails what is in flight */

/* Before the loop sleeps: one send per connection that has something.  Then frees what is dead. */
void conn_flush_all(struct wctx *w) NONNULL;

enum conn_state conn_state(const struct conn *c) NONNULL;
/* Is the first answer later than a connection may take?  Better use another one, if there is one. */
bool conn_is_slow(const struct conn *c) NONNULL;
unsigned conn_in_flight(const struct conn *c) NONNULL;

/* For /connections. */
struct conn_info {
    enum conn_state state;
    uint16_t local_port;
    unsigned in_flight;
    uint64_t age_ms;
    uint64_t idle_ms;
    bool readonly; /* the provider said so */
    bool by_peer;  /* the provider refused or ended it; not: silence that we gave up on */
    size_t buffered;
};
void conn_info(const struct conn *c, struct conn_info *out) NONNULL;
const char *conn_state_name(enum conn_state s);
