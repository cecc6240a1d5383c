#include "gateway/turn.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "gateway/conn.h"

enum {
    RUNS_PER_TURN = 8,
    EMPTY_TURNS_MAX = 16, /* then the spin brake */
    MANY_SUSPENDED =
        2000, /* each run walks all of them, some 11 ns each: one run per millisecond */
    BATCH_US = 1000,
};

static void take_time(struct turn *t)
{
    t->w->now_ms = clock_ms();
    t->w->wall_ms = wall_ms();
    t->http->now_ms = t->w->now_ms;
}

static void run_all(struct turn *t)
{
    t->http->need_run = false;
    for (unsigned i = 0; i < t->n_listeners; i++) {
        if (MHD_run(t->listeners[i].daemon) != MHD_YES)
            t->http->activity++;
    }
}

/* Does the library hold connections that are ready although its epoll descriptor is quiet?  Sleeping
 * now would stall them until the next timer: the lost wake-up of docs/ARCHITECTURE.md. */
static bool has_ready(const struct turn *t)
{
    for (unsigned i = 0; i < t->n_listeners; i++) {
        MHD_UNSIGNED_LONG_LONG ms = 0;

        if (MHD_get_timeout(t->listeners[i].daemon, &ms) == MHD_YES && ms == 0)
            return true;
    }
    return false;
}

static void set_braking(struct turn *t, bool on)
{
    if (t->braking == on)
        return;
    t->braking = on;
    t->empty_turns = 0;
    if (on) {
        counter_add(&t->http->stats.brakes, 1);
        ev_timer_again(t->w->loop, &t->brake);
    } else {
        ev_timer_stop(t->w->loop, &t->brake);
    }
}

/* Ready connections for which no callback ever runs: the library spins on input it cannot use. */
static void watch_for_spin(struct turn *t, bool ready)
{
    bool moved = t->http->activity != t->seen_activity;

    t->seen_activity = t->http->activity;
    if (!ready || moved) {
        t->empty_turns = 0;
        if (moved || !ready)
            set_braking(t, false);
        return;
    }
    if (++t->empty_turns >= EMPTY_TURNS_MAX)
        set_braking(t, true);
}

static bool must_batch(struct turn *t)
{
    if (t->http->n_suspended < MANY_SUSPENDED || clock_us() - t->last_run_us >= BATCH_US)
        return false;
    if (!ev_is_active(&t->batch)) {
        ev_timer_set(&t->batch, 0.001, 0.);
        ev_timer_start(t->w->loop, &t->batch);
    }
    return true;
}

static void run_library(struct turn *t)
{
    bool ready = false;

    if (t->http->need_run && must_batch(t))
        return;
    for (int i = 0; i < RUNS_PER_TURN; i++) {
        ready = has_ready(t);
        if (!t->http->need_run && (!ready || t->braking))
            break;
        run_all(t);
        if (t->http->linger.n != 0)
            break; /* these are always ready: the idle watcher brings the next turn */
    }
    t->last_run_us = t->http->n_suspended >= MANY_SUSPENDED ? clock_us() : 0;
    ready = has_ready(t);
    watch_for_spin(t, ready);
    if (ready && !t->braking)
        ev_idle_start(t->w->loop, &t->idle);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *e, int events)
{
    struct turn *t = container_of(e, struct turn, prepare);

    run_library(t);
    conn_flush_all(t->w);
}

static void on_check(struct ev_loop *loop, ev_check *e, int events)
{
    take_time(container_of(e, struct turn, check));
}

/* Being active for one turn is all it is for. */
static void on_idle(struct ev_loop *loop, ev_idle *e, int events)
{
    struct turn *t = container_of(e, struct turn, idle);

    ev_idle_stop(loop, e);
    t->http->need_run = true;
}

static void on_readable(struct ev_loop *loop, ev_io *e, int events)
{
    struct turn_listener *l = container_of(e, struct turn_listener, io);
    struct exchanges *h = l->home->http;

    /* one run for what clients and what providers sent in this turn */
    h->need_run = true;
    if (h->n_suspended < MANY_SUSPENDED)
        return;
    if (MHD_run(l->daemon) != MHD_YES)
        l->home->http->activity++;
}

static void on_brake(struct ev_loop *loop, ev_timer *e, int events)
{
    struct turn *t = container_of(e, struct turn, brake);

    run_all(t);
    exchanges_cut_stuck(t->http);
}

static void on_batch(struct ev_loop *loop, ev_timer *e, int events)
{
    struct turn *t = container_of(e, struct turn, batch);

    t->http->need_run = true;
}

static void on_tick(struct ev_loop *loop, ev_timer *e, int events)
{
    struct turn *t = container_of(e, struct turn, tick);

    exchanges_sweep(t->http);
    t->http->need_run = true; /* the library's own timeouts fire only inside MHD_run */
    t->on_tick(t);
}

void turn_start(struct turn *t, struct wctx *w, struct exchanges *http,
                void (*tick)(struct turn *t))
{
    *t = (struct turn){.w = w, .http = http, .on_tick = tick};
    take_time(t);

    ev_check_init(&t->check, on_check);
    ev_set_priority(&t->check, EV_MAXPRI);
    ev_prepare_init(&t->prepare, on_prepare);
    ev_idle_init(&t->idle, on_idle);
    ev_timer_init(&t->tick, on_tick, 0.1, 0.1);
    ev_timer_init(&t->brake, on_brake, 0., 0.01);
    ev_timer_init(&t->batch, on_batch, 0.001, 0.);
    ev_check_start(w->loop, &t->check);
    ev_prepare_start(w->loop, &t->prepare);
    ev_timer_start(w->loop, &t->tick);
}

bool turn_listen(struct turn *t, int fd)
{
    struct turn_listener *l = &t->listeners[t->n_listeners];
    const union MHD_DaemonInfo *info = NULL;

    ASSERT(t->n_listeners < TURN_LISTENERS_MAX);

    *l = (struct turn_listener){.home = t, .fd = fd, .daemon = exchanges_listen(t->http, fd)};
    if (l->daemon == NULL) {
        close(fd);
        return false;
    }
    info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    ASSERT(info != NULL);
    ev_io_init(&l->io, on_readable, info->epoll_fd, EV_READ);
    ev_io_start(t->w->loop, &l->io);
    t->n_listeners++;
    return true;
}

void turn_quiesce(struct turn *t)
{
    for (unsigned i = 0; i < t->n_listeners; i++) {
        struct turn_listener *l = &t->listeners[i];

        if (l->fd < 0)
            continue;
        /* what waits in the backlog is still ours: take it before the socket goes */
        for (int n = 0; n < RUNS_PER_TURN; n++) {
            if (MHD_run(l->daemon) != MHD_YES)
                break;
        }
        l->fd = -1;
        MHD_socket fd = MHD_quiesce_daemon(l->daemon);

        if (fd >= 0)
            close(fd);
    }
}

void turn_stop(struct turn *t)
{
    ASSERT(t->http->n_suspended == 0); /* the library would abort */

    for (unsigned i = 0; i < t->n_listeners; i++) {
        ev_io_stop(t->w->loop, &t->listeners[i].io);
        MHD_stop_daemon(t->listeners[i].daemon);
    }
    t->n_listeners = 0;
    ev_check_stop(t->w->loop, &t->check);
    ev_prepare_stop(t->w->loop, &t->prepare);
    ev_idle_stop(t->w->loop, &t->idle);
    ev_timer_stop(t->w->loop, &t->tick);
    ev_timer_stop(t->w->loop, &t->brake);
    ev_timer_stop(t->w->loop, &t->batch);
}
