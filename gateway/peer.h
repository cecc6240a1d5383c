/*
 * One provider address as seen by one worker: its connections, back-off, load.  Shared by all references
 * that name the address and counted by them (decision R5).
 *
 * States an operator sees: idle (no connection asked for yet), up, connecting, backoff, readonly.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/conn.h"
#include "gateway/wctx.h"

struct peer;
struct peers; /* all of one worker, by address */

struct peer_opts {
    struct conn_opts conn;
    unsigned connections; /* per provider; the largest asked wins */
};

struct peers *peers_new(struct wctx *w) NONNULL MUST_CHECK;
/* All connections are closed; every peer must have been put. */
void peers_free(struct peers *p) NONNULL;

/* Counted.  `opts` merges into what others asked: connections to the largest, heartbeat to the
 * smallest.  No connection is made yet. */
struct peer *peer_get(struct peers *ps, const union address *addr,
                      const struct peer_opts *opts) NONNULL MUST_CHECK;
/* The last put drains the connections. */
void peer_put(struct peer *p) NONNULL;

/* A connection that takes calls now, or is being opened and will; NULL in back-off, after a readonly
 * event, or when no socket can be had.  Starts connecting when needed. */
struct conn *peer_conn(struct peer *p) NONNULL MUST_CHECK;

enum peer_use {
    PEER_DOWN = 0, /* peer_conn would give none: back-off, readonly */
    PEER_FAILED, /* the last connection came to nothing: to be opened anew, when there is nobody else */
    PEER_SLOW,  /* one that is opened takes its time (conn_is_slow): when there is nobody else */
    PEER_OPENS, /* connecting, or about to */
    PEER_READY,
};
/* May it be called?  With `live_only` (for unlisted providers) only over a connection that is READY now. */
enum peer_use peer_use(const struct peer *p, bool live_only) NONNULL;

/* Is it connected?  If not, connecting is begun where back-off allows; nobody waits for it.  Of a worker's thousands
 * that are down WCTX_DIALS_PER_S are dialled in a second. */
bool peer_dial(struct peer *p) NONNULL;
/* When the latest connection stood, in the worker's ms; 0 = never. */
uint64_t peer_ready_since(const struct peer *p) NONNULL MUST_CHECK;
/* Connections that do not answer a heartbeat within a second are closed. */
void peer_probe(struct peer *p) NONNULL;

/* Was the last that was heard of the provider a refusal, an end of the connection or a goodbye?  False for one
 * that is merely silent, or was never asked. */
bool peer_gone(const struct peer *p) NONNULL;

unsigned peer_in_flight(const struct peer *p) NONNULL;

/* For /providers: name of the state, number of connections, last error text, … */
struct peer_info {
    const char *state;
    unsigned connections;
    unsigned in_flight;
    uint64_t backoff_ms;    /* left */
    const char *last_error; /* "" = none */
};
void peer_info(const struct peer *p, struct peer_info *out) NONNULL;
/* Calls `f` for every connection of the worker. */
void peers_each_conn(struct peers *ps,
                     void (*f)(const union address *a, const struct conn *c, void *ctx), void *ctx)
    __attribute__((nonnull(1, 2)));
