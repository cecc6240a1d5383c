#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/zk_apps.h"

enum {
    CALLS_IN_FLIGHT = 256,
    ERROR_AGAIN_MS = 5000,
    WATCH_OVERHEAD = 4,
};

const char *zk_services_root(const char *root)
{
    return strcmp(root, "/dubbo") == 0 ? "/services" : root;
}

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): the macros of uthash */
struct zk_app *zk_app_find(struct zk *z, struct str name)
{
    struct zk_app *app = NULL;

    HASH_FIND(hh, z->apps, name.n != 0 ? name.p : "", name.n, app);
    return app;
}

static void app_add(struct zk *z, struct zk_app *app)
{
    HASH_ADD_STR(z->apps, name, app);
}

static void app_remove(struct zk *z, struct zk_app *app)
{
    HASH_DEL(z->apps, app);
}

static struct zk_instance *instance_find(const struct zk_app *app, const char *name)
{
    struct zk_instance *i = NULL;

    HASH_FIND_STR(app->instances, name, i);
    return i;
}

static void instance_add(struct zk_app *app, struct zk_instance *i)
{
    HASH_ADD_STR(app->instances, name, i);
}

static void instance_remove(struct zk_app *app, struct zk_instance *i)
{
    HASH_DEL(app->instances, i);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

/* ---------------------------------------------------------------- state */

bool zk_app_settled(const struct zk_app *app)
{
    return app->known && !app->in_flight && app->n_reads == 0 && app->n_queued == 0 &&
           app->n_asking == 0;
}

void zk_app_changed(struct zk_app *app)
{
    if (app->changed_ms == 0)
        app->changed_ms = clock_ms();
}

void zk_app_answered(struct zk_app *app)
{
    bool first = !app->settled_once;

    if (!zk_app_settled(app))
        return;
    app->settled_once = true;
    if (first || app->changed_ms != 0)
        zk_app_tell(app);
}

static void queue_app(struct zk_app *app)
{
    if (list_empty(&app->reading))
        list_add(&app->session->app_reads, &app->reading);
}

static void queue_instance(struct zk_instance *i)
{
    if (!list_empty(&i->queue))
        return;
    list_add(&i->session->instance_reads, &i->queue);
    i->app->n_queued++;
}

static void unqueue_instance(struct zk_instance *i)
{
    if (list_empty(&i->queue))
        return;
    list_remove(&i->queue);
    i->app->n_queued--;
}

static void set_in_flight(struct zk_instance *i, bool on)
{
    if (i->in_flight == on)
        return;
    i->in_flight = on;
    i->app->n_reads += on ? 1U : 0U;
    i->app->n_reads -= on ? 0U : 1U;
}

/* ---------------------------------------------------------------- instances */

static void path_of_instance(const struct zk_instance *i, char *out, size_t cap)
{
    snprintf(out, cap, "%s/%s", i->app->path, i->name);
}

static void free_instance(struct zk_instance *i)
{
    char path[APP_NAME_MAX * 4];

    if (i->watch_set) {
        zk_count_watch(i->session, &i->watch_set, false);
        path_of_instance(i, path, sizeof(path));
        zk_remove_watch(i->session, path);
    }
    unqueue_instance(i);
    set_in_flight(i, false);
    list_remove(&i->link);
    i->session->watch_bytes -= i->bytes;
    instance_remove(i->app, i);
    zk_revision_put(i->wanted);
    zk_revision_put(i->serving);
    free(i->v);
    free(i);
}

static void new_instance(struct zk_app *app, const char *name)
{
    struct zk_instance *i = xcalloc(1, sizeof(*i) + strlen(name) + 1);

    memcpy(i->name, name, strlen(name) + 1);
    i->app = app;
    i->listed = true;
    i->bytes = strlen(app->path) + 1 + strlen(name) + WATCH_OVERHEAD;
    /* thousands of instances: their watches go where there is room */
    i->session = zk_session_for(app->zk, i->bytes);
    i->session->watch_bytes += i->bytes;
    list_init(&i->queue);
    list_init(&i->link);
    list_add(&i->session->instances, &i->link);
    instance_add(app, i);
    queue_instance(i);
}

/* The old one serves until the new one is known. */
static void want_revision(struct zk_instance *i)
{
    struct zk_revision *old = i->wanted;

    i->wanted = NULL;
    if (i->v->revision.n != 0) {
        i->wanted = zk_revision_get(i->app, i->v->revision, i->v->remote);
    } else {
        zk_revision_put(i->serving);
        i->serving = NULL;
    }
    zk_revision_put(old);
}

static void take_instance(struct zk_instance *i, struct str text)
{
    struct instance v;
    struct arena a;
    struct err e;

    arena_init(&a);
    if (instance_parse(text, &a, &v, &e)) {
        free(i->v);
        i->v = instance_clone(&v);
        want_revision(i);
        zk_app_changed(i->app);
    } else {
        log_warn("registry", "%s/%s is not used: %s", i->app->path, i->name, e.text);
    }
    arena_free(&a);
}

static struct zk_instance *instance_of(struct zk *z, const struct zk_op *op)
{
    struct zk_app *app = zk_app_find(z, str_from(op->key));

    return app != NULL ? instance_find(app, strrchr(op->path, '/') + 1) : NULL;
}

static void on_instance(struct zk_session *s, struct zk_op *op)
{
    struct zk_instance *i = instance_of(s->zk, op);
    struct zk_app *app = NULL;

    if (i == NULL || i->session != s)
        return;
    app = i->app;
    set_in_flight(i, false);
    if (zk_is_lost(op->rc)) {
        queue_instance(i);
        return;
    }
    if (op->rc == ZOK) {
        zk_count_watch(s, &i->watch_set, true);
        take_instance(i, (struct str){op->data, op->n_data});
    } else if (op->rc != ZNONODE) { /* gone: the list of instances will say so */
        log_warn("registry", "%s cannot be read: %s", op->path, zk_why(op));
    }
    zk_instances_settle(app);
    zk_revisions_ask(app, clock_ms());
    zk_app_answered(app);
    zk_apps_read(s);
}

static void read_instance(struct zk_instance *i)
{
    struct zk_handle *h = i->session->handle;
    char path[APP_NAME_MAX * 4];
    struct zk_op *op = NULL;

    unqueue_instance(i);
    set_in_flight(i, true);
    path_of_instance(i, path, sizeof(path));
    op = zk_op_new(i->session, i->app->name, path, on_instance);
    zk_op_sent(op, zoo_awget(h->h, op->path, zk_watcher, h, zk_on_data, op));
}

void zk_instances_settle(struct zk_app *app)
{
    for (struct zk_instance *i = app->instances; i != NULL; i = i->hh.next) {
        if (i->wanted == NULL || !i->wanted->known || i->serving == i->wanted)
            continue;
        zk_revision_put(i->serving);
        i->serving = i->wanted;
        i->wanted->users++;
        zk_app_changed(app);
    }
}

/* ---------------------------------------------------------------- the list of instances */

/* HOST:PORT; with a root of its own other things lie beside the instances. */
static bool is_instance_name(const char *name)
{
    const char *colon = strrchr(name, ':');

    return colon != NULL && colon != name && strlen(name) < APP_NAME_MAX;
}

static void compare(struct zk_app *app, const struct zk_op *op)
{
    struct zk_instance *next = NULL;

    for (struct zk_instance *i = app->instances; i != NULL; i = i->hh.next)
        i->listed = false;
    for (size_t n = 0; n < op->n_names; n++) {
        struct zk_instance *i = instance_find(app, op->names[n]);

        if (i != NULL)
            i->listed = true;
        else if (is_instance_name(op->names[n]))
            new_instance(app, op->names[n]);
    }
    for (struct zk_instance *i = app->instances; i != NULL; i = next) {
        next = i->hh.next;
        if (i->listed)
            continue;
        zk_app_changed(app);
        free_instance(i);
    }
}

static void on_exists(struct zk_session *s, struct zk_op *op)
{
    struct zk_app *app = zk_app_find(s->zk, str_from(op->key));

    if (app == NULL || app->session != s)
        return;
    if (op->rc == ZNONODE)
        zk_count_watch(s, &app->watch_set, true);
    else
        queue_app(app); /* it came between the read and the watch, or the answer was lost */
}

static void watch_creation(struct zk_app *app)
{
    struct zk_op *op = zk_op_new(app->session, app->name, app->path, on_exists);
    struct zk_handle *h = app->session->handle;

    zk_op_sent(op, zoo_awexists(h->h, op->path, zk_watcher, h, zk_on_stat, op));
}

static void on_instances(struct zk_session *s, struct zk_op *op)
{
    struct zk_app *app = zk_app_find(s->zk, str_from(op->key));

    if (app == NULL || app->session != s)
        return;
    app->in_flight = false;
    if (op->rc != ZOK && op->rc != ZNONODE) {
        queue_app(app);
        if (zk_is_lost(op->rc))
            return;
        app->not_before_ms = clock_ms() + ERROR_AGAIN_MS;
        log_warn("registry", "%s cannot be read: %s", op->path, zk_why(op));
        return;
    }
    app->known = true;
    app->n_listed = (uint32_t)op->n_names;
    if (op->rc == ZOK)
        zk_count_watch(s, &app->watch_set, true);
    else if (zk_can_send(s))
        watch_creation(app);
    compare(app, op);
    zk_app_answered(app);
    zk_apps_read(s);
}

static void read_app(struct zk_app *app, uint64_t now)
{
    struct zk_handle *h = app->session->handle;
    struct zk_op *op = NULL;

    list_remove(&app->reading);
    app->in_flight = true;
    app->next_read_ms = now + zk_read_apart_ms(app->n_listed, now);
    op = zk_op_new(app->session, app->name, app->path, on_instances);
    zk_op_sent(op, zoo_awget_children2(h->h, op->path, zk_watcher, h, zk_on_strings, op));
}

/* ---------------------------------------------------------------- reads, at the pace of the session */

static bool may_send(const struct zk_session *s)
{
    return zk_can_send(s) && s->handle->n_ops < CALLS_IN_FLIGHT;
}

static bool may_list(const struct zk_app *app, uint64_t now)
{
    return !app->in_flight && now >= app->not_before_ms && now >= app->next_read_ms;
}

void zk_apps_read(struct zk_session *s)
{
    uint64_t now = clock_ms();

    list_each_safe(l, &s->app_reads) {
        struct zk_app *app = container_of(l, struct zk_app, reading);

        if (!may_send(s))
            return;
        if (may_list(app, now))
            read_app(app, now);
    }
    while (may_send(s) && !list_empty(&s->instance_reads))
        read_instance(container_of(s->instance_reads.next, struct zk_instance, queue));
}

/* ---------------------------------------------------------------- applications */

static void free_app(struct zk_app *app)
{
    while (app->instances != NULL)
        free_instance(app->instances);
    if (app->watch_set) {
        zk_count_watch(app->session, &app->watch_set, false);
        zk_remove_watch(app->session, app->path);
    }
    zk_revisions_free(app);
    app->session->watch_bytes -= app->bytes;
    list_remove(&app->link);
    list_remove(&app->reading);
    app_remove(app->zk, app);
    free(app);
}

static void free_one_idle(struct zk *z)
{
    struct zk_app *oldest = NULL;

    for (struct zk_app *app = z->apps; app != NULL; app = app->hh.next) {
        if (app->unused_since_ms != 0 &&
            (oldest == NULL || app->unused_since_ms < oldest->unused_since_ms))
            oldest = app;
    }
    if (oldest != NULL)
        free_app(oldest);
}

static struct zk_app *new_app(struct zk *z, struct str name)
{
    size_t len = strlen(zk_services_root(z->source->conf.root)) + name.n + sizeof("/");
    struct zk_app *app = xcalloc(1, sizeof(*app) + name.n + 1 + len);

    memcpy(app->name, name.p, name.n);
    app->path = app->name + name.n + 1;
    snprintf(app->path, len, "%s/" STR_FMT, zk_services_root(z->source->conf.root), STR_ARG(name));
    app->zk = z;
    app->bytes = strlen(app->path) + WATCH_OVERHEAD;
    app->session = zk_session_for(z, app->bytes);
    app->session->watch_bytes += app->bytes;
    list_init(&app->link);
    list_init(&app->reading);
    list_init(&app->uses);
    list_init(&app->revisions);
    list_add(&app->session->apps, &app->link);
    app_add(z, app);
    return app;
}

struct zk_app *zk_app_get(struct zk *z, struct str name)
{
    struct zk_app *app = zk_app_find(z, name);

    if (app != NULL)
        return app;
    if (HASH_COUNT(z->apps) >= APPS_MAX)
        free_one_idle(z);
    if (HASH_COUNT(z->apps) >= APPS_MAX) {
        log_warn("registry",
                 "registry %s: application " STR_FMT " is not used: there are %d others",
                 z->source->conf.name, STR_ARG(name), APPS_MAX);
        return NULL;
    }
    app = new_app(z, name);
    zk_revisions_restore(app);
    queue_app(app);
    zk_apps_read(app->session);
    return app;
}

/* It stays for a while: names that are looked up again and again do not cost the registry its instances. */
void zk_app_idle(struct zk_app *app)
{
    app->unused_since_ms = clock_ms();
}

/* ---------------------------------------------------------------- events */

/* Instances and the list of them. */
static bool app_event(struct zk_session *s, struct str rest)
{
    struct str name = STR_NONE;
    struct zk_app *app = zk_app_find(s->zk, str_cut(rest, '/', &name));
    struct zk_instance *i = NULL;

    if (app == NULL)
        return false;
    if (name.p == NULL && app->session == s) {
        zk_count_watch(s, &app->watch_set, false); /* it fires once */
        queue_app(app);
    }
    if (name.p != NULL)
        i = instance_find(app, name.p); /* the end of the path, so it is terminated */
    if (name.p != NULL && i == NULL)
        return false;
    if (i != NULL && i->session == s) {
        zk_count_watch(s, &i->watch_set, false);
        queue_instance(i);
    }
    zk_apps_read(s);
    return true;
}

static bool mapping_event(struct zk_session *s, struct str rest)
{
    struct zk_path *p = NULL;

    if (!str_starts(rest, STR("mapping/")))
        return false;
    p = zk_path_of(s->zk, str_sub(rest, strlen("mapping/"), rest.n));
    if (p != NULL && p->session == s)
        zk_mapping_event(p);
    return true;
}

static struct str below(const char *path, const char *root)
{
    struct str s = str_from(path);
    size_t n = strlen(root);

    return str_starts(s, str_from(root)) && s.n > n + 1 && s.p[n] == '/' ? str_sub(s, n + 1, s.n)
                                                                         : STR_NONE;
}

bool zk_apps_event(struct zk_session *s, const char *path)
{
    struct str in_root = below(path, s->zk->source->conf.root);
    struct str service = below(path, zk_services_root(s->zk->source->conf.root));

    return (in_root.n != 0 && mapping_event(s, in_root)) ||
           (service.n != 0 && app_event(s, service));
}

void zk_apps_lost(struct zk_session *s)
{
    list_each(l, &s->apps) {
        struct zk_app *app = container_of(l, struct zk_app, link);

        zk_count_watch(s, &app->watch_set, false);
        app->in_flight = app->known = false;
        app->next_read_ms = app->not_before_ms = 0;
        zk_revisions_lost(app);
        queue_app(app);
    }
    list_each(l, &s->instances) {
        struct zk_instance *i = container_of(l, struct zk_instance, link);

        zk_count_watch(s, &i->watch_set, false);
        set_in_flight(i, false);
        queue_instance(i);
    }
}

/* ---------------------------------------------------------------- time */

static void tick_app(struct zk_app *app, uint64_t now)
{
    if (app->unused_since_ms != 0 && now - app->unused_since_ms >= APP_IDLE_MS) {
        free_app(app);
        return;
    }
    zk_revisions_ask(app, now);
    if (app->changed_ms != 0 && now - app->changed_ms >= APP_SETTLE_MS)
        zk_app_tell(app);
}

bool zk_apps_tick(struct zk_session *s, uint64_t now)
{
    list_each_safe(l, &s->apps) {
        tick_app(container_of(l, struct zk_app, link), now);
    }
    zk_apps_read(s);
    return !list_empty(&s->app_reads) || !list_empty(&s->instance_reads);
}

void zk_apps_free(struct zk *z)
{
    while (z->apps != NULL)
        free_app(z->apps);
}
