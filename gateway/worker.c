#include "gateway/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/hash.h"
#include "base/log.h"

static void wake_loop(struct mailbox *box)
{
    struct loop_box *b = container_of(box, struct loop_box, box);

    ev_async_send(b->loop, b->wake);
}

void loop_box_init(struct loop_box *b, struct ev_loop *loop, ev_async *wake)
{
    b->loop = loop;
    b->wake = wake;
    mailbox_init(&b->box, wake_loop);
}

static void run_jobs(struct worker *w)
{
    struct mail *m = mailbox_take(&w->job_box.box);

    while (m != NULL) {
        struct mail *next = m->next;
        struct job *j = container_of(m, struct job, mail);
        struct mailbox *reply_to = j->reply_to; /* `run` may free a job that nobody waits for */

        j->run(w, j);
        if (reply_to != NULL)
            mailbox_push(reply_to, &j->mail);
        m = next;
    }
}

static void on_wake(struct ev_loop *loop, ev_async *a, int events)
{
    struct worker *w = container_of(a, struct worker, wake);
    struct mail *m = mailbox_take(&w->registry_box.box);

    while (m != NULL) {
        struct mail *next = m->next;

        httpd_on_registry(&w->httpd, container_of(m, struct registry_mail, mail));
        m = next;
    }
    run_jobs(w);
}

static void end_if_done(struct worker *w)
{
    if (!w->stopping)
        return;
    exchanges_close_idle(&w->httpd.http);
    if (w->w.now_ms >= w->stop_at_ms)
        httpd_cut_calls(&w->httpd);
    if (exchanges_clients(&w->httpd.http) == 0 || w->w.now_ms >= w->stop_at_ms + 1000)
        ev_break(w->w.loop, EVBREAK_ALL);
}

static void on_tick(struct turn *t)
{
    struct worker *w = container_of(t, struct worker, turn);

    counter_set(&w->alive_ms, w->w.now_ms);
    httpd_tick(&w->httpd);
    if (w->w.now_ms - w->last_second_ms >= 1000) {
        w->last_second_ms = w->w.now_ms;
        refs_report(w->httpd.refs);
    }
    end_if_done(w);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    ev_run(w->w.loop, 0);

    /* nothing may be suspended when the daemons stop: the library would abort */
    httpd_cut_calls(&w->httpd);
    turn_stop(&w->turn);
    httpd_free(&w->httpd);
    if (w->on_stopped != NULL)
        w->on_stopped(w);
    return NULL;
}

static void init_loop(struct worker *w, unsigned index)
{
    w->index = index;
    w->w = (struct wctx){
        .index = index,
        .loop = ev_loop_new(EVFLAG_AUTO),
        .now_ms = clock_ms(),
        .wall_ms = wall_ms(),
        .recv_buffer = xrealloc(NULL, RECV_BUFFER_LEN),
        .random = hash_random_seed() | 1U,
        .owner = w,
    };
    if (w->w.loop == NULL)
        fatal("no event loop");
    list_init(&w->w.dirty);
    list_init(&w->w.dead);
    ev_async_init(&w->wake, on_wake);
    ev_async_start(w->w.loop, &w->wake);
    loop_box_init(&w->registry_box, w->w.loop, &w->wake);
    loop_box_init(&w->job_box, w->w.loop, &w->wake);
}

bool worker_start(struct worker *w, const struct worker_opts *opts, struct err *e)
{
    init_loop(w, opts->index);
    const struct httpd_opts ho = {
        .settings = opts->settings,
        .registry = opts->registry,
        .box = &w->registry_box.box,
    };

    registry_add_worker(opts->registry, &w->registry_box.box);
    if (!httpd_init(&w->httpd, &w->w, &ho, e))
        return false;
    turn_start(&w->turn, &w->w, &w->httpd.http, on_tick);
    for (unsigned i = 0; i < opts->n_listen_fds; i++) {
        if (!turn_listen(&w->turn, opts->listen_fds[i])) {
            err_set(e, "the HTTP library refuses a listening socket");
            return false;
        }
    }
    counter_set(&w->alive_ms, w->w.now_ms);
    int rc = pthread_create(&w->thread, NULL, thread_main, w);

    if (rc != 0)
        err_set(e, "cannot start a worker thread: %s", strerror(rc));
    return rc == 0;
}

void worker_post(struct worker *w, struct job *j)
{
    mailbox_push(&w->job_box.box, &j->mail);
}

void worker_join(struct worker *w)
{
    pthread_join(w->thread, NULL);
}

void worker_free(struct worker *w)
{
    for (struct mail *m = mailbox_take(&w->registry_box.box), *next = NULL; m != NULL; m = next) {
        next = m->next;
        registry_mail_free(container_of(m, struct registry_mail, mail));
    }
    ev_async_stop(w->w.loop, &w->wake);
    ev_loop_destroy(w->w.loop);
    free(w->w.recv_buffer);
}

void worker_begin_stop(struct worker *w, uint32_t timeout_ms)
{
    if (!w->stopping) {
        turn_quiesce(&w->turn);
        w->httpd.http.draining = true;
        exchanges_close_idle(&w->httpd.http);
    }
    w->stopping = true;
    w->stop_at_ms = clock_ms() + timeout_ms;
}
