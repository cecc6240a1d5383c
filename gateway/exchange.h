/*
 * HTTP requests and their answers at libmicrohttpd: the only files that know the library are exchange,
 * exchange_answer, turn and admin.
 *
 * One `struct exchanges` per worker: its daemons (one per listener), the clients' connections by phase,
 * and pools of exchanges and output buffers that are used again, so that a warm worker allocates nothing
 * of its own per request.  All of it belongs to the worker's thread; every callback runs there.
 *
 * A connection is in one phase at a time; each phase has its list, ordered by the time of entry, and its
 * deadline (docs/ROBUSTNESS.md section 2.4):
 *
 *   HEADERS -> BODY -> CALL -> WRITE -> IDLE -> HEADERS …
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <microhttpd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/stats.h"
#include "gateway/door.h"
#include "gateway/linger.h"
#include "gateway/request.h"

enum phase { PHASE_HEADERS, PHASE_BODY, PHASE_CALL, PHASE_WRITE, PHASE_IDLE, PHASES };

struct exchanges;

/* One TCP connection of a client. */
struct client {
    struct list link; /* in exchanges->phases[phase] */
    struct exchanges *home;
    struct MHD_Connection *mhd;
    uint64_t since_ms; /* when it entered the phase */
    enum phase phase;
    int fd;
    uint64_t requests;
    int unread;               /* stuck check: bytes waiting in the kernel … */
    uint64_t unread_since_ms; /* … and since when their number is the same */
    char address[48];         /* numeric, of the TCP peer; "unix" for a unix socket */
};

enum { EXCHANGE_HEADERS_MAX = 512 };

/* For what comes later: not at all, as a ready connection of the library, or out of its sight (linger.h). */
enum wait { WAIT_NONE, WAIT_LINGERING, WAIT_SUSPENDED };

struct exchange {
    struct list link; /* pool */
    struct client *client;
    struct request request;
    struct door_verdict verdict;
    struct arena arena; /* headers and whatever the call adds; reset between requests */
    struct buf target;  /* request target as sent */
    struct buf body;
    size_t max_body;   /* of the route; set by on_head */
    uint64_t start_us; /* first byte of the request line seen */
    bool seen_head;
    bool answered;
    bool close; /* the connection ends with this answer */
    enum wait wait;
    unsigned turns;   /* lingered so far */
    uint16_t status;  /* of the answer; 0 = none */
    size_t bytes_out; /* body of the answer */
    void *user;       /* the call's */
};

/* Output buffers travel with the answer and come back when it is written. */
struct out_buf {
    struct list link;
    struct exchanges *home;
    struct buf buf;
};

struct exchange_limits {
    uint32_t timeout_ms[PHASES]; /* PHASE_CALL unused: calls have their own deadline */
    size_t request_header;       /* the library's pool per connection */
    size_t request_body;
    size_t response_body;
    size_t memory;               /* bodies being received, this worker */
    unsigned connections;        /* this worker */
    uint64_t keepalive_requests; /* 0 = no limit */
    bool chunked_requests;
};

struct exchange_hooks {
    /* Head complete and through the door.  Answers (exchange_answer) to refuse, or sets max_body. */
    void (*on_head)(struct exchange *x);
    /* Request complete.  Answers now, or calls exchange_wait and answers later. */
    void (*on_request)(struct exchange *x);
    /* The door refused: answer with this. */
    void (*on_refused)(struct exchange *x, const struct problem *p);
    /* Answer written, or the connection ended (`x->status` 0: without any answer).  Not called while the
     * exchange is suspended; while it lingers it means that the client left. The exchange is gone afterwards. */
    void (*on_done)(struct exchange *x, bool complete);
    /* Is this TCP peer one of trusted_proxies? */
    bool (*is_trusted)(void *owner, const struct sockaddr *peer);
};

struct exchange_stats {
    struct counter connections_total;
    struct counter requests_total;
    struct counter timeouts[PHASES];
    struct counter stuck;
    struct counter brakes;
};

struct exchanges {
    struct list phases[PHASES];
    unsigned n_phase[PHASES];
    struct list free_exchanges;
    struct list free_bufs;
    unsigned n_free_bufs;
    struct exchange_limits limits;
    const struct exchange_hooks *hooks;
    void *owner;
    struct exchange_stats stats;
    uint64_t now_ms;   /* set by the owner once per turn */
    uint64_t activity; /* callbacks that ran: the spin brake watches it */
    size_t body_bytes; /* of requests being received */
    unsigned n_suspended;
    struct lingering linger;
    bool need_run; /* something was resumed: MHD_run before the loop sleeps */
    bool draining; /* every answer says Connection: close */
};

void exchanges_init(struct exchanges *h, const struct exchange_limits *limits,
                    const struct exchange_hooks *hooks, void *owner) NONNULL;
/* Every daemon must be stopped. */
void exchanges_free(struct exchanges *h) NONNULL;

/* A daemon on a listening socket (which it owns from now on); NULL when the library refuses. */
struct MHD_Daemon *exchanges_listen(struct exchanges *h, int fd) NONNULL MUST_CHECK;

struct out_buf *out_buf_get(struct exchanges *h) NONNULL MUST_CHECK;
void out_buf_put(struct out_buf *b) NONNULL;

/*
 * Sends the answer.  `body` (may be NULL) changes hands.  Also for one that waits, whose
 * wait ends; such an exchange may be gone afterwards.  False when the library refuses: the connection is closed.
 */
bool exchange_answer(struct exchange *x, unsigned status, const struct header *headers,
                     size_t n_headers, struct out_buf *body) __attribute__((nonnull(1)));
/* Inside on_request only: the answer will come later. */
void exchange_wait(struct exchange *x) NONNULL;

/* Every 100 ms: cuts connections whose phase took too long. */
void exchanges_sweep(struct exchanges *h) NONNULL;
/* While the spin brake is on: cuts connections whose body does not move although bytes wait. */
void exchanges_cut_stuck(struct exchanges *h) NONNULL;
/* Drain: closes connections without a request. */
void exchanges_close_idle(struct exchanges *h) NONNULL;
unsigned exchanges_clients(const struct exchanges *h) NONNULL;
