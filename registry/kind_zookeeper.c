#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/url.h"
#include "registry/zk.h"

enum {
    PORT = 2181,
    HOSTS_MAX = 32,
    RETRY_FIRST_MS = 1000,
    RETRY_MAX_MS = 30000,
    LOOP_CONNECTS = 5, /* so many connects … */
    LOOP_MS = 10000,   /* … in this time without a good answer: the handle is of no use */
};

/* ---------------------------------------------------------------- operations */

static void op_free(struct zk_op *op)
{
    for (size_t i = 0; i < op->n_names; i++)
        free(op->names[i]);
    free(op->names);
    free(op->key);
    free(op->target);
    list_remove(&op->link);
    free(op);
}

static void run_op(struct registry_post *p)
{
    struct zk_op *op = container_of(p, struct zk_op, post);
    struct zk *z = op->zk;

    z->n_ops--;
    if (op->rc == ZOK || op->rc == ZNONODE || op->rc == ZNODEEXISTS)
        z->connects = 0;
    if (op->generation == z->generation)
        op->done(op);
    op_free(op);
}

struct zk_op *zk_op_new(struct zk *z, void (*done)(struct zk_op *op))
{
    struct zk_op *op = xcalloc(1, sizeof(*op));

    op->post.run = run_op;
    op->zk = z;
    op->generation = z->generation;
    op->done = done;
    list_init(&op->link);
    list_add(&z->ops, &op->link);
    z->n_ops++;
    return op;
}

/* In the library's thread, or in ours when the call could not be sent. */
static void complete(struct zk_op *op, int rc)
{
    op->rc = rc;
    mailbox_push(&op->zk->source->home->box, &op->post.mail);
}

void zk_op_sent(struct zk_op *op, int rc)
{
    if (rc != ZOK)
        complete(op, rc);
}

static void take_stat(struct zk_op *op, const struct Stat *stat)
{
    if (stat == NULL)
        return;
    op->czxid = stat->czxid;
    op->owner = stat->ephemeralOwner;
    op->version = stat->version;
}

void zk_on_strings(int rc, const struct String_vector *v, const struct Stat *stat, const void *data)
{
    struct zk_op *op = (struct zk_op *)(uintptr_t)data;
    size_t n = rc == ZOK && v != NULL && v->count > 0 ? (size_t)v->count : 0;

    take_stat(op, stat);
    if (n > STORE_URLS_MAX) { /* no list of ours: docs/ROBUSTNESS.md section 3.1 */
        complete(op, ZMARSHALLINGERROR);
        return;
    }
    op->names = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        op->names[op->n_names] = strdup(v->data[i]);
        op->n_names += op->names[op->n_names] != NULL ? 1U : 0U;
    }
    complete(op, rc);
}

void zk_on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct zk_op *op = (struct zk_op *)(uintptr_t)data;

    take_stat(op, rc == ZOK ? stat : NULL);
    complete(op, rc);
}

void zk_on_string(int rc, const char *value, const void *data)
{
    complete((struct zk_op *)(uintptr_t)data, rc);
}

void zk_on_void(int rc, const void *data)
{
    complete((struct zk_op *)(uintptr_t)data, rc);
}

/* ---------------------------------------------------------------- watch events */

struct zk_event {
    struct registry_post post; /* first member */
    struct zk *zk;
    zhandle_t *handle;
    int type;
    int state;
    int64_t session;
    char server[64];
    char path[];
};

static void replace_handle(struct zk *z, const char *why);

static void set_connected(struct zk *z, bool on)
{
    if (z->connected == on)
        return;
    z->connected = z->source->connected = on;
    z->source->changed_ms = clock_ms();
    if (!on)
        z->disconnected_ms = clock_ms();
}

/* The address that others see us under, from the way to the server (decision R10); once per process. */
static void find_consumer_ip(struct zk *z, const struct zk_event *e)
{
    const char *configured = z->source->home->opts.consumer_address;
    union address a;
    struct str host = str_from(e->server);
    size_t colon = host.n;
    socklen_t len = sizeof(a);
    struct buf b = {.data = (uint8_t *)z->consumer_ip,
                    .cap = sizeof(z->consumer_ip) - 1,
                    .limit = sizeof(z->consumer_ip) - 1};
    int fd = -1;

    if (z->consumer_ip[0] != '\0')
        return;
    if (strcmp(configured, "auto") != 0) {
        snprintf(z->consumer_ip, sizeof(z->consumer_ip), "%s", configured);
        return;
    }
    while (colon > 0 && host.p[colon - 1] != ':')
        colon--;
    host = str_sub(host, 0, colon > 0 ? colon - 1 : 0);
    if (host.n > 1 && host.p[0] == '[')
        host = str_sub(host, 1, host.n - 1);
    if (!address_from_text(host, PORT, &a))
        return;
    fd = socket(a.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        connect(fd, &a.sa,
                a.sa.sa_family == AF_INET6 ? (socklen_t)sizeof(a.v6) : (socklen_t)sizeof(a.v4)) ==
            0 &&
        getsockname(fd, &a.sa, &len) == 0)
        address_print(&a, &b);
    if (fd >= 0)
        close(fd);
}

static void on_root(struct zk_op *op)
{
    struct zk *z = op->zk;

    if (op->rc == ZOK) {
        z->root_changed = z->root_czxid != 0 && z->root_czxid != op->czxid;
        z->root_czxid = op->czxid;
    } else if (op->rc == ZNONODE) {
        z->root_changed = z->root_czxid != 0;
    }
    if (z->root_changed)
        log_warn("registry",
                 "registry %s: the tree is another one than before; known providers are kept",
                 z->source->conf.name);
    zk_paths_read_again(z);
    zk_consumer_new_session(z);
}

static void on_connected(struct zk *z, const struct zk_event *e)
{
    bool new_session = e->session != z->session;
    uint64_t now = clock_ms();
    struct zk_op *op = NULL;

    if (now - z->connects_since_ms > LOOP_MS) {
        z->connects_since_ms = now;
        z->connects = 0;
    }
    z->connects++;
    z->failures = 0;
    if (z->ever_connected)
        counter_add(&z->source->home->numbers.reconnects, 1);
    z->ever_connected = true;
    snprintf(z->server, sizeof(z->server), "%s", e->server);
    set_connected(z, true);
    log_notice("registry", "registry %s: connected to %s, session 0x%llx%s", z->source->conf.name,
               z->server, (unsigned long long)e->session, new_session ? "" : " goes on");
    find_consumer_ip(z, e);
    if (!new_session)
        return; /* the library sets its watches again */
    z->session = e->session;
    op = zk_op_new(z, on_root);
    zk_op_sent(op, zoo_aexists(z->handle, z->source->conf.root, 0, zk_on_stat, op));
}

static void on_session_event(struct zk *z, const struct zk_event *e)
{
    if (e->state == ZOO_CONNECTED_STATE) {
        on_connected(z, e);
        return;
    }
    if (z->connected)
        log_warn("registry", "registry %s: connection lost; calls use the last known lists",
                 z->source->conf.name);
    set_connected(z, false);
    if (e->state == ZOO_EXPIRED_SESSION_STATE) {
        counter_add(&z->source->home->numbers.expired, 1);
        replace_handle(z, "session expired");
    } else if (e->state == ZOO_AUTH_FAILED_STATE) {
        z->failures = 5;
        replace_handle(z, "authentication failed");
    }
}

static void run_event(struct registry_post *p)
{
    struct zk_event *e = container_of(p, struct zk_event, post);
    struct zk *z = e->zk;

    if (e->handle == z->handle && z->handle != NULL) {
        if (e->type == ZOO_SESSION_EVENT) {
            on_session_event(z, e);
        } else {
            counter_add(&z->source->home->numbers.events, 1);
            zk_paths_event(z, e->path);
        }
    }
    free(e);
}

/* In the library's thread: copies and posts, nothing else. */
void zk_watcher(zhandle_t *h, int type, int state, const char *path, void *ctx)
{
    size_t n = path != NULL ? strlen(path) : 0;
    struct zk_event *e = xcalloc(1, sizeof(*e) + n + 1);
    const clientid_t *id = zoo_client_id(h);
    struct zk *z = ctx;

    e->post.run = run_event;
    e->zk = z;
    e->handle = h;
    e->type = type;
    e->state = state;
    e->session = id != NULL ? id->client_id : 0;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) {
        const char *server = zoo_get_current_server(h);

        snprintf(e->server, sizeof(e->server), "%s", server != NULL ? server : "");
    }
    if (n != 0)
        memcpy(e->path, path, n);
    mailbox_push(&z->source->home->box, &e->post.mail);
}

/* ---------------------------------------------------------------- the handle */

static void on_log(const char *line)
{
    /* the library repeats itself thousands of times; our log holds repeats back by call site */
    log_debug("zookeeper", "%s", line);
}

/* Numeric HOST:PORT list with an odd number of entries: with an even one the library tries only half of them
 * and never pauses (ZOOKEEPER-2466; docs/ROBUSTNESS.md section 0.1).  Empty when nothing resolves. */
static void resolve_hosts(struct zk *z, struct buf *out)
{
    struct str rest = z->hosts;
    size_t n = 0;
    size_t first_len = 0;

    while (rest.n != 0 && n < HOSTS_MAX) {
        struct str one = str_cut(rest, ',', &rest);
        size_t colon = one.n;
        uint64_t port = PORT;
        union address a;
        struct err e = {0};

        while (colon > 0 && one.p[colon - 1] != ':')
            colon--;
        struct str host = str_sub(one, 0, colon > 0 ? colon - 1 : one.n);

        if (host.n > 1 && host.p[0] == '[')
            host = str_sub(host, 1, host.n - 1);
        if ((colon > 0 && !str_to_u64(str_sub(one, colon, one.n), 65535, &port)) ||
            !resolve(z->source->home->resolver, host, (uint16_t)port, &a, &e)) {
            log_warn("registry", "registry %s: " STR_FMT " is not used: %s", z->source->conf.name,
                     STR_ARG(one), e.text);
            continue;
        }
        if (n++ != 0)
            buf_add_u8(out, ',');
        if (a.sa.sa_family == AF_INET6)
            buf_add_u8(out, '[');
        address_print(&a, out);
        if (a.sa.sa_family == AF_INET6)
            buf_add_u8(out, ']');
        buf_printf(out, ":%u", (unsigned)port);
        if (n == 1)
            first_len = out->len;
    }
    if (n != 0 && n % 2 == 0) {
        buf_add_u8(out, ',');
        buf_add(out, out->data, first_len);
    }
    buf_add_u8(out, '\0');
}

static uint64_t back_off(struct zk *z)
{
    uint64_t ms = RETRY_FIRST_MS;

    if (z->failures == 0)
        return 0;
    for (unsigned i = 1; i < z->failures && ms < RETRY_MAX_MS; i++)
        ms *= 2;
    ms = ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
    return ms * 4 / 5 + hash_random_seed() % (ms * 2 / 5 + 1);
}

static void open_handle(struct zk *z)
{
    struct buf hosts;
    uint64_t now = clock_ms();

    buf_init(&hosts, 8192);
    resolve_hosts(z, &hosts);
    z->generation++;
    z->opened_ms = z->disconnected_ms = now;
    if (!hosts.failed && hosts.len > 1)
        z->handle = zookeeper_init2((const char *)hosts.data, zk_watcher,
                                    (int)z->source->conf.session_timeout_ms, NULL, z, 0, on_log);
    if (z->handle == NULL) {
        z->failures++;
        z->retry_at_ms = now + back_off(z);
        log_warn("registry", "registry %s: no server address can be used; again in %llu ms",
                 z->source->conf.name, (unsigned long long)(z->retry_at_ms - now));
    }
    buf_free(&hosts);
}

/* Accepted calls that the library drops in zookeeper_close never complete: they are in our list and go with it. */
static void close_handle(struct zk *z)
{
    zhandle_t *h = z->handle;

    z->handle = NULL;
    z->generation++; /* answers that are still to come belong to nobody */
    set_connected(z, false);
    if (h != NULL)
        zookeeper_close(h);
    zk_paths_lost(z);
}

static void replace_handle(struct zk *z, const char *why)
{
    log_warn("registry", "registry %s: new handle: %s", z->source->conf.name, why);
    close_handle(z);
    z->retry_at_ms = clock_ms() + back_off(z);
    z->failures++;
    z->connects = 0;
    if (z->retry_at_ms <= clock_ms())
        open_handle(z);
}

/* ---------------------------------------------------------------- the kind */

static void *zk_open(struct source *s, struct err *e)
{
    struct zk *z = xcalloc(1, sizeof(*z));
    struct str rest = str_sub(str_from(s->conf.address), sizeof("zookeeper://") - 1, SIZE_MAX);
    struct str query = STR_NONE;
    struct str main_host = str_cut(rest, '?', &query);
    struct buf hosts;

    z->source = s;
    list_init(&z->ops);
    while (main_host.n != 0 && main_host.p[main_host.n - 1] == '/')
        main_host.n--;
    buf_init(&hosts, 8192);
    buf_add_str(&hosts, main_host);
    while (query.n != 0) {
        struct str one = str_cut(query, '&', &query);

        if (str_starts(one, STR("backup="))) {
            buf_add_u8(&hosts, ',');
            buf_add_str(&hosts, str_sub(one, 7, one.n));
        }
    }
    z->hosts = arena_str(&s->home->arena, buf_str(&hosts));
    buf_free(&hosts);
    if (main_host.n == 0 || hosts.failed) {
        err_set(e, "registry %s: the address names no server", s->conf.name);
        free(z);
        return NULL;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
    z->connects_since_ms = clock_ms();
    open_handle(z);
    return z;
}

static void zk_close(void *kind)
{
    struct zk *z = kind;

    close_handle(z);
    /* completed ones are in the mailbox and free themselves; the others the library has dropped */
    for (struct mail *m = mailbox_take(&z->source->home->box), *next = NULL; m != NULL; m = next) {
        struct registry_post *p = container_of(m, struct registry_post, mail);

        next = m->next;
        if (p->run != NULL)
            p->run(p);
        else
            registry_free_post(p);
    }
    while (!list_empty(&z->ops))
        op_free(container_of(z->ops.next, struct zk_op, link));
    zk_paths_free(z);
    free(z);
}

static void zk_tick(void *kind)
{
    struct zk *z = kind;
    uint64_t now = clock_ms();

    if (z->handle == NULL) {
        if (now >= z->retry_at_ms)
            open_handle(z);
        return;
    }
    if (!z->connected &&
        now - z->disconnected_ms > (uint64_t)z->source->conf.session_timeout_ms * 2) {
        /* also after a wiped registry: its server refuses a client that has seen a later zxid */
        replace_handle(z, "no connection for two session timeouts");
        return;
    }
    if (z->connects >= LOOP_CONNECTS && now - z->connects_since_ms <= LOOP_MS) {
        replace_handle(z, "connects again and again without an answer");
        return;
    }
    if (!z->connected)
        return;
    zk_paths_tick(z, now);
    zk_consumer_tick(z, now);
}

static void zk_report(const void *kind, struct buf *out)
{
    const struct zk *z = kind;

    buf_printf(out, ",\"state\":\"%s\",\"server\":\"%s\",\"session\":\"0x%llx\"",
               z->connected        ? "connected"
               : z->handle != NULL ? "connecting"
                                   : "waiting",
               z->server, (unsigned long long)z->session);
}

const struct registry_kind registry_kind_zookeeper = {
    .scheme = "zookeeper",
    .open = zk_open,
    .close = zk_close,
    .watch = zk_watch,
    .unwatch = zk_unwatch,
    .refresh = zk_refresh,
    .publish = zk_publish,
    .unpublish = zk_unpublish,
    .tick = zk_tick,
    .report = zk_report,
};
