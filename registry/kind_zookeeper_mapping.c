#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/url.h"
#include "registry/zk_apps.h"

enum { WATCH_OVERHEAD = 4 };

static bool wants_apps(const struct zk_path *p)
{
    list_each(l, &p->refs) {
        if (reference_discovery(container_of(l, struct zk_ref, link)->ref) != DISCOVERY_INTERFACE)
            return true;
    }
    return false;
}

/* ROOT/mapping/IFACE, in `a`. */
static const char *path_in(const struct zk_path *p, struct arena *a)
{
    return arena_printf(a, "%s/mapping/%s", p->session->zk->source->conf.root, p->interface).p;
}

size_t zk_mapping_bytes(const struct zk *z, struct str interface)
{
    if (z->source->conf.discovery == DISCOVERY_INTERFACE)
        return 0;
    return strlen(z->source->conf.root) + strlen("/mapping/") + interface.n + WATCH_OVERHEAD;
}

/* ---------------------------------------------------------------- which applications */

static struct zk_use *find_use(struct zk_path *p, struct str app)
{
    list_each(l, &p->mapping.uses) {
        struct zk_use *u = container_of(l, struct zk_use, of_path);

        if (str_is(app, u->app->name))
            return u;
    }
    return NULL;
}

static struct zk_use *get_use(struct zk_path *p, struct str name)
{
    struct zk_use *u = find_use(p, name);
    struct zk_app *app = u == NULL ? zk_app_get(p->session->zk, name) : NULL;

    if (app == NULL)
        return u;
    u = xcalloc(1, sizeof(*u));
    u->app = app;
    u->path = p;
    list_init(&u->of_app);
    list_init(&u->of_path);
    list_add(&app->uses, &u->of_app);
    list_add(&p->mapping.uses, &u->of_path);
    app->unused_since_ms = 0;
    registry_mark_dirty(p->session->zk->source->home);
    log_info("registry", "%s: application %s", p->interface, app->name);
    return u;
}

static void free_use(struct zk_use *u)
{
    list_remove(&u->of_app);
    list_remove(&u->of_path);
    if (list_empty(&u->app->uses))
        zk_app_idle(u->app);
    free(u);
}

static void drop_unwanted(struct zk_path *p)
{
    list_each_safe(l, &p->mapping.uses) {
        struct zk_use *u = container_of(l, struct zk_use, of_path);

        if (u->mapped || u->given)
            continue;
        registry_mark_dirty(p->session->zk->source->home);
        free_use(u);
    }
}

/* Adds to what is mapped. */
static void add_mapped(struct zk_path *p, struct str text)
{
    struct str apps[MAPPING_APPS_MAX];
    size_t n = mapping_parse(text, apps);

    for (size_t i = 0; i < n; i++) {
        struct zk_use *u = get_use(p, apps[i]);

        if (u != NULL)
            u->mapped = true;
    }
}

static void use_mapping(struct zk_path *p, struct str text)
{
    list_each(l, &p->mapping.uses) {
        container_of(l, struct zk_use, of_path)->mapped = false;
    }
    add_mapped(p, text);
    drop_unwanted(p);
}

/* Mappings are written when a provider starts, and only then: a registry that lost its data has none of providers that
 * are there.  What was known before counts on (docs/REGISTRY.md section 6.5). */
static void use_saved(struct zk_path *p)
{
    list_each(l, &p->refs) {
        const struct reference *ref = container_of(l, struct zk_ref, link)->ref;
        const struct snapshot_entry *e = snapshot_find(ref->home, ref->source, ref->key_text);

        if (e != NULL)
            add_mapped(p, e->apps);
    }
}

static void use_given(struct zk_path *p)
{
    list_each(l, &p->mapping.uses) {
        container_of(l, struct zk_use, of_path)->given = false;
    }
    list_each(l, &p->refs) {
        struct str apps[MAPPING_APPS_MAX];
        size_t n = mapping_parse(container_of(l, struct zk_ref, link)->ref->provided_by, apps);

        for (size_t i = 0; i < n; i++) {
            struct zk_use *u = get_use(p, apps[i]);

            if (u != NULL)
                u->given = true;
        }
    }
    drop_unwanted(p);
}

/* ---------------------------------------------------------------- reads */

static void on_exists(struct zk_session *s, struct zk_op *op)
{
    struct zk_path *p = zk_path_of(s->zk, str_from(op->key));

    if (p == NULL || p->session != s)
        return;
    if (op->rc == ZNONODE)
        zk_count_watch(s, &p->mapping.watch_set, true);
    else
        zk_mapping_event(p); /* it came between the read and the watch, or the answer was lost */
}

static void watch_creation(struct zk_path *p, const char *path)
{
    struct zk_op *op = zk_op_new(p->session, p->interface, path, on_exists);
    struct zk_handle *h = p->session->handle;

    zk_op_sent(op, zoo_awexists(h->h, op->path, zk_watcher, h, zk_on_stat, op));
}

static void on_mapping(struct zk_session *s, struct zk_op *op)
{
    struct zk_path *p = zk_path_of(s->zk, str_from(op->key));

    if (p == NULL || p->session != s)
        return;
    p->mapping.in_flight = false;
    if (zk_is_lost(op->rc)) {
        zk_mapping_event(p); /* read again when the session is back */
        return;
    }
    p->mapping.known = true;
    if (op->rc == ZOK) {
        zk_count_watch(s, &p->mapping.watch_set, op->watch || p->mapping.watch_set);
        p->mapping.czxid = op->stat.czxid;
        use_mapping(p, (struct str){op->data, op->n_data});
    } else if (op->rc == ZNONODE) {
        p->mapping.czxid = 0;
        use_saved(p);
        if (zk_wants_watch(p) && zk_can_send(s))
            watch_creation(p, op->path);
    } else {
        log_warn("registry", "%s cannot be read: %s", op->path, zk_why(op));
    }
}

static void read_now(struct zk_path *p)
{
    struct zk_handle *h = p->session->handle;
    struct zk_op *op = NULL;
    struct arena a;

    if (p->mapping.in_flight)
        return;
    p->mapping.in_flight = true;
    arena_init(&a);
    op = zk_op_new(p->session, p->interface, path_in(p, &a), on_mapping);
    arena_free(&a);
    op->watch = zk_wants_watch(p);
    zk_op_sent(op, zoo_awget(h->h, op->path, op->watch ? zk_watcher : NULL, op->watch ? h : NULL,
                             zk_on_data, op));
}

void zk_mapping_before_providers(struct zk_path *p)
{
    bool current = p->mapping.known && (p->mapping.watch_set || !zk_wants_watch(p));

    if (!current && wants_apps(p))
        read_now(p);
}

void zk_mapping_event(struct zk_path *p)
{
    zk_count_watch(p->session, &p->mapping.watch_set, false); /* it fires once */
    p->mapping.known = false;
    zk_path_read(p);
}

void zk_mapping_lost(struct zk_path *p)
{
    zk_count_watch(p->session, &p->mapping.watch_set, false);
    p->mapping.in_flight = p->mapping.known = false;
}

/* ---------------------------------------------------------------- an interface's list */

static bool is_settled(const struct zk_path *p)
{
    list_each(l, &p->mapping.uses) {
        if (!container_of(l, struct zk_use, of_path)->app->settled_once)
            return false;
    }
    return true;
}

/* Only the first list: a later one is not the poorer for what is not known yet. */
bool zk_mapping_holds(struct zk_path *p)
{
    struct zk_mapping *m = &p->mapping;
    uint64_t now = clock_ms();

    if (is_settled(p))
        return false;
    if (m->held_ms == 0)
        m->held_ms = now;
    if (now - m->held_ms >= APP_HOLD_MS)
        return false;
    p->not_before_ms = m->held_ms + APP_HOLD_MS;
    zk_path_read(p);
    return true;
}

void zk_app_tell(struct zk_app *app)
{
    app->changed_ms = 0;
    list_each_safe(l, &app->uses) {
        struct zk_path *p = container_of(l, struct zk_use, of_app)->path;

        if (p->mapping.held_ms != 0 && p->not_before_ms == p->mapping.held_ms + APP_HOLD_MS &&
            is_settled(p))
            p->next_read_ms = p->not_before_ms = 0; /* it waits for nothing else */
        zk_path_read(p);
    }
}

size_t zk_mapping_count(const struct zk_path *p)
{
    struct str interface = str_from(p->interface);
    size_t total = 0;

    list_each(l, &p->mapping.uses) {
        const struct zk_app *app = container_of(l, struct zk_use, of_path)->app;

        for (const struct zk_instance *i = app->instances; i != NULL; i = i->hh.next) {
            size_t n = 0;

            if (i->v != NULL && i->serving != NULL)
                (void)metadata_find(&i->serving->services, interface, &n);
            total += n;
        }
    }
    return total;
}

static void add_instance(const struct zk_path *p, const struct zk_instance *i, struct arena *a,
                         struct str *urls, size_t *n_urls)
{
    const struct app_service *s = NULL;
    struct buf url;
    size_t n = 0;

    if (i->v == NULL || i->serving == NULL)
        return;
    buf_init(&url, 2 * URL_MAX);
    s = metadata_find(&i->serving->services, str_from(p->interface), &n);
    for (size_t j = 0; j < n; j++) {
        buf_truncate(&url, 0);
        instance_url(i->v, &s[j], &url);
        if (url.len != 0)
            urls[(*n_urls)++] = arena_str(a, buf_str(&url));
    }
    buf_free(&url);
}

/* An application that the configuration names needs no mapping to be believed. */
static bool is_given(const struct zk_path *p)
{
    list_each(l, &p->mapping.uses) {
        const struct zk_use *u = container_of(l, struct zk_use, of_path);

        if (u->given && u->app->instances != NULL)
            return true;
    }
    return false;
}

void zk_mapping_report(const struct zk_path *p, struct arena *a, struct str *urls,
                       struct list_report *l)
{
    l->n_interface = l->n;
    l->apps_exist = p->mapping.czxid != 0 || is_given(p);
    l->apps_czxid = p->mapping.czxid;
    list_each(x, &p->mapping.uses) {
        const struct zk_app *app = container_of(x, struct zk_use, of_path)->app;

        for (const struct zk_instance *i = app->instances; i != NULL; i = i->hh.next)
            add_instance(p, i, a, urls, &l->n);
    }
}

/* ---------------------------------------------------------------- references come and go */

void zk_mapping_init(struct zk_path *p)
{
    list_init(&p->mapping.uses);
}

void zk_mapping_on_reference(struct zk_path *p, const struct reference *ref)
{
    bool any = ref->provided_by.n != 0;

    list_each(l, &p->mapping.uses) {
        any = any || container_of(l, struct zk_use, of_path)->given;
    }
    if (any)
        use_given(p);
}

void zk_mapping_free(struct zk_path *p)
{
    struct arena a;

    if (p->mapping.watch_set) {
        zk_count_watch(p->session, &p->mapping.watch_set, false);
        arena_init(&a);
        zk_remove_watch(p->session, path_in(p, &a));
        arena_free(&a);
    }
    while (!list_empty(&p->mapping.uses))
        free_use(container_of(p->mapping.uses.next, struct zk_use, of_path));
}

void zk_print_apps(const struct reference *ref, struct buf *out)
{
    const struct zk_ref *zr = ref->kind_ref;

    if (zr == NULL)
        return;
    list_each(l, &zr->path->mapping.uses) {
        const struct zk_use *u = container_of(l, struct zk_use, of_path);

        if (u->mapped)
            buf_printf(out, "%s%s", out->len != 0 ? "," : "", u->app->name);
    }
}
