#include "registry/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "base/hash.h"
#include "base/log.h"
#include "registry/store.h"

static const struct {
    const char *suffix;
    enum rule_node kind;
} nodes[] = {
    {".configurators", RULE_NODE_CONFIGURATORS},
    {".condition-router", RULE_NODE_CONDITION},
    {".tag-router", RULE_NODE_TAG},
    {".script-router", RULE_NODE_SCRIPT},
};

enum rule_node rule_node_of(struct str name, struct str *key)
{
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        size_t n = strlen(nodes[i].suffix);

        if (name.n > n && str_is(str_sub(name, name.n - n, name.n), nodes[i].suffix)) {
            *key = str_sub(name, 0, name.n - n);
            return nodes[i].kind;
        }
    }
    return RULE_NODE_NONE;
}

struct rules *rules_new(struct str name)
{
    struct rules *r = xcalloc(1, sizeof(*r));

    ref_init(&r->refs);
    arena_init(&r->arena);
    r->name = arena_str(&r->arena, name);
    buf_init(&r->urls, STORE_RULE_MAX);
    return r;
}

struct rules *rules_get(struct rules *r)
{
    if (r != NULL)
        ref_get(&r->refs);
    return r;
}

void rules_put(struct rules *r)
{
    if (r == NULL || !ref_put(&r->refs))
        return;
    arena_free(&r->arena);
    buf_free(&r->urls);
    free(r);
}

/* The order of texts counts, as their order counts where priorities are equal. */
static void add_hash(struct rules *r, struct str text)
{
    r->hash = r->hash * UINT64_C(1099511628211) + hash_bytes(text.n != 0 ? text.p : "", text.n);
}

/* ---------------------------------------------------------------- nodes of 2.7 and 3.x */

static enum rule_result read_condition(struct rules *r, struct str text, struct err *e)
{
    enum rule_result result;

    r->conditions = arena_alloc(&r->arena, sizeof(*r->conditions));
    result = condition_rule_from_yaml(text, DUBBO_33, &r->arena, r->conditions, e);
    r->n_conditions = result == RULE_OK ? 1 : 0;
    return result;
}

static enum rule_result read_tags(struct rules *r, struct str text, struct err *e)
{
    struct tag_rule *t = arena_alloc(&r->arena, sizeof(*t));
    enum rule_result result = tag_rule_from_yaml(text, DUBBO_33, &r->arena, t, e);

    r->tags = result == RULE_OK ? t : NULL;
    return result;
}

enum rule_result rules_from_node(struct str name, enum rule_node kind, struct str content,
                                 struct rules **out, struct err *e)
{
    struct rules *r = rules_new(name);
    struct str text = arena_str(&r->arena, content);
    enum rule_result result = RULE_NONE;

    r->text = text;
    add_hash(r, text);
    if (kind == RULE_NODE_CONFIGURATORS)
        result = configurators_from_yaml(text, DUBBO_33, &r->arena, &r->overrides, e);
    else if (kind == RULE_NODE_CONDITION)
        result = read_condition(r, text, e);
    else if (kind == RULE_NODE_TAG)
        result = read_tags(r, text, e);
    if (result != RULE_OK) {
        rules_put(r);
        r = NULL;
    }
    if (result != RULE_BAD)
        *out = r;
    return result;
}

/* ---------------------------------------------------------------- URLs of 2.6 */

static enum rule_result add_router(struct rules *r, struct str url, struct str own_ip,
                                   struct err *e)
{
    struct condition_rule c;
    struct condition_rule *grown = NULL;
    enum rule_result result = condition_rule_from_url(url, own_ip, &r->arena, &c, e);

    if (result != RULE_OK)
        return result;
    if ((r->n_conditions & (r->n_conditions - 1)) == 0) { /* the room is a power of two */
        grown = arena_alloc(&r->arena, (r->n_conditions * 2 + 1) * sizeof(*grown));
        if (r->n_conditions != 0)
            memcpy(grown, r->conditions, r->n_conditions * sizeof(*grown));
        r->conditions = grown;
    }
    r->conditions[r->n_conditions++] = c;
    return RULE_OK;
}

enum rule_result rules_add_url(struct rules *r, enum rule_node kind, struct str url,
                               struct str own_ip, struct err *e)
{
    enum rule_result result = kind == RULE_NODE_CONFIGURATORS
                                  ? configurator_from_url(url, DUBBO_33, &r->arena, &r->overrides,
                                                          e)
                                  : add_router(r, url, own_ip, e);

    if (result == RULE_OK) {
        add_hash(r, url);
        buf_add_str(&r->urls, url);
        buf_add_u8(&r->urls, '\n');
    }
    return result;
}

struct ordered {
    struct condition_rule v;
    size_t at;
};

static int by_priority(const void *a, const void *b)
{
    const struct ordered *x = a;
    const struct ordered *y = b;

    if (x->v.priority != y->v.priority)
        return x->v.priority < y->v.priority ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Ascending, so that the one with the higher priority has the last word; of too many those with the higher one count. */
static void sort_routers(struct rules *r)
{
    struct ordered *all = xcalloc(r->n_conditions + 1, sizeof(*all));

    for (size_t i = 0; i < r->n_conditions; i++)
        all[i] = (struct ordered){r->conditions[i], i};
    qsort(all, r->n_conditions, sizeof(*all), by_priority);
    if (r->n_conditions > RULE_STEPS_MAX)
        r->n_left_out = r->n_conditions - RULE_STEPS_MAX;
    r->n_conditions -= r->n_left_out;
    for (size_t i = 0; i < r->n_conditions; i++)
        r->conditions[i] = all[r->n_left_out + i].v;
    free(all);
}

struct rules *rules_finish(struct rules *r)
{
    configurators_sort(&r->overrides);
    r->text = r->urls.failed ? STR_NONE : buf_str(&r->urls);
    sort_routers(r);
    if (r->overrides.n != 0 || r->n_conditions != 0)
        return r;
    rules_put(r);
    return NULL;
}

struct rules *rules_from_saved_urls(struct str name, enum rule_node kind, struct str text,
                                    struct str own_ip)
{
    struct rules *r = rules_new(name);
    struct str rest = arena_str(&r->arena, text);

    while (rest.n != 0) {
        struct err e;

        if (rules_add_url(r, kind, str_cut(rest, '\n', &rest), own_ip, &e) == RULE_BAD)
            log_warn("registry", STR_FMT ": a saved rule is skipped: %s", STR_ARG(name), e.text);
    }
    return rules_finish(r);
}

/* ---------------------------------------------------------------- sets */

void ruleset_add(struct ruleset *s, struct rules *rules, struct str application)
{
    if (rules == NULL)
        return;
    ASSERT(s->n < RULESET_MAX);
    s->v[s->n++] = (struct ruleset_entry){application, rules};
}

bool ruleset_routes(const struct ruleset *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].rules->n_conditions != 0 || s->v[i].rules->tags != NULL)
            return true;
    }
    return false;
}
