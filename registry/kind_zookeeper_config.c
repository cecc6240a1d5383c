#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/rules.h"
#include "registry/zk_config.h"

/*
 * Rules of 2.7 and 3.x: nodes below one directory, named after the service or the application that they are about.
 * The directory's children are watched once for the registry, the data of those nodes only that concern one of our
 * references.  All of it is done over the registry's first session.
 *
 * A list of providers is not handed on before the rules that concern it were read once; who had to wait for them is
 * read again then.  From then on rules stay in force until others were read.
 */

enum {
    CONFIG_AGAIN_MS = 5000, /* after an error of the directory or of a node */
    CONFIG_NODES_MAX = 65536,
    CONFIG_NAMES_MAX = 4 * CONFIG_NODES_MAX, /* not all of them are of rules */
    CONFIG_READS_MAX = 64,                   /* in flight */
    CONFIG_OVERHEAD = 4,                     /* bytes beside the path in a packet of watches */
};

static struct zk_session *session_of(const struct zk *z)
{
    return container_of(z->sessions.next, struct zk_session, link);
}

/* ---------------------------------------------------------------- tables */

/* NOLINTBEGIN(readability-function-size): the macros of uthash */
static struct zk_config_node *find_node(const struct zk *z, struct str name)
{
    struct zk_config_node *n = NULL;

    HASH_FIND(hh, z->config.nodes, name.p, name.n, n);
    return n;
}

static void table_add(struct zk *z, struct zk_config_node *n)
{
    HASH_ADD_STR(z->config.nodes, name, n);
}

static void table_remove(struct zk *z, struct zk_config_node *n)
{
    HASH_DEL(z->config.nodes, n);
}

/* NOLINTEND(readability-function-size) */

static size_t bytes_of(const struct zk *z, const struct zk_config_node *n)
{
    return strlen(z->source->conf.config_root) + 1 + strlen(n->name) + CONFIG_OVERHEAD;
}

static void mark_dirty(struct zk *z, struct zk_config_node *n)
{
    if (list_empty(&n->dirty))
        list_add(&z->config.dirty, &n->dirty);
}

void zk_config_want(struct zk *z, struct zk_config_node *n)
{
    if (n->wanted || n->kind == RULE_NODE_SCRIPT)
        return;
    n->wanted = true;
    z->config.n_unknown++;
    session_of(z)->watch_bytes += bytes_of(z, n);
    mark_dirty(z, n);
}

static void free_node(struct zk *z, struct zk_config_node *n)
{
    if (n->wanted)
        session_of(z)->watch_bytes -= bytes_of(z, n);
    if (n->wanted && !n->known)
        z->config.n_unknown--;
    zk_count_watch(session_of(z), &n->watch_set, false);
    list_remove(&n->dirty);
    table_remove(z, n);
    rules_put(n->rules);
    zk_bad_note(z, &n->bad, NULL);
    free(n);
}

/* ---------------------------------------------------------------- content of a node */

/* All that was asked for is read: who waited for it is read again. */
static void release_held(struct zk *z)
{
    if (!z->config.ready || !z->config.any_held || z->config.n_unknown != 0)
        return;
    z->config.any_held = false;
    for (struct zk_path *p = z->paths, *next = NULL; p != NULL; p = next) {
        next = p->hh.next;
        if (p->held)
            zk_path_read(p);
        p->held = false;
    }
}

static void note_bad(struct zk *z, struct zk_config_node *n, const char *why)
{
    zk_bad_note(z, &n->bad, why);
    if (why != NULL)
        log_warn("registry", "registry %s: rule %s is not understood, the former one %s: %s",
                 z->source->conf.name, n->name, n->rules != NULL ? "stays" : "was none", why);
}

static void take_content(struct zk *z, struct zk_config_node *n, struct str content)
{
    struct rules *r = NULL;
    struct err e = {0};
    bool same = false;

    if (rules_from_node(str_from(n->name), n->kind, content, &r, &e) == RULE_BAD) {
        note_bad(z, n, e.text);
        return;
    }
    note_bad(z, n, NULL);
    same = r == NULL ? n->rules == NULL : n->rules != NULL && n->rules->hash == r->hash;
    rules_put(n->rules);
    n->rules = r;
    if (same)
        return;
    log_info("registry", "registry %s: rule %s %s", z->source->conf.name, n->name,
             r != NULL ? "is in force" : "is none");
    registry_mark_dirty(z->source->home);
    zk_config_reread(z, n);
}

static void on_data(struct zk_session *s, struct zk_op *op)
{
    struct zk *z = s->zk;
    struct zk_config_node *n = find_node(z, str_from(op->key));

    z->config.n_in_flight -= z->config.n_in_flight != 0 ? 1U : 0U;
    if (n == NULL)
        return;
    n->in_flight = false;
    if (op->rc == ZOK) {
        zk_count_watch(s, &n->watch_set, true);
        take_content(z, n, (struct str){op->data, op->n_data});
    } else if (op->rc == ZNONODE) {
        take_content(z, n, STR_NONE); /* the directory's watch tells when it comes back */
    } else {
        n->not_before_ms = zk_is_lost(op->rc) ? 0 : clock_ms() + CONFIG_AGAIN_MS;
        mark_dirty(z, n);
        if (!zk_is_lost(op->rc))
            note_bad(z, n, zk_why(op));
    }
    if (!n->known && !zk_is_lost(op->rc)) {
        n->known = true;
        z->config.n_unknown--;
    }
    release_held(z);
}

static void read_data(struct zk_session *s, struct zk_config_node *n)
{
    struct zk_handle *h = s->handle;
    struct zk_op *op = NULL;
    struct arena a;

    list_remove(&n->dirty);
    n->in_flight = true;
    s->zk->config.n_in_flight++;
    arena_init(&a);
    op = zk_op_new(s, n->name,
                   arena_printf(&a, "%s/%s", s->zk->source->conf.config_root, n->name).p, on_data);
    arena_free(&a);
    zk_op_sent(op, zoo_awget(h->h, op->path, zk_watcher, h, zk_on_data, op));
}

static void read_dirty(struct zk *z, uint64_t now)
{
    struct zk_session *s = session_of(z);

    if (!zk_can_send(s))
        return;
    list_each_safe(l, &z->config.dirty) {
        struct zk_config_node *n = container_of(l, struct zk_config_node, dirty);

        if (z->config.n_in_flight >= CONFIG_READS_MAX)
            return;
        if (!n->in_flight && now >= n->not_before_ms)
            read_data(s, n);
    }
}

/* ---------------------------------------------------------------- the directory */

/* The rule of the last run, until what stands there now has been read. */
static void take_saved(const struct zk *z, struct zk_config_node *n)
{
    struct arena a;
    struct str text = STR_NONE;
    struct err e;

    arena_init(&a);
    if (saved_rules_take(z->source, str_from(n->name), &a, &text) &&
        rules_from_node(str_from(n->name), n->kind, text, &n->rules, &e) == RULE_BAD)
        log_warn("registry", "%s: the saved rule is not understood: %s", n->name, e.text);
    arena_free(&a);
}

/* NULL: the name says nothing to us, or there are too many. */
static struct zk_config_node *add_node(struct zk *z, struct str name)
{
    struct zk_config_node *n = NULL;
    struct str key = STR_NONE;
    enum rule_node kind = rule_node_of(name, &key);

    if (kind == RULE_NODE_NONE || HASH_COUNT(z->config.nodes) >= CONFIG_NODES_MAX)
        return NULL;
    n = xcalloc(1, sizeof(*n) + name.n + 1);
    memcpy(n->name, name.p, name.n);
    n->kind = kind;
    n->key = str_sub(str_from(n->name), 0, key.n);
    list_init(&n->dirty);
    table_add(z, n);
    take_saved(z, n);
    return n;
}

struct zk_config_node *zk_config_find(struct zk *z, struct str name)
{
    struct zk_config_node *n = find_node(z, name);

    if (n != NULL || z->config.read || !saved_rules_has(z->source, name))
        return n;
    return add_node(z, name);
}

static void see_node(struct zk *z, const char *name)
{
    struct zk_config_node *n = find_node(z, str_from(name));

    if (n == NULL) {
        n = add_node(z, str_from(name));
        if (n == NULL)
            return;
        if (n->kind == RULE_NODE_SCRIPT && str_is(n->key, z->source->home->opts.application))
            log_warn("registry", "registry %s: %s: script rules are not run", z->source->conf.name,
                     name);
    }
    n->present = true;
    if (zk_config_concerns_us(z, n)) {
        zk_config_want(z, n);
        if (!n->watch_set && !n->in_flight) /* it went and came back */
            mark_dirty(z, n);
    }
}

static void drop_absent(struct zk *z)
{
    for (struct zk_config_node *n = z->config.nodes, *next = NULL; n != NULL; n = next) {
        next = n->hh.next;
        if (n->present)
            continue;
        note_bad(z, n, NULL);
        if (n->rules != NULL)
            take_content(z, n, STR_NONE);
        free_node(z, n);
    }
}

static void on_exists(struct zk_session *s, struct zk_op *op)
{
    if (op->rc == ZNONODE)
        zk_count_watch(s, &s->zk->config.watch_set, true);
    s->zk->config.in_flight = false; /* else it came between: the tick reads it */
}

/* Saved rules stay to be taken. */
static void on_unread(struct zk *z, const struct zk_op *op)
{
    z->config.not_before_ms = clock_ms() + CONFIG_AGAIN_MS;
    if (zk_bad_note(z, &z->config.bad, zk_why(op)))
        log_warn("registry", "registry %s: %s cannot be read: %s; the former rules stay",
                 z->source->conf.name, op->path, zk_why(op));
}

static void on_names(struct zk *z, const struct zk_op *op)
{
    struct zk_config *c = &z->config;
    struct err e;

    for (struct zk_config_node *n = c->nodes; n != NULL; n = n->hh.next)
        n->present = false;
    for (size_t i = 0; i < op->n_names; i++)
        see_node(z, op->names[i]);
    drop_absent(z);
    saved_rules_forget_nodes(z->source); /* who is there has taken its own */
    c->read = true;
    err_set(&e, "more than %d rules: the others are not obeyed", CONFIG_NODES_MAX);
    if (zk_bad_note(z, &c->bad, HASH_COUNT(c->nodes) >= CONFIG_NODES_MAX ? e.text : NULL))
        log_warn("registry", "registry %s: %s: %s", z->source->conf.name, op->path, e.text);
}

static void on_directory(struct zk_session *s, struct zk_op *op)
{
    struct zk_config *c = &s->zk->config;

    c->in_flight = false;
    if (zk_is_lost(op->rc))
        return;
    if (op->rc == ZOK || op->rc == ZNONODE)
        on_names(s->zk, op);
    else
        on_unread(s->zk, op);
    if (op->rc == ZOK) {
        zk_count_watch(s, &c->watch_set, true);
    } else if (op->rc == ZNONODE && zk_can_send(s)) {
        struct zk_op *again = zk_op_new(s, NULL, op->path, on_exists);

        c->in_flight = true;
        zk_op_sent(again, zoo_awexists(s->handle->h, again->path, zk_watcher, s->handle, zk_on_stat,
                                       again));
    }
    c->ready = true;
    read_dirty(s->zk, clock_ms());
    release_held(s->zk);
}

static void read_directory(struct zk_session *s)
{
    struct zk_op *op = zk_op_new(s, NULL, s->zk->source->conf.config_root, on_directory);
    struct zk_handle *h = s->handle;

    op->max_names = CONFIG_NAMES_MAX;
    s->zk->config.in_flight = true;
    zk_op_sent(op, zoo_awget_children2(h->h, op->path, zk_watcher, h, zk_on_strings, op));
}

/* ---------------------------------------------------------------- from the others */

void zk_config_init(struct zk *z)
{
    list_init(&z->config.dirty);
}

bool zk_config_tick(struct zk_session *s, uint64_t now)
{
    struct zk_config *c = &s->zk->config;

    if (s != session_of(s->zk))
        return false;
    if (!c->watch_set && !c->in_flight && now >= c->not_before_ms)
        read_directory(s);
    read_dirty(s->zk, now);
    return !list_empty(&c->dirty);
}

bool zk_config_event(struct zk_session *s, struct str path)
{
    struct zk *z = s->zk;
    struct str root = str_from(z->source->conf.config_root);
    struct zk_config_node *n = NULL;

    if (!str_starts(path, root))
        return false;
    if (path.n == root.n) {
        zk_count_watch(s, &z->config.watch_set, false);
        if (zk_can_send(s) && !z->config.in_flight)
            read_directory(s);
        return true;
    }
    if (path.p[root.n] != '/')
        return false;
    n = find_node(z, str_sub(path, root.n + 1, path.n));
    if (n != NULL) {
        zk_count_watch(s, &n->watch_set, false);
        mark_dirty(z, n);
        read_dirty(z, clock_ms());
    }
    return true;
}

void zk_config_lost(struct zk_session *s)
{
    struct zk_config *c = &s->zk->config;

    if (s != session_of(s->zk))
        return;
    zk_count_watch(s, &c->watch_set, false);
    c->in_flight = false;
    c->not_before_ms = 0;
    c->n_in_flight = 0;
    for (struct zk_config_node *n = c->nodes; n != NULL; n = n->hh.next) {
        zk_count_watch(s, &n->watch_set, false);
        n->in_flight = false;
        n->not_before_ms = 0;
        if (n->wanted)
            mark_dirty(s->zk, n);
    }
}

void zk_config_free(struct zk *z)
{
    for (struct zk_config_node *n = z->config.nodes, *next = NULL; n != NULL; n = next) {
        next = n->hh.next;
        free_node(z, n);
    }
    zk_bad_note(z, &z->config.bad, NULL);
    zk_ruleset_free(z);
}

void zk_config_hold(struct zk_path *p)
{
    struct zk *z = p->session->zk;

    p->held = z->config.any_held = true;
    read_dirty(z, clock_ms());
}

bool zk_config_save(const struct zk *z, struct store_writer *w)
{
    bool ok = true;

    for (const struct zk_config_node *n = z->config.nodes; n != NULL; n = n->hh.next) {
        if (n->rules != NULL)
            ok = store_put_rule(w, &(const struct store_rule){str_from(z->source->conf.name),
                                                              str_from(n->name), n->rules->text}) &&
                 ok;
    }
    return ok;
}
