#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/zk.h"

enum {
    RETRY_FIRST_MS = 1000,
    RETRY_MAX_MS = 30000,
    LOOP_CONNECTS = 5, /* so many connects … */
    LOOP_MS = 10000,   /* … in this time without an answer: the handle is of no use */
    STUCK_TIMEOUTS = 2,
    TELL_MS = 60000,
    DRAIN_STEP_US = 5000,
};

static const char *name_of(const struct zk_session *s)
{
    return s->zk->source->conf.name;
}

static struct numbers *numbers_of(const struct zk_session *s)
{
    return &s->zk->source->home->numbers;
}

static void set_connected(struct zk_session *s, bool on)
{
    bool all = true;

    if (s->connected == on)
        return;
    s->connected = on;
    if (!on)
        s->disconnected_ms = s->told_ms = clock_ms();
    list_each(l, &s->zk->sessions) {
        all = all && container_of(l, struct zk_session, link)->connected;
    }
    source_set_connected(s->zk->source, all);
}

void zk_session_works(struct zk_session *s)
{
    s->failures = 0;
    s->connects = 0;
}

/* ---------------------------------------------------------------- handles */

static void close_handle(struct zk_handle *h)
{
    /* ends the session, joins the library's threads */
    zookeeper_close(h->h); /* NOLINT(clang-analyzer-unix.Malloc): the one before left the list */
    /* calls that the library has dropped never come back; those that it answered are in the mailbox */
    list_each_safe(l, &h->ops) {
        struct zk_op *op = container_of(l, struct zk_op, link);

        if (!op->answered)
            zk_op_free(op);
    }
    list_remove(&h->link);
    h->closed = true; /* the last of them frees it */
    if (h->n_ops == 0)
        free(h);
}

static uint64_t back_off(const struct zk_session *s)
{
    uint64_t ms = RETRY_FIRST_MS;

    if (s->failures == 0)
        return 0;
    for (unsigned i = 1; i < s->failures && ms < RETRY_MAX_MS; i++)
        ms *= 2;
    ms = ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
    return ms * 4 / 5 + hash_random_seed() % (ms * 2 / 5 + 1);
}

static void open_handle(struct zk_session *s)
{
    const struct zk_target t = {
        .chroot = str_from(s->zk->source->conf.chroot),
        .auth = s->zk->auth,
        .session_timeout_ms = (int)s->zk->source->conf.session_timeout_ms,
        .on_log = zk_on_log,
    };
    struct zk_handle *h = xcalloc(1, sizeof(*h));
    uint64_t now = clock_ms();
    struct buf hosts;
    struct err e = {0};

    h->session = s;
    h->generation = ++s->generation;
    list_init(&h->ops);
    list_init(&h->link);
    buf_init(&hosts, 8192);
    zk_resolve_hosts(s->zk->hosts, s->zk->source->home->resolver, &hosts, &e);
    if (e.text[0] != '\0')
        log_warn("registry", "registry %s: a server is not used: %s", name_of(s), e.text);
    s->disconnected_ms = now;
    if (!hosts.failed && hosts.len != 0)
        h->h = zk_connect(buf_str(&hosts), &t, zk_watcher, h);
    buf_free(&hosts);
    if (h->h != NULL) {
        s->handle = h;
        return;
    }
    free(h);
    s->failures++;
    s->retry_at_ms = now + back_off(s);
    log_warn("registry", "registry %s: no server address can be used; again in %llu ms", name_of(s),
             (unsigned long long)(s->retry_at_ms - now));
}

/* The session is given up.  Its handle is closed once the calls in flight have come back. */
static void retire(struct zk_session *s)
{
    struct zk_handle *h = s->handle;

    s->handle = NULL;
    s->id = 0;
    set_connected(s, false);
    zk_config_lost(s);
    zk_paths_lost(s);
    zk_apps_lost(s);
    zk_consumer_lost(s);
    if (h == NULL)
        return;
    h->close_by_ms = clock_ms() + ZK_DRAIN_MS;
    list_add(&s->closing, &h->link);
}

static void renew(struct zk_session *s, const char *why)
{
    uint64_t now = clock_ms();

    log_warn("registry", "registry %s: new session: %s", name_of(s), why);
    retire(s);
    s->retry_at_ms = now + back_off(s); /* at once the first time */
    s->failures++;
    s->connects = 0;
    if (s->retry_at_ms <= now)
        open_handle(s);
}

struct zk_session *zk_session_new(struct zk *z)
{
    struct zk_session *s = xcalloc(1, sizeof(*s));

    s->zk = z;
    list_init(&s->link);
    list_init(&s->closing);
    list_init(&s->paths);
    list_init(&s->dirty);
    list_init(&s->apps);
    list_init(&s->app_reads);
    list_init(&s->instances);
    list_init(&s->instance_reads);
    list_init(&s->publish);
    list_init(&s->retry);
    list_init(&s->standing);
    list_add(&z->sessions, &s->link);
    s->timeout_ms = z->source->conf.session_timeout_ms;
    s->connects_since_ms = s->budget_ms = s->told_ms = clock_ms();
    source_set_connected(z->source, false); /* until this one is, too */
    open_handle(s);
    return s;
}

/* ---------------------------------------------------------------- session events */

struct zk_event {
    struct registry_post post; /* first member */
    struct zk_session *session;
    unsigned generation;
    int type;
    int state;
    int64_t id;
    int timeout_ms;
    union address server; /* AF_UNSPEC: not known */
    char path[];
};

/* The first answer after a connect: it shows that the connection works, and which tree this is. */
static void on_root(struct zk_session *s, struct zk_op *op)
{
    struct store_registry *known = &s->zk->source->known;
    int64_t czxid = op->rc == ZOK ? op->stat.czxid : 0;
    bool other = known->root_czxid != 0 && known->root_czxid != czxid;

    if (op->rc != ZOK && op->rc != ZNONODE)
        return;
    if (other && !s->zk->new_tree)
        log_warn("registry",
                 "registry %s: %s is not the one that was there before: its data was "
                 "lost or replaced; known providers are kept",
                 name_of(s), op->path);
    else if (czxid == 0 && !other)
        log_notice("registry", "registry %s: there is no %s: no provider has ever registered",
                   name_of(s), op->path);
    s->zk->new_tree = s->zk->new_tree || other;
    if (czxid != 0)
        known->root_czxid = czxid;
}

static void look_at_root(struct zk_session *s)
{
    struct zk_op *op = zk_op_new(s, NULL, s->zk->source->conf.root, on_root);

    zk_op_sent(op, zoo_aexists(s->handle->h, op->path, 0, zk_on_stat, op));
}

static void on_connected(struct zk_session *s, const struct zk_event *e)
{
    uint64_t now = clock_ms();
    bool is_new = e->id != s->id;

    if (now - s->connects_since_ms > LOOP_MS) {
        s->connects_since_ms = now;
        s->connects = 0;
    }
    s->connects++;
    if (s->ever_connected)
        counter_add(&numbers_of(s)->reconnects, 1);
    s->ever_connected = true;
    if (e->timeout_ms > 0)
        s->timeout_ms = (uint32_t)e->timeout_ms;
    if (e->server.sa.sa_family != AF_UNSPEC)
        zk_print_address(&e->server, s->server, sizeof(s->server));
    set_connected(s, true);
    log_notice("registry", "registry %s: connected to %s, session 0x%llx%s, timeout %u ms",
               name_of(s), s->server, (unsigned long long)e->id, is_new ? "" : " goes on",
               s->timeout_ms);
    zk_find_consumer_ip(s->zk, &e->server);
    if (is_new)
        s->started_ms = now; /* else the library has set its watches again */
    s->id = e->id;
    look_at_root(s);
}

static void on_session_event(struct zk_session *s, const struct zk_event *e)
{
    if (e->state == ZOO_CONNECTED_STATE) {
        on_connected(s, e);
        return;
    }
    if (s->connected)
        log_warn("registry", "registry %s: connection to %s lost; calls use the last known lists",
                 name_of(s), s->server);
    set_connected(s, false);
    if (e->state == ZOO_EXPIRED_SESSION_STATE) {
        counter_add(&numbers_of(s)->expired, 1);
        renew(s, "the last one expired");
    } else if (e->state == ZOO_AUTH_FAILED_STATE) {
        s->failures = 6; /* asking again soon does not help */
        renew(s, "authentication failed");
    }
}

static void run_event(struct registry_post *p)
{
    struct zk_event *e = container_of(p, struct zk_event, post);
    struct zk_session *s = e->session;

    if (s->handle != NULL && s->handle->generation == e->generation) {
        if (e->type == ZOO_SESSION_EVENT) {
            on_session_event(s, e);
        } else {
            counter_add(&numbers_of(s)->events, 1);
            if (!zk_apps_event(s, e->path))
                zk_paths_event(s, e->path);
        }
    }
    free(e);
}

/* In the library's thread. */
void zk_watcher(zhandle_t *h, int type, int state, const char *path, void *ctx)
{
    const struct zk_handle *handle = ctx;
    size_t n = path != NULL ? strlen(path) : 0;
    struct zk_event *e = xcalloc(1, sizeof(*e) + n + 1);

    e->post.run = run_event;
    e->session = handle->session;
    e->generation = handle->generation;
    e->type = type;
    e->state = state;
    if (n != 0)
        memcpy(e->path, path, n);
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) {
        const clientid_t *id = zoo_client_id(h);
        socklen_t len = sizeof(e->server);

        /* zoo_get_current_server answers with one static buffer for all handles */
        if (zookeeper_get_connected_host(h, &e->server.sa, &len) == NULL)
            e->server.sa.sa_family = AF_UNSPEC;
        e->id = id != NULL ? id->client_id : 0;
        e->timeout_ms = zoo_recv_timeout(h);
    }
    mailbox_push(&handle->session->zk->source->home->box, &e->post.mail);
}

/* ---------------------------------------------------------------- time */

/* A start that meets no registry is told as soon as a connection should stand. */
static void tell_silence(struct zk_session *s, uint64_t now)
{
    if (s->ever_connected || s->told_silence ||
        now - s->disconnected_ms < s->zk->source->conf.connect_timeout_ms)
        return;
    s->told_silence = true;
    log_warn("registry",
             "registry %s: no answer from %s; lists that were saved serve, new names cannot be looked up",
             name_of(s), s->zk->shown);
}

static void tell_outage(struct zk_session *s, uint64_t now)
{
    tell_silence(s, now);
    if (s->connected || now - s->told_ms < TELL_MS)
        return;
    s->told_ms = now;
    log_warn("registry", "registry %s: not connected for %llu s; calls use the last known lists",
             name_of(s), (unsigned long long)((now - s->disconnected_ms) / 1000));
}

static bool is_stuck(const struct zk_session *s, uint64_t now)
{
    return !s->connected && now - s->disconnected_ms > (uint64_t)s->timeout_ms * STUCK_TIMEOUTS;
}

static bool is_looping(const struct zk_session *s, uint64_t now)
{
    return s->connects >= LOOP_CONNECTS && now - s->connects_since_ms <= LOOP_MS;
}

bool zk_session_tick(struct zk_session *s, uint64_t now)
{
    bool more = false;

    list_each_safe(l, &s->closing) {
        struct zk_handle *h = container_of(l, struct zk_handle, link);

        if (h->n_ops == 0 || now >= h->close_by_ms)
            close_handle(h);
    }
    tell_outage(s, now);
    if (s->handle == NULL && now >= s->retry_at_ms)
        open_handle(s);
    else if (s->handle != NULL && is_stuck(s, now))
        /* also after a data loss: the server refuses a client that has seen a later zxid, for ever */
        renew(s, "no connection for two session timeouts");
    else if (s->handle != NULL && is_looping(s, now))
        renew(s, "connected again and again without an answer");
    if (zk_can_send(s)) {
        more = zk_config_tick(s, now);
        more = zk_apps_tick(s, now) || more;
        more = zk_paths_tick(s, now) || more;
        more = zk_consumer_tick(s, now) || more;
    }
    return more || !list_empty(&s->closing);
}

static unsigned calls_in_flight(const struct zk *z)
{
    unsigned n = 0;

    list_each(l, &z->sessions) {
        const struct zk_session *s = container_of(l, struct zk_session, link);

        n += s->handle != NULL ? s->handle->n_ops : 0;
        list_each(c, &s->closing) {
            n += container_of(c, struct zk_handle, link)->n_ops;
        }
    }
    return n;
}

void zk_sessions_close(struct zk *z)
{
    struct registry *r = z->source->home;
    uint64_t until = clock_ms() + ZK_DRAIN_MS;
    struct list *l = NULL;

    for (registry_take_mail(r); calls_in_flight(z) != 0 && clock_ms() < until;
         registry_take_mail(r))
        usleep(DRAIN_STEP_US);
    list_each(x, &z->sessions) {
        struct zk_session *s = container_of(x, struct zk_session, link);

        if (s->handle != NULL)
            close_handle(s->handle);
        s->handle = NULL;
        while (!list_empty(&s->closing))
            close_handle(container_of(s->closing.next, struct zk_handle, link));
    }
    registry_take_mail(r); /* the last answers and events: they free themselves */
    while ((l = list_take(&z->sessions)) != NULL)
        free(container_of(l, struct zk_session, link));
    source_set_connected(z->source, false);
}
