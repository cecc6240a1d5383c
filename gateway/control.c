#include "gateway/control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "gateway/admin.h"
#include "gateway/cmd.h"
#include "gateway/listen.h"
#include "gateway/notify.h"
#include "gateway/wiring.h"

enum { HEALTH_MS = 5000, NOTIFY_READY_MS = 10000 };

/* ---------------------------------------------------------------- readiness */

bool control_is_ready(const struct control *c)
{
    struct registry_numbers n;

    if (c->phase == CONTROL_READY)
        return true;
    if (c->phase != CONTROL_STARTING)
        return false;
    registry_numbers(c->registry, &n);
    return n.waiting == 0;
}

static bool knows_a_list(const struct registry_numbers *n)
{
    return n->references[REFERENCE_READY] + n->references[REFERENCE_EMPTY] +
               n->references[REFERENCE_SNAPSHOT] !=
           0;
}

static void print_degraded(const struct registry_numbers *n, struct buf *out)
{
    const char *comma = "";

    if (n->disconnected != 0) {
        buf_printf(out, "\"%u of %u registries not connected; %s\"", n->disconnected,
                   n->disconnected + n->connected,
                   knows_a_list(n) ? "calls use the last known lists"
                                   : "no list of providers is in use");
        comma = ",";
    }
    if (n->references[REFERENCE_SNAPSHOT] != 0) {
        buf_printf(out, "%s\"%llu references served from the saved list\"", comma,
                   (unsigned long long)n->references[REFERENCE_SNAPSHOT]);
        comma = ",";
    }
    if (!n->snapshot_writable) {
        buf_printf(out, "%s\"provider lists cannot be saved\"", comma);
        comma = ",";
    }
    if (n->bad_rules != 0)
        buf_printf(out, "%s\"%u published rules are not obeyed as they stand\"", comma,
                   n->bad_rules);
}

void control_print_ready(const struct control *c, struct buf *out)
{
    struct registry_numbers n;

    registry_numbers(c->registry, &n);
    if (c->phase >= CONTROL_DRAINING) {
        buf_printf(out, "\"status\":\"draining\"");
        return;
    }
    if (!control_is_ready(c)) {
        buf_printf(out,
                   "\"status\":\"starting\",\"waiting\":[\"%u references without any list of "
                   "providers: wanted or reading in dubbogate refs\"]",
                   n.waiting);
        return;
    }
    buf_printf(out, "\"status\":\"ready\",\"degraded\":[");
    print_degraded(&n, out);
    buf_add_u8(out, ']');
}

static void look_if_ready(struct control *c)
{
    bool late = clock_ms() - c->started_ms > NOTIFY_READY_MS;

    if (c->phase != CONTROL_STARTING || !(control_is_ready(c) || late))
        return;
    /* a registry outage must not fail `systemctl start` */
    notify_send("READY=1\nSTATUS=serving");
    if (control_is_ready(c)) {
        c->phase = CONTROL_READY;
        log_notice("control", "ready");
    }
}

/* ---------------------------------------------------------------- jobs for every worker */

struct reload_job {
    struct job job; /* first member */
    struct settings *settings;
};

static void run_reload(struct worker *w, struct job *j)
{
    struct reload_job *r = container_of(j, struct reload_job, job);

    httpd_use_settings(&w->httpd, r->settings);
    settings_put(r->settings);
    free(r);
}

static void run_reopen(struct worker *w, struct job *j)
{
    accesslog_reopen(&w->httpd.log);
    free(j);
}

struct stop_job {
    struct job job; /* first member */
    uint32_t timeout_ms;
};

static void run_stop(struct worker *w, struct job *j)
{
    struct stop_job *s = container_of(j, struct stop_job, job);

    worker_begin_stop(w, s->timeout_ms);
    free(s);
}

/* Clients are told with their next answer to go elsewhere. */
static void run_drain(struct worker *w, struct job *j)
{
    w->httpd.http.draining = true;
    free(j);
}

static void post_reload(struct control *c, struct settings *s)
{
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct reload_job *r = xcalloc(1, sizeof(*r));

        r->job.run = run_reload;
        r->settings = settings_get(s);
        worker_post(&c->workers[i], &r->job);
    }
}

static void post_stop(struct control *c, uint32_t timeout_ms)
{
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct stop_job *s = xcalloc(1, sizeof(*s));

        s->job.run = run_stop;
        s->timeout_ms = timeout_ms;
        worker_post(&c->workers[i], &s->job);
    }
}

static void post_each(struct control *c, void (*run)(struct worker *w, struct job *j))
{
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct job *j = xcalloc(1, sizeof(*j));

        j->run = run;
        worker_post(&c->workers[i], j);
    }
}

void control_reopen_logs(struct control *c)
{
    log_reopen();
    post_each(c, run_reopen);
}

/* ---------------------------------------------------------------- reload */

static void configure_registry(struct control *c)
{
    struct arena a;
    size_t n = 0;
    struct wanted_service *services = NULL;

    arena_init(&a);
    services = wiring_services(c->settings, &a, &n);
    registry_configure(c->registry, services, n); /* copies what it keeps */
    arena_free(&a);
}

static void take_log_settings(const struct settings *s)
{
    struct log_opts lo;
    struct err e = {0};

    wiring_log(s, &lo);
    if (!log_open(&lo, &e))
        log_error("control", "%s; the error log stays where it is", e.text);
}

static void warn_of_restart_keys(struct control *c, const struct settings *new_settings)
{
    const char *keys[32];
    size_t n = settings_restart_keys(c->at_start, new_settings, keys, ARRAY_LEN(keys));

    c->restart_pending = n != 0;
    for (size_t i = 0; i < n; i++)
        log_always(LOG_WARN, "control", "\"%s\" changed; takes effect after a restart", keys[i]);
}

bool control_reload(struct control *c)
{
    struct config_errors errs = {0};
    struct settings *s = NULL;

    buf_truncate(&c->reload_errors, 0);
    notify_send("RELOADING=1");
    s = settings_load(c->config_file, &errs);
    if (s == NULL) {
        config_errors_print(&errs, &c->reload_errors);
        log_always(LOG_ERROR, "control", "reload failed, the old configuration stays: " STR_FMT,
                   STR_ARG(str_sub(buf_str(&c->reload_errors), 0, 1500)));
        c->reloads_failed++;
        notify_send("READY=1\nSTATUS=reload failed, old configuration in use");
        return false;
    }
    warn_of_restart_keys(c, s);
    take_log_settings(s);
    settings_put(c->settings);
    c->settings = s;
    /* workers first: they know a new service when its first list comes */
    post_reload(c, s);
    configure_registry(c);
    c->reloads_ok++;
    c->last_reload_wall_ms = wall_ms();
    log_always(LOG_NOTICE, "control", "configuration %s in use", s->hash);
    notify_send("READY=1\nSTATUS=serving");
    return true;
}

/* ---------------------------------------------------------------- drain */

static void close_listeners(struct control *c)
{
    log_notice("control", "listeners close; calls in flight have %u ms",
               c->settings->process.drain_timeout_ms);
    post_stop(c, c->settings->process.drain_timeout_ms);
}

static void on_drain_delay(struct ev_loop *loop, ev_timer *t, int events)
{
    close_listeners(container_of(t, struct control, drain_timer));
}

void control_drain(struct control *c)
{
    uint32_t delay_ms = c->settings->process.drain_delay_ms;

    if (c->phase >= CONTROL_DRAINING) {
        log_notice("control", "second stop signal: ends at once");
        post_stop(c, 0);
        return;
    }
    c->phase = CONTROL_DRAINING;
    notify_send("STOPPING=1\nSTATUS=draining");
    if (delay_ms == 0) {
        close_listeners(c);
        return;
    }
    log_notice("control", "draining; listeners close in %u ms", delay_ms);
    post_each(c, run_drain);
    ev_timer_set(&c->drain_timer, delay_ms / 1000., 0.);
    ev_timer_start(c->loop, &c->drain_timer);
}

/* ---------------------------------------------------------------- mail and signals */

struct stopped_mail {
    struct job job; /* first member; run == NULL tells it from a job that ran */
};

static void on_worker_stopped(struct worker *w)
{
    struct control *c = w->owner;
    struct stopped_mail *m = xcalloc(1, sizeof(*m));

    mailbox_push(&c->box.box, &m->job.mail);
}

static void on_job_mail(struct control *c, struct job *j)
{
    if (j->run != NULL) {
        gather_job_back(j);
        return;
    }
    free(j);
    if (--c->n_running == 0)
        ev_break(c->loop, EVBREAK_ALL);
}

static void take_registry_mail(struct control *c)
{
    for (struct mail *m = mailbox_take(&c->registry_box.box), *next = NULL; m != NULL; m = next) {
        struct registry_mail *r = container_of(m, struct registry_mail, mail);

        next = m->next;
        if (r->kind == REGISTRY_MAIL_REPORT && c->phase != CONTROL_STOPPED)
            admin_on_report(c->admin, r);
        registry_mail_free(r);
    }
}

static void on_wake(struct ev_loop *loop, ev_async *a, int events)
{
    struct control *c = container_of(a, struct control, wake);

    take_registry_mail(c);
    for (struct mail *m = mailbox_take(&c->box.box), *next = NULL; m != NULL; m = next) {
        next = m->next;
        on_job_mail(c, container_of(m, struct job, mail));
    }
    look_if_ready(c);
}

static void log_status(struct control *c)
{
    struct registry_numbers n;
    struct buf b;

    registry_numbers(c->registry, &n);
    buf_init(&b, 4096);
    control_print_ready(c, &b);
    log_notice("control", "status " STR_FMT "; %llu subscriptions, %u registries connected",
               STR_ARG(buf_str(&b)), (unsigned long long)n.subscriptions_total, n.connected);
    buf_free(&b);
}

static void on_signal(struct ev_loop *loop, ev_signal *s, int events)
{
    struct control *c = s->data;

    switch (s->signum) {
    case SIGHUP:
        control_reload(c);
        break;
    case SIGUSR1:
        control_reopen_logs(c);
        break;
    case SIGUSR2:
        log_status(c);
        break;
    default: /* TERM, QUIT, INT */
        control_drain(c);
        break;
    }
}

static void on_tick(struct ev_loop *loop, ev_timer *t, int events)
{
    look_if_ready(container_of(t, struct control, tick));
}

static void start_watchers(struct control *c)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGQUIT, SIGINT, SIGUSR1, SIGUSR2};

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        ev_signal_init(&c->signals[i], on_signal, signals[i]);
        c->signals[i].data = c;
        ev_signal_start(c->loop, &c->signals[i]);
    }
    ev_async_init(&c->wake, on_wake);
    ev_async_start(c->loop, &c->wake);
    loop_box_init(&c->box, c->loop, &c->wake);
    loop_box_init(&c->registry_box, c->loop, &c->wake);
    ev_timer_init(&c->tick, on_tick, 0.1, 0.1);
    ev_timer_start(c->loop, &c->tick);
    ev_timer_init(&c->drain_timer, on_drain_delay, 0., 0.);
}

/* ---------------------------------------------------------------- start and stop */

static void raise_file_limit(uint32_t wanted)
{
    struct rlimit r;

    if (wanted == 0 || getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= wanted)
        return;
    r.rlim_cur = r.rlim_max < wanted ? r.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur < wanted)
        log_warn("control", "process.max_open_files: the system allows only %llu",
                 (unsigned long long)r.rlim_cur);
}

static bool check_free(const struct settings *s, struct err *e)
{
    for (size_t i = 0; i < s->n_listen; i++) {
        if (!listen_is_free(s->listen[i].address, e))
            return false;
    }
    return true;
}

/* Descriptors for worker number `i`: an own socket on a shared port, or a copy of the unix socket's. */
static bool open_listeners(const struct settings *s, const int *first, int *fds, struct err *e)
{
    for (size_t i = 0; i < s->n_listen; i++) {
        const struct listen_opts o = {
            .backlog = (int)s->listen[i].backlog, .mode = s->listen[i].mode, .shared = true};

        if (first != NULL && listen_is_unix(s->listen[i].address)) {
            fds[i] = fcntl(first[i], F_DUPFD_CLOEXEC, 0);
            if (fds[i] < 0)
                err_set(e, "no descriptor for one more worker: %s", strerror(errno));
        } else {
            fds[i] = listen_open(s->listen[i].address, &o, e);
        }
        if (fds[i] < 0)
            return false;
    }
    return true;
}

/* A reload may change the addresses, but not the sockets. */
static void note_listening(struct control *c)
{
    const struct settings *s = c->settings;

    c->listening = xcalloc(s->n_listen + 1, sizeof(*c->listening));
    for (size_t i = 0; i < s->n_listen; i++)
        c->listening[i] = strndup(s->listen[i].address.p, s->listen[i].address.n);
}

static void forget_listening(struct control *c)
{
    for (char **at = c->listening; at != NULL && *at != NULL; at++) {
        listen_remove(str_from(*at));
        free(*at);
    }
    free((void *)c->listening);
    c->listening = NULL;
}

static bool start_workers(struct control *c, struct err *e)
{
    int first[TURN_LISTENERS_MAX];
    int fds[TURN_LISTENERS_MAX];
    const struct settings *s = c->settings;

    if (s->n_listen > TURN_LISTENERS_MAX) {
        err_set(e, "at most %d listeners", TURN_LISTENERS_MAX);
        return false;
    }
    c->workers = xcalloc(c->n_workers, sizeof(*c->workers));
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct worker *w = &c->workers[i];
        const struct worker_opts o = {
            .index = i,
            .settings = c->settings,
            .registry = c->registry,
            .listen_fds = fds,
            .n_listen_fds = (unsigned)s->n_listen,
        };

        if (!open_listeners(s, i != 0 ? first : NULL, fds, e))
            return false;
        if (i == 0) {
            memcpy(first, fds, s->n_listen * sizeof(*fds));
            note_listening(c);
        }
        w->on_stopped = on_worker_stopped;
        w->owner = c;
        if (!worker_start(w, &o, e))
            return false;
        c->n_running++;
    }
    return true;
}

static bool start(struct control *c, struct err *e)
{
    struct registry_opts ro;
    struct arena a;

    if (!check_free(c->settings, e))
        return false;
    raise_file_limit(c->settings->process.max_open_files);
    arena_init(&a);
    wiring_registry(c->settings, &a, &ro);
    ro.control = &c->registry_box.box;
    c->registry = registry_start(&ro, e);
    arena_free(&a);
    if (c->registry == NULL || !start_workers(c, e))
        return false;
    configure_registry(c);
    return admin_start(c->admin, c, e);
}

static void write_pid_file(const char *path)
{
    FILE *f = path[0] != '\0' ? fopen(path, "we") : NULL;

    if (path[0] == '\0')
        return;
    if (f == NULL) {
        log_warn("control", "cannot write process.pid_file %s", path);
        return;
    }
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
}

static void stop(struct control *c)
{
    for (unsigned i = 0; i < c->n_workers && c->workers != NULL; i++)
        worker_join(&c->workers[i]);
    c->phase = CONTROL_STOPPED;
    forget_listening(c);
    admin_stop(c->admin);
    registry_stop(c->registry); /* until then it may write to every mailbox and wake its loop */
    take_registry_mail(c);      /* what came after the loop ended */
    for (unsigned i = 0; i < c->n_workers && c->workers != NULL; i++)
        worker_free(&c->workers[i]);
    free(c->workers);
    if (c->settings->process.pid_file.n != 0)
        unlink(c->settings->process.pid_file.p);
    log_notice("control", "stopped");
}

static struct settings *load(const char *file)
{
    struct config_errors errs = {0};
    struct settings *s = settings_load(file, &errs);
    struct buf text;

    buf_init(&text, 65536);
    config_errors_print(&errs, &text);
    fprintf(stderr, STR_FMT, STR_ARG(buf_str(&text)));
    buf_free(&text);
    return s;
}

int control_run(const char *config_file)
{
    struct admin admin = {0};
    struct control c = {
        .config_file = config_file,
        .loop = ev_default_loop(EVFLAG_AUTO),
        .admin = &admin,
        .started_wall_ms = wall_ms(),
        .started_ms = clock_ms(),
        .settings = load(config_file),
    };
    struct err e = {0};

    if (c.settings == NULL)
        return EXIT_LOCAL;
    c.at_start = settings_get(c.settings);
    prctl(PR_SET_DUMPABLE, 0); /* tokens stay out of core files and /proc */
    take_log_settings(c.settings);
    buf_init(&c.reload_errors, 65536);
    c.n_workers = wiring_workers(c.settings);
    start_watchers(&c);
    log_notice("control", "dubbogate %s starts, configuration %s, %u workers", VERSION,
               c.settings->hash, c.n_workers);
    if (!start(&c, &e)) {
        log_error("control", "%s", e.text);
        fprintf(stderr, "dubbogate: %s\n", e.text);
        /* threads that run already hold what we would free */
        _exit(EXIT_LOCAL);
    }
    write_pid_file(c.settings->process.pid_file.p);
    ev_run(c.loop, 0);
    stop(&c);
    settings_put(c.settings);
    settings_put(c.at_start);
    buf_free(&c.reload_errors);
    ev_loop_destroy(c.loop);
    return EXIT_GOOD;
}
