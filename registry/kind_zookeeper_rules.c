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

/* One that is no rule is told and left out; the others count. */
static void add_node(const struct zk_path *p, const struct zk_op *op, enum rule_node kind,
                     const char *name, struct rules *r)
{
    struct str own_ip = str_from(p->session->zk->consumer_ip);
    struct str url = STR_NONE;
    struct err e = {0};

    if (!url_decode_node(str_from(name), &r->arena, &url, &e) ||
        rules_add_url(r, kind, url, own_ip, &e) == RULE_BAD)
        log_warn("registry", "%s: a rule is skipped: %s", op->path, e.text);
}

static struct rules *read_set(const struct zk_path *p, enum zk_category c, const struct zk_op *op)
{
    enum rule_node kind = c == ZK_ROUTERS ? RULE_NODE_CONDITION : RULE_NODE_CONFIGURATORS;
    struct rules *r = NULL;

    if (op->n_names == 0)
        return NULL;
    r = rules_new(str_from(op->path));
    /* the server names them in any order; where priorities are equal, Dubbo's is that of the texts */
    qsort(op->names, op->n_names, sizeof(*op->names), by_text);
    for (size_t i = 0; i < op->n_names; i++)
        add_node(p, op, kind, op->names[i], r);
    return rules_finish(r);
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
}

void zk_rules_take(struct zk_path *p, enum zk_category c, const struct zk_op *op)
{
    use(p, c, read_set(p, c, op));
}

void zk_rules_none(struct zk_path *p, enum zk_category c)
{
    use(p, c, NULL);
}
