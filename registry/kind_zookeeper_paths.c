#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/url.h"
#include "registry/zk.h"

enum {
    READ_APART_MS = 100, /* a storm of changes is read at this pace; the first change at once */
    READS_PER_TICK = 50, /* after a new session */
    READS_IN_FLIGHT = 500,
};

static void count_watches(struct zk *z, int by)
{
    struct counter *c = &z->source->home->numbers.watches;

    counter_set(c, counter_get(c) + (uint64_t)(int64_t)by);
}

/* ---------------------------------------------------------------- reading */

static bool wants_watch(const struct zk_path *p)
{
    list_each(l, &p->references) {
        if (container_of(l, struct reference, kind_link)->watched)
            return true;
    }
    return false;
}

static void set_watched(struct zk_path *p, bool on)
{
    if ((p->watch_bytes != 0) == on)
        return;
    p->watch_bytes = on ? strlen(p->path) + 4 : 0;
    count_watches(p->zk, on ? 1 : -1);
}

/* Every reference of the interface gets the whole list and takes what is its own. */
static void deliver(struct zk_path *p, const struct list_report *l)
{
    list_each_safe(x, &p->references) {
        reference_on_list(container_of(x, struct reference, kind_link), l);
    }
}

static void deliver_error(struct zk_path *p, const char *why)
{
    list_each_safe(x, &p->references) {
        reference_on_error(container_of(x, struct reference, kind_link), why);
    }
}

static size_t decode_names(const struct zk_op *op, struct arena *a, struct str *urls)
{
    size_t n = 0;

    for (size_t i = 0; i < op->n_names; i++) {
        struct err e = {0};

        if (url_decode_node(str_from(op->names[i]), a, &urls[n], &e))
            n++;
        else
            log_warn("registry", "a provider node is skipped: %s", e.text);
    }
    return n;
}

static struct zk_path *path_of(struct zk *z, const char *interface)
{
    struct zk_path *p = NULL;

    HASH_FIND_STR(z->paths, interface, p);
    return p;
}

static void on_exists_watch(struct zk_op *op)
{
    struct zk_path *p = path_of(op->zk, op->key);

    if (p != NULL && op->rc == ZOK)
        p->dirty = true; /* it came between the read and the watch */
}

/* The node is not there: its creation is what we wait for. */
static void watch_creation(struct zk_path *p)
{
    struct zk *z = p->zk;
    struct zk_op *op = zk_op_new(z, on_exists_watch);

    op->key = strdup(p->interface);
    zk_op_sent(op, zoo_awexists(z->handle, p->path, zk_watcher, z, zk_on_stat, op));
}

static void on_children(struct zk_op *op)
{
    struct zk *z = op->zk;
    struct zk_path *p = path_of(z, op->key);
    struct list_report l = {
        .exists = op->rc == ZOK, .czxid = op->czxid, .root_changed = z->root_changed};
    struct arena a;
    struct str *urls = NULL;

    if (p == NULL)
        return;
    p->in_flight = false;
    if (op->rc != ZOK && op->rc != ZNONODE) {
        p->dirty = true; /* again, when the connection stands or after a while */
        p->not_before_ms = clock_ms() + 1000;
        deliver_error(p, zerror(op->rc));
        return;
    }
    p->had_answer = true;
    set_watched(p, wants_watch(p));
    if (op->rc == ZNONODE && wants_watch(p))
        watch_creation(p);
    arena_init(&a);
    urls = arena_alloc(&a, (op->n_names + 1) * sizeof(*urls));
    l.urls = urls;
    l.n = decode_names(op, &a, urls);
    deliver(p, &l); /* may free references, and with the last one the path */
    arena_free(&a);
}

static void read_now(struct zk_path *p, uint64_t now)
{
    struct zk *z = p->zk;
    struct zk_op *op = zk_op_new(z, on_children);
    bool watch = wants_watch(p);

    p->dirty = false;
    p->in_flight = true;
    p->last_read_ms = now;
    op->key = strdup(p->interface);
    zk_op_sent(op, zoo_awget_children2(z->handle, p->path, watch ? zk_watcher : NULL,
                                       watch ? z : NULL, zk_on_strings, op));
}

static bool may_read(const struct zk_path *p, uint64_t now)
{
    return p->dirty && !p->in_flight && now >= p->not_before_ms &&
           (p->last_read_ms == 0 || now - p->last_read_ms >= READ_APART_MS);
}

void zk_paths_tick(struct zk *z, uint64_t now)
{
    unsigned n = 0;

    for (struct zk_path *p = z->paths; p != NULL; p = p->hh.next) {
        if (!may_read(p, now))
            continue;
        if (n++ == READS_PER_TICK || z->n_ops >= READS_IN_FLIGHT)
            return;
        read_now(p, now);
    }
}

/* Reads without waiting for the next tick when nothing speaks against it. */
static void read_soon(struct zk_path *p)
{
    uint64_t now = clock_ms();

    p->dirty = true;
    if (p->zk->connected && p->zk->handle != NULL && p->zk->n_ops < READS_IN_FLIGHT &&
        may_read(p, now))
        read_now(p, now);
}

/* ---------------------------------------------------------------- events and sessions */

void zk_paths_event(struct zk *z, const char *path)
{
    struct str rest = str_from(path);
    struct str root = str_from(z->source->conf.root);
    char interface[REFKEY_INTERFACE_MAX + 1];
    struct zk_path *p = NULL;
    struct str name = STR_NONE;

    if (!str_starts(rest, root) || rest.n <= root.n + 1)
        return;
    name = str_sub(rest, root.n + 1, rest.n);
    name = str_cut(name, '/', &rest);
    if (name.n > REFKEY_INTERFACE_MAX)
        return;
    snprintf(interface, sizeof(interface), STR_FMT, STR_ARG(name));
    p = path_of(z, interface);
    if (p != NULL)
        read_soon(p);
}

void zk_paths_read_again(struct zk *z)
{
    for (struct zk_path *p = z->paths; p != NULL; p = p->hh.next) {
        p->dirty = true;
        p->in_flight = false;
        p->not_before_ms = 0;
        p->last_read_ms = 0;
    }
}

void zk_paths_lost(struct zk *z)
{
    for (struct zk_path *p = z->paths; p != NULL; p = p->hh.next) {
        set_watched(p, false);
        p->in_flight = false;
    }
}

/* ---------------------------------------------------------------- references come and go */

static struct zk_path *new_path(struct zk *z, struct str interface)
{
    struct zk_path *p = xcalloc(1, sizeof(*p) + interface.n + 1);
    size_t len = strlen(z->source->conf.root) + interface.n + sizeof("//providers");

    memcpy(p->interface, interface.p, interface.n);
    p->zk = z;
    p->path = xcalloc(1, len);
    snprintf(p->path, len, "%s/%s/providers", z->source->conf.root, p->interface);
    list_init(&p->references);
    HASH_ADD_STR(z->paths, interface, p);
    return p;
}

static void free_path(struct zk_path *p)
{
    set_watched(p, false);
    /* the library goes on watching until the next event; then nobody reads again */
    if (p->zk->handle != NULL && p->zk->connected && p->had_answer) {
        struct zk_op *op = zk_op_new(p->zk, on_exists_watch);
        /* 3.8.0 declares a pointer to the function pointer here and calls it as the function itself */
        void_completion_t *done = (void_completion_t *)(uintptr_t)zk_on_void;

        op->key = strdup("");
        zk_op_sent(op, zoo_aremove_watches(p->zk->handle, p->path, ZWATCHTYPE_ANY, zk_watcher,
                                           p->zk, 1, done, op));
    }
    HASH_DEL(p->zk->paths, p);
    free(p->path);
    free(p);
}

void zk_watch(void *kind, struct reference *r)
{
    struct zk *z = kind;
    char interface[REFKEY_INTERFACE_MAX + 1];
    struct zk_path *p = NULL;

    snprintf(interface, sizeof(interface), STR_FMT, STR_ARG(r->key.interface));
    p = path_of(z, interface);
    if (p == NULL)
        p = new_path(z, r->key.interface);
    if (r->path == NULL)
        list_add(&p->references, &r->kind_link);
    r->path = p;
    p->last_read_ms = 0; /* a new reader does not wait for the pace of changes */
    read_soon(p);
}

void zk_unwatch(void *kind, struct reference *r)
{
    struct zk_path *p = r->path;

    if (p == NULL)
        return;
    list_remove(&r->kind_link);
    r->path = NULL;
    if (list_empty(&p->references))
        free_path(p);
}

void zk_refresh(void *kind, struct reference *r)
{
    if (r->path != NULL)
        read_soon(r->path);
}

void zk_paths_free(struct zk *z)
{
    struct zk_path *p = NULL;
    struct zk_path *next = NULL;

    HASH_ITER(hh, z->paths, p, next)
    {
        free_path(p);
    }
}
