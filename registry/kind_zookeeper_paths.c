#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/rules.h"
#include "registry/url.h"
#include "registry/zk.h"

enum {
    READS_PER_TICK = 50, /* after a new session: 2,500 a second */
    CALLS_IN_FLIGHT = 256,
    ERROR_FIRST_MS = 1000,
    ERROR_MAX_MS = 30000,
    WATCH_OVERHEAD = 4, /* bytes beside the path in a packet of watches */
};

static const char *const categories[ZK_CATEGORIES] = {
    [ZK_SELF] = "",
    [ZK_CONFIGURATORS] = "/configurators",
    [ZK_ROUTERS] = "/routers",
    [ZK_PROVIDERS] = "/providers",
};

static void read_now(struct zk_path *p, uint64_t now);
static void read_next(struct zk_path *p);

void zk_count_watch(struct zk_session *s, bool *flag, bool on)
{
    struct counter *c = &s->zk->source->home->numbers.watches;

    if (*flag == on)
        return;
    *flag = on;
    counter_set(c, on ? counter_get(c) + 1 : counter_get(c) - 1);
}

static void set_watch(struct zk_path *p, enum zk_category c, bool on)
{
    zk_count_watch(p->session, &p->node[c].watch_set, on);
}

static const char *path_of(const struct zk_path *p, enum zk_category c, struct arena *a)
{
    return arena_printf(a, "%s/%s%s", p->session->zk->source->conf.root, p->interface,
                        categories[c])
        .p;
}

/* NOLINTBEGIN(readability-function-size): the macros of uthash */
struct zk_path *zk_path_of(struct zk *z, struct str interface)
{
    struct zk_path *p = NULL;

    HASH_FIND(hh, z->paths, interface.n != 0 ? interface.p : "", interface.n, p);
    return p;
}

static void table_add(struct zk *z, struct zk_path *p)
{
    HASH_ADD_STR(z->paths, interface, p);
}

static void table_remove(struct zk *z, struct zk_path *p)
{
    HASH_DEL(z->paths, p);
}
/* NOLINTEND(readability-function-size) */

bool zk_wants_watch(const struct zk_path *p)
{
    list_each(l, &p->refs) {
        if (container_of(l, struct zk_ref, link)->ref->watched)
            return true;
    }
    return false;
}

static void mark_dirty(struct zk_path *p)
{
    if (list_empty(&p->dirty))
        list_add(&p->session->dirty, &p->dirty);
}

static bool may_read(const struct zk_path *p, uint64_t now)
{
    return !p->reading && now >= p->not_before_ms && now >= p->next_read_ms &&
           p->session->handle->n_ops < CALLS_IN_FLIGHT;
}

/* Now, when nothing speaks against it; else by the tick. */
void zk_path_read(struct zk_path *p)
{
    uint64_t now = clock_ms();

    mark_dirty(p);
    if (zk_can_send(p->session) && may_read(p, now))
        read_now(p, now);
}

/* ---------------------------------------------------------------- answers */

static void free_path(struct zk_path *p);

/* Every reference of the interface gets the whole list and takes what is its own.  It may end there, and
 * with the last one the path. */
static void deliver(struct zk_path *p, struct list_report *l, const struct zk_apps *apps,
                    const char *error)
{
    UNFILLED struct ruleset rules;
    struct list todo;
    struct list *x = NULL;

    p->delivering = true;
    list_init(&todo);
    while ((x = list_take(&p->refs)) != NULL)
        list_add(&todo, x);
    while ((x = list_take(&todo)) != NULL) {
        struct reference *ref = container_of(x, struct zk_ref, link)->ref;

        list_add(&p->refs, x);
        if (l != NULL) {
            (void)zk_config_rules(p->session->zk, p, &ref->key, apps, &rules);
            l->rules = &rules;
            reference_on_list(ref, l);
        } else {
            reference_on_error(ref, error);
        }
    }
    p->delivering = false;
    if (list_empty(&p->refs))
        free_path(p);
}

static size_t decode_names(const struct zk_op *op, struct arena *a, struct str *urls)
{
    size_t n = 0;

    for (size_t i = 0; i < op->n_names; i++) {
        struct err e = {0};

        if (url_decode_node(str_from(op->names[i]), a, &urls[n], &e))
            n++;
        else
            log_warn("registry", "%s: a node is skipped: %s", op->path, e.text);
    }
    return n;
}

static void on_error(struct zk_path *p, const struct zk_op *op)
{
    uint64_t wait = ERROR_FIRST_MS;

    p->reading = false;
    mark_dirty(p);
    if (zk_is_lost(op->rc))
        return; /* the session's matter; read again when it is back */
    for (unsigned i = 0; i < p->failures && wait < ERROR_MAX_MS; i++)
        wait *= 2;
    p->failures++;
    p->not_before_ms = clock_ms() + (wait < ERROR_MAX_MS ? wait : ERROR_MAX_MS);
    log_warn("registry", "%s cannot be read: %s", op->path, zk_why(op));
    deliver(p, NULL, NULL, zk_why(op));
}

/* The watch for a node that is not there yet. */
static void on_exists(struct zk_session *s, struct zk_op *op)
{
    struct zk_path *p = zk_path_of(s->zk, str_from(op->key));

    if (p == NULL || p->session != s)
        return;
    if (op->rc == ZNONODE)
        set_watch(p, ZK_SELF, true);
    else
        zk_path_read(p); /* it came between the read and the watch, or the answer was lost */
}

static void watch_creation(struct zk_path *p, const char *path)
{
    struct zk_op *op = zk_op_new(p->session, p->interface, path, on_exists);
    struct zk_handle *h = p->session->handle;

    zk_op_sent(op, zoo_awexists(h->h, op->path, zk_watcher, h, zk_on_stat, op));
}

static void note_zxid(struct zk_path *p, const struct Stat *stat, struct list_report *l)
{
    struct store_registry *known = &p->session->zk->source->known;

    l->czxid = stat->czxid;
    /* it can only grow, unless the servers went back to an older state */
    l->rolled_back = p->pzxid > stat->pzxid;
    p->pzxid = stat->pzxid;
    if (known->max_zxid < stat->pzxid)
        known->max_zxid = stat->pzxid;
}

static void add_app(struct zk_apps *apps, struct str name)
{
    for (size_t i = 0; i < apps->n; i++) {
        if (str_eq(apps->v[i], name))
            return;
    }
    apps->more = apps->more || (name.n != 0 && apps->n == ARRAY_LEN(apps->v));
    if (name.n != 0 && apps->n < ARRAY_LEN(apps->v))
        apps->v[apps->n++] = name;
}

static void note_more_apps(struct zk_path *p, bool more)
{
    struct err e;

    err_set(&e, "providers of more than %d applications: the rules of the others are not obeyed",
            RULESET_APPS_MAX);
    if (zk_bad_note(p->session->zk, &p->bad[ZK_BAD_APPS], more ? e.text : NULL))
        log_warn("registry", "%s: %s", p->interface, e.text);
}

/* Whose rules count: applications of the listed providers and of those that may stay though they are not. */
static void find_apps(struct zk_path *p, const struct list_report *l, struct zk_apps *apps)
{
    for (size_t i = 0; i < l->n; i++)
        add_app(apps, url_peek(l->urls[i], STR("application")));
    note_more_apps(p, apps->more);
    list_each(x, &p->refs) {
        const struct directory *d = container_of(x, struct zk_ref, link)->ref->directory;

        for (size_t i = 0; d != NULL && i < d->n; i++)
            add_app(apps, d->providers[i].application);
    }
}

static bool rules_are_read(struct zk_path *p, const struct list_report *l, struct zk_apps *apps)
{
    UNFILLED struct ruleset rules;
    bool all = true;

    find_apps(p, l, apps);
    list_each(x, &p->refs) {
        const struct reference *ref = container_of(x, struct zk_ref, link)->ref;

        all = zk_config_rules(p->session->zk, p, &ref->key, apps, &rules) && all;
    }
    return all;
}

/* The list is complete. */
static void on_providers(struct zk_path *p, const struct zk_op *op)
{
    struct list_report l = {.exists = op->rc == ZOK, .consumer_ip = zk_own_ip(p->session->zk)};
    struct zk_apps apps = {.n = 0};
    struct arena a;
    struct str *urls = NULL;

    p->reading = false;
    p->failures = 0;
    p->n_listed = (uint32_t)op->n_names;
    if (l.exists)
        note_zxid(p, &op->stat, &l);
    if (l.exists && zk_wants_watch(p) && !op->watch)
        mark_dirty(p); /* it became a subscription while this read was under way */
    if (zk_mapping_holds(p))
        return;
    arena_init(&a);
    urls = arena_alloc(&a, (op->n_names + zk_mapping_count(p) + 1) * sizeof(*urls));
    l.n = l.exists ? decode_names(op, &a, urls) : 0;
    l.urls = urls;
    zk_mapping_report(p, &a, urls, &l);
    if (rules_are_read(p, &l, &apps))
        deliver(p, &l, &apps, NULL);
    else
        zk_config_hold(p);
    arena_free(&a);
}

static void on_self(struct zk_path *p, const struct zk_op *op)
{
    for (int c = ZK_SELF + 1; c < ZK_CATEGORIES; c++)
        p->node[c].exists = false;
    for (size_t i = 0; i < op->n_names; i++) {
        for (int c = ZK_SELF + 1; c < ZK_CATEGORIES; c++) {
            if (strcmp(op->names[i], categories[c] + 1) == 0)
                p->node[c].exists = true;
        }
    }
    p->node[ZK_SELF].exists = op->rc == ZOK;
    if (op->rc == ZNONODE && zk_wants_watch(p) && zk_can_send(p->session))
        watch_creation(p, op->path);
    if (p->node[ZK_PROVIDERS].exists)
        read_next(p);
    else
        on_providers(p, &(const struct zk_op){.rc = ZNONODE});
}

/* Rules that cannot be read: the former ones stay. */
static void on_rules(struct zk_path *p, enum zk_category c, const struct zk_op *op)
{
    if (op->rc == ZOK || op->rc == ZNONODE)
        zk_rules_take(p, c, op);
    else
        zk_rules_unread(p, c, op);
}

static void on_children(struct zk_session *s, struct zk_op *op)
{
    struct zk_path *p = zk_path_of(s->zk, str_from(op->key));
    enum zk_category c = (enum zk_category)op->step;
    bool rules = c == ZK_CONFIGURATORS || c == ZK_ROUTERS;

    if (p == NULL || p->session != s || !p->node[c].in_flight)
        return;
    p->node[c].in_flight = false;
    if (op->rc == ZOK && op->watch)
        set_watch(p, c, true);
    if (rules && !zk_is_lost(op->rc))
        on_rules(p, c, op);
    else if (op->rc != ZOK && op->rc != ZNONODE)
        on_error(p, op);
    else if (c == ZK_SELF)
        on_self(p, op);
    else
        on_providers(p, op);
}

/* ---------------------------------------------------------------- reads */

static void read_node(struct zk_path *p, enum zk_category c)
{
    struct zk_handle *h = p->session->handle;
    struct zk_op *op = NULL;
    struct arena a;

    arena_init(&a);
    op = zk_op_new(p->session, p->interface, path_of(p, c, &a), on_children);
    arena_free(&a);
    op->step = (int)c;
    op->watch = zk_wants_watch(p);
    p->node[c].in_flight = true;
    zk_op_sent(op, zoo_awget_children2(h->h, op->path, op->watch ? zk_watcher : NULL,
                                       op->watch ? h : NULL, zk_on_strings, op));
}

/* What is below the interface is known: answers come in the order of the questions, the providers last. */
static void read_next(struct zk_path *p)
{
    for (int c = ZK_CONFIGURATORS; c < ZK_PROVIDERS; c++) {
        if (!p->node[c].exists)
            zk_rules_none(p, (enum zk_category)c);
        else if (!p->node[c].watch_set)
            read_node(p, (enum zk_category)c);
    }
    read_node(p, ZK_PROVIDERS);
}

static void read_now(struct zk_path *p, uint64_t now)
{
    zk_mapping_before_providers(p);
    list_remove(&p->dirty);
    p->reading = true;
    p->next_read_ms = now + zk_read_apart_ms(p->n_listed, now);
    if (p->node[ZK_SELF].watch_set && p->node[ZK_PROVIDERS].exists)
        read_next(p);
    else
        read_node(p, ZK_SELF);
}

bool zk_paths_tick(struct zk_session *s, uint64_t now)
{
    unsigned n = 0;

    list_each_safe(l, &s->dirty) {
        struct zk_path *p = container_of(l, struct zk_path, dirty);

        if (!may_read(p, now))
            continue;
        read_now(p, now);
        if (++n == READS_PER_TICK)
            break;
    }
    return !list_empty(&s->dirty);
}

/* ---------------------------------------------------------------- events */

static bool category_of(struct str name, enum zk_category *c)
{
    for (int i = ZK_SELF; i < ZK_CATEGORIES; i++) {
        if (str_is(name, categories[i] + (i != ZK_SELF ? 1 : 0))) {
            *c = (enum zk_category)i;
            return true;
        }
    }
    return false;
}

void zk_paths_event(struct zk_session *s, const char *path)
{
    struct str root = str_from(s->zk->source->conf.root);
    struct str rest = str_from(path);
    enum zk_category c = ZK_SELF;
    struct zk_path *p = NULL;

    if (zk_config_event(s, rest) || !str_starts(rest, root) || rest.n <= root.n + 1)
        return;
    p = zk_path_of(s->zk, str_cut(str_sub(rest, root.n + 1, rest.n), '/', &rest));
    if (p == NULL || p->session != s || !category_of(rest, &c))
        return;
    set_watch(p, c, false); /* it fires once */
    zk_path_read(p);
}

void zk_paths_lost(struct zk_session *s)
{
    list_each(l, &s->paths) {
        struct zk_path *p = container_of(l, struct zk_path, link);

        for (int c = ZK_SELF; c < ZK_CATEGORIES; c++) {
            set_watch(p, (enum zk_category)c, false);
            p->node[c].in_flight = false;
        }
        zk_mapping_lost(p);
        p->reading = false;
        p->next_read_ms = p->not_before_ms = 0;
        mark_dirty(p);
    }
}

/* ---------------------------------------------------------------- references come and go */

struct zk_session *zk_session_for(struct zk *z, size_t bytes)
{
    size_t budget = z->source->home->opts.watch_bytes;

    if (budget == 0)
        budget = ZK_WATCH_BYTES;
    list_each(l, &z->sessions) {
        struct zk_session *s = container_of(l, struct zk_session, link);

        if (s->watch_bytes + bytes <= budget || s->watch_bytes == 0)
            return s;
    }
    log_notice("registry", "registry %s: one more session: too many watches for one",
               z->source->conf.name);
    return zk_session_new(z);
}

/* Of all its nodes, though mostly some are missing. */
static size_t bytes_of(const struct zk *z, struct str interface)
{
    size_t n = 0;

    for (int c = ZK_SELF; c < ZK_CATEGORIES; c++)
        n += strlen(z->source->conf.root) + 1 + interface.n + strlen(categories[c]) +
             WATCH_OVERHEAD + strlen(z->source->conf.chroot);
    return n;
}

static struct zk_path *new_path(struct zk *z, struct str interface)
{
    struct zk_path *p = xcalloc(1, sizeof(*p) + interface.n + 1);

    memcpy(p->interface, interface.p, interface.n);
    p->bytes = bytes_of(z, interface) + zk_mapping_bytes(z, interface);
    p->session = zk_session_for(z, p->bytes);
    p->session->watch_bytes += p->bytes;
    zk_mapping_init(p);
    list_init(&p->dirty);
    list_init(&p->refs);
    list_init(&p->link);
    list_add(&p->session->paths, &p->link);
    table_add(z, p);
    zk_rules_start(p);
    return p;
}

static void on_removed(struct zk_session *s, struct zk_op *op)
{
    /* whatever it says: an event for a path that nobody reads is ignored */
}

void zk_remove_watch(struct zk_session *s, const char *path)
{
    struct zk_op *op = NULL;
    void_completion_t *done = NULL;

    if (!zk_can_send(s) || s->zk->source->home->stopping)
        return;
    op = zk_op_new(s, NULL, path, on_removed);
    /* zoo_aremove_watches would only ask the server whether there is a watch.  The header asks for a pointer to
     * the callback; what the library calls is the callback itself. */
    done = (void_completion_t *)(uintptr_t)zk_on_void; /* NOLINT(performance-no-int-to-ptr) */
    zk_op_sent(op, zoo_aremove_all_watches(s->handle->h, op->path, ZWATCHTYPE_ANY, 0, done, op));
}

static void unwatch(struct zk_path *p, enum zk_category c)
{
    struct arena a;

    if (!p->node[c].watch_set)
        return;
    set_watch(p, c, false);
    arena_init(&a);
    zk_remove_watch(p->session, path_of(p, c, &a));
    arena_free(&a);
}

static void free_path(struct zk_path *p)
{
    for (int c = ZK_SELF; c < ZK_CATEGORIES; c++)
        unwatch(p, (enum zk_category)c);
    zk_rules_end(p);
    zk_mapping_free(p);
    p->session->watch_bytes -= p->bytes;
    list_remove(&p->dirty);
    list_remove(&p->link);
    table_remove(p->session->zk, p);
    free(p);
}

static struct zk_ref *zk_ref_of(struct zk *z, struct reference *ref)
{
    struct zk_ref *zr = ref->kind_ref;

    if (zr != NULL)
        return zr;
    zr = xcalloc(1, sizeof(*zr));
    zr->ref = ref;
    zr->path = zk_path_of(z, ref->key.interface);
    if (zr->path == NULL)
        zr->path = new_path(z, ref->key.interface);
    zr->path->saved = zr->path->saved ||
                      snapshot_has_list(z->source->home, str_from(z->source->conf.name),
                                        ref->key_text);
    list_init(&zr->queue);
    list_init(&zr->link);
    list_add(&zr->path->refs, &zr->link);
    ref->kind_ref = zr;
    return zr;
}

void zk_rules_of(void *kind, struct reference *ref, const struct provider *v, size_t n,
                 struct ruleset *out, struct str *own_ip)
{
    struct zk *z = kind;
    struct zk_apps apps = {.n = 0};

    for (size_t i = 0; i < n; i++)
        add_app(&apps, v[i].application);
    (void)zk_config_rules(z, zk_ref_of(z, ref)->path, &ref->key, &apps, out);
    *own_ip = zk_own_ip(z);
}

void zk_watch(void *kind, struct reference *ref)
{
    const struct zk_ref *zr = zk_ref_of(kind, ref);

    zk_mapping_on_reference(zr->path, ref);
    zr->path->next_read_ms = 0; /* who is new does not wait for the pace of changes */
    zk_path_read(zr->path);
}

void zk_unwatch(void *kind, struct reference *ref)
{
    struct zk_ref *zr = ref->kind_ref;
    struct zk_path *p = zr != NULL ? zr->path : NULL;

    if (p == NULL)
        return;
    list_remove(&zr->link);
    list_remove(&zr->queue);
    zk_acl_free(&zr->acl);
    free(zr);
    ref->kind_ref = NULL;
    if (list_empty(&p->refs) && !p->delivering)
        free_path(p);
}

void zk_refresh(void *kind, struct reference *ref)
{
    const struct zk_ref *zr = ref->kind_ref;

    if (zr != NULL)
        zk_path_read(zr->path);
}
