/*
 * A worker: one thread with its own loop, HTTP daemons, provider connections, references, calls and
 * counters.  Workers share nothing but immutable, counted objects (settings, directories); everything
 * else reaches them by mail.
 *
 * Two mailboxes wake the same loop: the registry's mail and jobs.  A job is a function that the control
 * thread wants run inside the worker: reload, drain, reports.  It comes back to the sender when it ran,
 * so no foreign thread ever walks a worker's lists.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "base/mailbox.h"
#include "registry/registry.h"
#include "gateway/accesslog.h"
#include "gateway/httpd.h"
#include "gateway/turn.h"

struct worker;

struct job {
    struct mail mail; /* first member */
    void (*run)(struct worker *w, struct job *j);
    struct mailbox *reply_to; /* NULL: the job is freed by `run` */
};

/* A mailbox that wakes a libev loop; the loop's owner embeds it. */
struct loop_box {
    struct mailbox box;
    struct ev_loop *loop;
    ev_async *wake;
};

void loop_box_init(struct loop_box *b, struct ev_loop *loop, ev_async *wake) NONNULL;

struct worker {
    pthread_t thread;
    unsigned index;
    struct wctx w;
    struct loop_box registry_box;
    struct loop_box job_box;
    ev_async wake;
    struct turn turn;
    struct httpd httpd;
    struct counter alive_ms; /* time of the last turn, for /health */
    uint64_t last_second_ms;
    bool stopping; /* listeners are closed; ends when the last call has ended */
    uint64_t stop_at_ms;
    void (*on_stopped)(struct worker *w); /* in the worker's thread, last thing it does */
    void *owner;
};

struct worker_opts {
    unsigned index;
    struct settings *settings; /* a count of its own is taken */
    struct registry *registry;
    const int *listen_fds;
    unsigned n_listen_fds;
};

/* The thread runs when this returns true; the listening sockets are its own then. */
bool worker_start(struct worker *w, const struct worker_opts *opts,
                  struct err *e) NONNULL MUST_CHECK;
/* Any thread. */
void worker_post(struct worker *w, struct job *j) NONNULL;
/* Waits for the thread's end; the thread freed what it owned.  After a stop job. */
void worker_join(struct worker *w) NONNULL;
/* The mailboxes and their loop: after worker_join(), and when nobody writes to them any more. */
void worker_free(struct worker *w) NONNULL;

/* Inside a job: closes the listeners, lets calls end until `timeout_ms`, then ends the thread. */
void worker_begin_stop(struct worker *w, uint32_t timeout_ms) NONNULL;
