#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "base/log.h"
#include "registry/configurator.h"
#include "registry/url.h"
#include "registry/zk.h"

/* What an interface's configurators say.  Only those that have some have this. */
struct zk_rule_set {
    struct arena arena;
    struct configurators overrides;
};

/* ROOT/IFACE/configurators, in `a`. */
static const char *path_in(const struct zk_path *p, struct arena *a)
{
    struct str parent = str_sub(str_from(p->path), 0, strlen(p->path) - strlen("providers"));

    return arena_printf(a, STR_FMT "configurators", STR_ARG(parent)).p;
}

const struct configurators *zk_rules(const struct zk_path *p)
{
    return p->rules.set != NULL ? &p->rules.set->overrides : NULL;
}

static void free_set(struct zk_rule_set *set)
{
    if (set == NULL)
        return;
    arena_free(&set->arena);
    free(set);
}

/* ---------------------------------------------------------------- answers */

/* One that is no rule is told and left out; the others count. */
static void add_node(const struct zk_op *op, const char *name, struct zk_rule_set *set)
{
    struct str url = STR_NONE;
    struct err e = {0};

    if (!url_decode_node(str_from(name), &set->arena, &url, &e) ||
        configurator_from_url(url, DUBBO_33, &set->arena, &set->overrides, &e) == RULE_BAD)
        log_warn("registry", "%s: a configurator is skipped: %s", op->path, e.text);
}

static struct zk_rule_set *read_set(const struct zk_op *op)
{
    struct zk_rule_set *set = NULL;

    if (op->n_names == 0)
        return NULL;
    set = xcalloc(1, sizeof(*set));
    arena_init(&set->arena);
    for (size_t i = 0; i < op->n_names; i++)
        add_node(op, op->names[i], set);
    configurators_sort(&set->overrides);
    if (set->overrides.n != 0)
        return set;
    free_set(set);
    return NULL;
}

static void use_set(struct zk_path *p, struct zk_rule_set *set)
{
    bool none = set == NULL && p->rules.set == NULL;

    free_set(p->rules.set);
    p->rules.set = set;
    if (!none)
        log_info("registry", "%s: %zu configurators in force", p->interface,
                 set != NULL ? set->overrides.n : 0);
}

static void on_exists(struct zk_session *s, struct zk_op *op)
{
    struct zk_path *p = zk_path_of(s->zk, str_from(op->key));

    if (p == NULL || p->session != s)
        return;
    if (op->rc == ZNONODE)
        zk_count_watch(s, &p->rules.watch_set, true);
    else
        zk_rules_event(p); /* it came between the read and the watch, or the answer was lost */
}

static void watch_creation(struct zk_path *p, const char *path)
{
    struct zk_op *op = zk_op_new(p->session, p->interface, path, on_exists);
    struct zk_handle *h = p->session->handle;

    zk_op_sent(op, zoo_awexists(h->h, op->path, zk_watcher, h, zk_on_stat, op));
}

static void on_children(struct zk_session *s, struct zk_op *op)
{
    struct zk_path *p = zk_path_of(s->zk, str_from(op->key));

    if (p == NULL || p->session != s)
        return;
    p->rules.in_flight = false;
    if (zk_is_lost(op->rc)) {
        zk_rules_event(p); /* read again when the session is back */
        return;
    }
    p->rules.known = true;
    if (op->rc != ZOK && op->rc != ZNONODE) {
        log_warn("registry", "%s cannot be read: %s; the former configurators stay", op->path,
                 zerror(op->rc));
        return;
    }
    if (op->rc == ZOK && op->watch)
        zk_count_watch(s, &p->rules.watch_set, true);
    else if (op->rc == ZNONODE && zk_wants_watch(p) && zk_can_send(s))
        watch_creation(p, op->path);
    use_set(p, read_set(op));
}

/* ---------------------------------------------------------------- reads */

static void read_now(struct zk_path *p)
{
    struct zk_handle *h = p->session->handle;
    struct zk_op *op = NULL;
    struct arena a;

    if (p->rules.in_flight)
        return;
    p->rules.in_flight = true;
    arena_init(&a);
    op = zk_op_new(p->session, p->interface, path_in(p, &a), on_children);
    arena_free(&a);
    op->watch = zk_wants_watch(p);
    zk_op_sent(op, zoo_awget_children2(h->h, op->path, op->watch ? zk_watcher : NULL,
                                       op->watch ? h : NULL, zk_on_strings, op));
}

void zk_rules_before_providers(struct zk_path *p)
{
    if (!p->rules.known || (zk_wants_watch(p) && !p->rules.watch_set))
        read_now(p);
}

/* The texts of the providers are not kept: both are read again, the rules first. */
void zk_rules_event(struct zk_path *p)
{
    zk_count_watch(p->session, &p->rules.watch_set, false); /* it fires once */
    p->rules.known = false;
    zk_path_read(p);
}

void zk_rules_lost(struct zk_path *p)
{
    zk_count_watch(p->session, &p->rules.watch_set, false);
    p->rules.in_flight = p->rules.known = false;
}

void zk_rules_free(struct zk_path *p)
{
    struct arena a;

    if (p->rules.watch_set) {
        zk_count_watch(p->session, &p->rules.watch_set, false);
        arena_init(&a);
        zk_remove_watch(p->session, path_in(p, &a));
        arena_free(&a);
    }
    free_set(p->rules.set);
}

size_t zk_rules_bytes(const struct zk_path *p)
{
    return strlen(p->path) + strlen("configurators") - strlen("providers");
}
