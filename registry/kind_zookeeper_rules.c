#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "registry/rules.h"
#include "registry/url.h"
#include "registry/zk.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What of a set is not obeyed or not saved. */
struct shortfall {
    size_t n; /* no rules, and why the first is none */
    struct err first;
    size_t n_low; /* of low priority */
    bool unsaved;
};

/* One that is no rule is told and left out; the others count. */
static void add_node(const struct zk_path *p, const struct zk_op *op, enum rule_node kind,
                     const char *name, struct rules *r, struct shortfall *s)
{
    struct str own_ip = zk_own_ip(p->session->zk);
    struct str url = STR_NONE;
    struct err e = {0};

    if (url_decode_node(str_from(name), &r->arena, &url, &e) &&
        rules_add_url(r, kind, url, own_ip, &e) != RULE_BAD)
        return;
    log_warn("registry", "%s: a rule is skipped: %s", op->path, e.text);
    if (s->n++ == 0)
        s->first = e;
}

static enum rule_node kind_of(enum zk_category c)
{
    return c == ZK_ROUTERS ? RULE_NODE_CONDITION : RULE_NODE_CONFIGURATORS;
}

static char **bad_of(struct zk_path *p, enum zk_category c)
{
    return &p->bad[c == ZK_ROUTERS ? ZK_BAD_ROUTERS : ZK_BAD_CONFIGURATORS];
}

static void judge_set(struct zk_path *p, enum zk_category c, const char *path,
                      const struct shortfall *s)
{
    struct err e = {0};

    if (s->n != 0)
        err_set(&e, "%zu left out, the first: %s", s->n, s->first.text);
    else if (s->n_low != 0)
        err_set(&e, "%zu left out, those of the lowest priority: more than %d", s->n_low,
                RULE_STEPS_MAX);
    else if (s->unsaved)
        err_set(&e, "over 1 MiB together, so not in the saved lists");
    if (zk_bad_note(p->session->zk, bad_of(p, c), e.text[0] != '\0' ? e.text : NULL))
        log_warn("registry", "%s: %s", path, e.text);
}

static struct rules *read_set(struct zk_path *p, enum zk_category c, const struct zk_op *op)
{
    enum rule_node kind = kind_of(c);
    struct rules *r = rules_new(str_from(op->path));
    struct shortfall s = {.n = 0};

    /* the server names them in any order; where priorities are equal, Dubbo's is that of the texts */
    qsort(op->names, op->n_names, sizeof(*op->names), by_text);
    for (size_t i = 0; i < op->n_names; i++)
        add_node(p, op, kind, op->names[i], r, &s);
    s.unsaved = r->urls.failed;
    r = rules_finish(r);
    s.n_low = r != NULL ? r->n_left_out : 0;
    judge_set(p, c, op->path, &s);
    return r;
}

static void use(struct zk_path *p, enum zk_category c, struct rules *r)
{
    struct rules **at = &p->rules[c - ZK_CONFIGURATORS];
    bool told = r == NULL ? *at == NULL : *at != NULL && (*at)->hash == r->hash;

    rules_put(*at);
    *at = r;
    if (told)
        return;
    log_info("registry", "%s: %zu %s in force", p->interface,
             r != NULL ? r->overrides.n + r->n_conditions : 0,
             c == ZK_ROUTERS ? "routers" : "configurators");
    registry_mark_dirty(p->session->zk->source->home);
}

void zk_rules_take(struct zk_path *p, enum zk_category c, const struct zk_op *op)
{
    use(p, c, read_set(p, c, op));
}

void zk_rules_none(struct zk_path *p, enum zk_category c)
{
    zk_bad_note(p->session->zk, bad_of(p, c), NULL);
    use(p, c, NULL);
}

void zk_rules_unread(struct zk_path *p, enum zk_category c, const struct zk_op *op)
{
    struct err e;

    err_set(&e, "cannot be read: %s; the former ones stay", zk_why(op));
    zk_bad_note(p->session->zk, bad_of(p, c), e.text);
    log_warn("registry", "%s %s", op->path, e.text);
}

/* ---------------------------------------------------------------- saved ones */

static const enum zk_category sets[] = {ZK_CONFIGURATORS, ZK_ROUTERS};

static struct str saved_name(const struct zk_path *p, enum zk_category c, struct arena *a)
{
    return arena_printf(a, "%s/%s", p->interface, c == ZK_ROUTERS ? "routers" : "configurators");
}

void zk_rules_start(struct zk_path *p)
{
    const struct zk *z = p->session->zk;
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        struct str name = saved_name(p, sets[i], &a);
        struct str text = STR_NONE;

        if (saved_rules_take(z->source, name, &a, &text))
            p->rules[sets[i] - ZK_CONFIGURATORS] = rules_from_saved_urls(
                arena_printf(&a, "%s/" STR_FMT, z->source->conf.root, STR_ARG(name)),
                kind_of(sets[i]), text, zk_own_ip(z));
    }
    arena_free(&a);
}

static struct store_rule saved_form(const struct zk_path *p, enum zk_category c, struct arena *a)
{
    const struct rules *r = p->rules[c - ZK_CONFIGURATORS];

    return (struct store_rule){.registry = str_from(p->session->zk->source->conf.name),
                               .node = saved_name(p, c, a),
                               .text = r != NULL ? r->text : STR_NONE};
}

void zk_rules_end(struct zk_path *p)
{
    struct registry *home = p->session->zk->source->home;
    struct arena a;

    for (size_t i = 0; i < ARRAY_LEN(p->bad); i++)
        zk_bad_note(p->session->zk, &p->bad[i], NULL);

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        struct rules **r = &p->rules[sets[i] - ZK_CONFIGURATORS];
        const struct store_rule v = saved_form(p, sets[i], &a);

        if (*r != NULL && p->saved && !home->stopping)
            saved_rules_add(home, &v);
        rules_put(*r);
        *r = NULL;
    }
    arena_free(&a);
}

static bool save_path(const struct zk_path *p, struct store_writer *w)
{
    struct arena a;
    bool ok = true;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        const struct store_rule v = saved_form(p, sets[i], &a);

        ok = (p->rules[sets[i] - ZK_CONFIGURATORS] == NULL || store_put_rule(w, &v)) && ok;
    }
    arena_free(&a);
    return ok;
}

bool zk_save_rules(const void *kind, struct store_writer *w)
{
    const struct zk *z = kind;
    bool ok = zk_config_save(z, w);

    for (const struct zk_path *p = z->paths; p != NULL; p = p->hh.next)
        ok = save_path(p, w) && ok;
    return ok;
}
