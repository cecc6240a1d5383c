/*
 * The life of one call: arguments encoded, one or more tries at providers, an outcome.
 *
 *   START --> WAIT_PROVIDERS --> PICK --> WAIT_CONN --> SENT --> END
 *      +-------------------------^  ^         |          |       ^
 *                                   +---------+-- retry -+       |
 *      any state ------------------ failure, deadline -----------+
 *
 * A call knows nothing of HTTP: httpd.c makes the answer from its outcome, `dubbogate call` prints it.
 * It has one timer for its whole life.  The first end wins: after END every event is late.
 * A call belongs to one worker; no function here may be called from another thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "base/buf.h"
#include "base/list.h"
#include "codec/reply.h"
#include "gateway/balance.h"
#include "gateway/outcome.h"
#include "gateway/outlier.h"
#include "gateway/problem.h"
#include "gateway/refs.h"
#include "gateway/wctx.h"

enum call_state {
    CALL_START,
    CALL_WAIT_PROVIDERS, /* no list of this reference yet */
    CALL_PICK,           /* choose provider and connection; left at once */
    CALL_WAIT_CONN,      /* frame is at a connection that is still being opened */
    CALL_SENT,           /* frame handed to the connection, id in its in-flight table */
    CALL_END,            /* outcome known */
    CALL_STATES,         /* must stay last */
};

enum { CALL_TRIES_MAX = 6, CALL_WAIT_LIST_MS = 3000 };

struct call;
struct calls;
struct cluster_run;

/* What the caller decides before the call starts; texts live as long as the call. */
struct call_plan {
    struct ref *ref;
    struct str method;      /* Java method name */
    uint32_t timeout_ms;    /* for the whole call, retries included */
    bool timeout_explicit;  /* false: a provider's own timeout wins over timeout_ms */
    bool timeout_of_client; /* the request named it: nothing wins over it */
    uint32_t max_timeout_ms;
    uint32_t per_try_timeout_ms; /* 0 = what is left of the timeout */
    unsigned attempts;   /* further tries after the first, not counting those that reached nobody */
    unsigned conditions; /* bit set of enum retry_condition */
    bool idempotent;
    unsigned idempotent_conditions;
    unsigned budget_percent;
    unsigned budget_min;
    unsigned max_requests;              /* in flight per reference, this worker */
    unsigned max_requests_per_provider; /* this worker */
    struct outlier_policy outlier;
    bool one_way;
    const struct balancer *balancer; /* NULL: the provider's wish, else p2c */
    struct balance_wish wish;
    const struct reply_opts *reply;
    /* Argument `index` as Java prints it, for rules; called with call.user.  NULL: nobody can say. */
    bool (*argument)(void *user, unsigned index, struct str *out);
};

struct call {
    struct list link; /* calls->live, or the pool */
    struct calls *home;
    struct call_plan plan;
    enum call_state state;
    struct buf middle;      /* invoke_middle bytes */
    struct buf attachments; /* entries of this call, no begin and end */
    struct buf *json;       /* where the result goes; the owner's */
    uint64_t start_us;
    uint64_t deadline_ms;
    ev_timer timer;
    struct flight flight;
    struct ref_waiter waiter;
    struct endpoint *endpoint; /* of the current or last try; counted while the try runs */
    unsigned balance_slot;     /* of the current try */
    bool trial;                /* it tries an ejected provider (outlier.h) */
    struct endpoint *tried[CALL_TRIES_MAX];
    uint64_t try_start_us;
    uint64_t provider_us; /* time of the last try */
    unsigned tries;
    unsigned unreached;  /* tries among them that reached no provider */
    bool retrying;       /* holds a share of the retry budget */
    enum outcome failed; /* of the last try; stands when there is nobody else to ask */
    enum retry_condition failed_why;
    bool counted;         /* in ref->in_flight */
    enum outcome outcome; /* OUTCOME_OK: `kind` says value or null */
    enum reply_kind kind;
    unsigned cycles;
    char provider[72]; /* host:port of the last try, for logs only */
    struct problem problem;

    /* The list is here and so are the definitions: the last word on the arguments.  NULL: they are settled.  False:
     * `problem` says why the call ends. */
    bool (*on_known)(struct call *c);
    void (*on_end)(
        struct call *c); /* exactly once; the owner then calls call_free when it is done */
    reply_attachment_fn on_attachment; /* may be NULL */
    void *user;
    /* Of a call that others run for (cluster.h): ends them.  NULL = none. */
    void (*cancel)(struct call *c);
    struct cluster_run *run;
    enum outcome swallowed; /* the failure that a good outcome stands for; OUTCOME_OK = none */
};

/* All calls of one worker. */
struct calls {
    struct wctx *w;
    struct reply_decoder *decoder;
    struct list live;
    struct list pool;
    unsigned in_state[CALL_STATES];
    unsigned in_flight;
    unsigned retries_in_flight;
    struct counter started;
    struct counter ended[OUTCOMES];
    struct counter retries[RETRY_CONDITIONS];
    struct counter budget_exhausted;
};

void calls_init(struct calls *cs, struct wctx *w) NONNULL;
void calls_free(struct calls *cs) NONNULL;

/* A clean call with empty buffers; fill plan, middle, attachments, json and the hooks, then start. */
struct call *call_new(struct calls *cs) NONNULL MUST_CHECK;
/* Runs until it has to wait; on_end may be called before this returns. */
void call_start(struct call *c) NONNULL;
/* Ends it from outside (drain, client gone). */
void call_abort(struct call *c, enum outcome why) NONNULL;
/* Only before call_start or after on_end. */
void call_free(struct call *c) NONNULL;
