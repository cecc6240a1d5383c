#include <string.h>

#include "registry/routing_parts.h"

static set_t new_set(const struct routing *r, struct arena *a)
{
    set_t s = arena_alloc(a, (r->words + 1) * sizeof(*s));

    memset(s, 0, (r->words + 1) * sizeof(*s));
    return s;
}

/* ---------------------------------------------------------------- what parties are asked for */

static bool param_of(const struct routing_party *p, struct str key, struct str *out)
{
    for (size_t i = p->n_params; i > 0; i--) {
        if (str_eq(p->params[i - 1].key, key)) {
            *out = p->params[i - 1].value;
            return true;
        }
    }
    return false;
}

struct party_ctx {
    const struct routing_party *party;
    struct arena *a;
    enum dubbo_line line;
};

static bool party_value(void *ctx, struct str key, struct str *out)
{
    const struct party_ctx *c = ctx;
    const struct routing_party *p = c->party;

    if (str_is(key, "host"))
        *out = p->host;
    else if (str_is(key, "protocol"))
        *out = p->protocol;
    else if (str_is(key, "path"))
        *out = p->path;
    else if (str_is(key, "port") && p->port != 0)
        *out = arena_printf(c->a, "%u", (unsigned)p->port);
    else if (str_is(key, "address") && c->line >= DUBBO_27)
        *out = arena_printf(c->a, STR_FMT ":%u", STR_ARG(p->host), (unsigned)p->port);
    else
        return param_of(p, key, out) ||
               param_of(p, arena_printf(c->a, "default." STR_FMT, STR_ARG(key)), out);
    return true;
}

/* Keys whose value only the call knows. */
static bool is_of_call(struct str key, enum dubbo_line line)
{
    struct str inside;

    return str_is(key, "method") || str_is(key, "methods") ||
           (line >= DUBBO_27 && condition_bracket(key, STR("arguments"), &inside)) ||
           (line >= DUBBO_32 && condition_bracket(key, STR("attachments"), &inside));
}

/* ---------------------------------------------------------------- building: conditions */

struct builder {
    struct routing *r;
    struct arena *a;
    const struct routing_party *consumer;
    const struct routing_party *providers;
};

static struct str application_of(const struct routing_party *p)
{
    struct str app = STR_NONE;

    if (!param_of(p, STR("application"), &app))
        (void)param_of(p, STR("remote.application"), &app);
    return app;
}

/* NULL when all are of that application. */
static set_t set_of_others(const struct builder *b, struct str application)
{
    set_t s = new_set(b->r, b->a);

    for (size_t i = 0; application.n != 0 && i < b->r->n; i++) {
        if (!str_eq(application_of(&b->providers[i]), application))
            put(s, i);
    }
    return is_empty(b->r, s) ? NULL : s;
}

static set_t set_of_then(const struct builder *b, const struct condition_part *then,
                         const uint64_t *others)
{
    set_t s = new_set(b->r, b->a);
    struct party_ctx consumer = {b->consumer, b->a, b->r->line};

    for (size_t i = 0; i < b->r->n; i++) {
        struct party_ctx provider = {&b->providers[i], b->a, b->r->line};
        const struct condition_sample sample = {
            .value = party_value,
            .ctx = &provider,
            .reference = party_value,
            .reference_ctx = &consumer,
            .line = b->r->line,
        };

        if ((others == NULL || !has(others, i)) && condition_part_matches(then, &sample))
            put(s, i);
    }
    return s;
}

/* Keeps the keys that a call must be asked for; false: the others do not match, so the step never applies. */
static bool settle_when(const struct builder *b, const struct condition_part *when,
                        const struct condition_part **out)
{
    struct condition_part fixed = {.keys = arena_alloc(b->a, (when->n + 1) * sizeof(*fixed.keys))};
    struct condition_part *open = arena_alloc(b->a, sizeof(*open));
    struct party_ctx consumer = {b->consumer, b->a, b->r->line};
    const struct condition_sample sample = {
        .value = party_value, .ctx = &consumer, .line = b->r->line, .is_when = true};

    *open = (struct condition_part){.keys = arena_alloc(b->a, (when->n + 1) * sizeof(*open->keys))};
    for (size_t i = 0; i < when->n; i++) {
        if (is_of_call(when->keys[i].name, b->r->line))
            open->keys[open->n++] = when->keys[i];
        else
            fixed.keys[fixed.n++] = when->keys[i];
    }
    *out = open->n != 0 ? open : NULL;
    return fixed.n == 0 || condition_part_matches(&fixed, &sample);
}

static void build_targets(const struct builder *b, const struct rule_step *from, struct step *to)
{
    to->targets = arena_alloc(b->a, (from->n_targets + 1) * sizeof(*to->targets));
    for (size_t i = 0; i < from->n_targets; i++) {
        const struct rule_target *t = &from->targets[i];

        to->targets[to->n_targets++] = (struct target){
            .then = t->then.n != 0 ? set_of_then(b, &t->then, to->others) : NULL,
            .weight = t->weight};
    }
}

static void build_step(const struct builder *b, const struct rule_step *from,
                       const struct routing_condition *of, set_t others)
{
    struct step s = {
        .name = of->name, .force = of->rule->force, .forbid = from->forbid, .others = others};

    if (!settle_when(b, &from->when, &s.when))
        return;
    if (from->targets != NULL)
        build_targets(b, from, &s);
    else if (!from->forbid)
        s.then = set_of_then(b, &from->then, others);
    b->r->steps[b->r->n_steps++] = s;
}

static void build_steps(const struct builder *b, const struct routing_rules *rules)
{
    size_t n = 0;

    for (size_t i = 0; i < rules->n_conditions; i++)
        n += rules->conditions[i].rule->n;
    b->r->steps = arena_alloc(b->a, (n + 1) * sizeof(*b->r->steps));
    for (size_t i = 0; i < rules->n_conditions; i++) {
        const struct condition_rule *c = rules->conditions[i].rule;
        set_t others = set_of_others(b, rules->conditions[i].application);

        for (size_t j = 0; j < c->n; j++)
            build_step(b, &c->steps[j], &rules->conditions[i], others);
    }
}

/* ---------------------------------------------------------------- building: tags */

static bool matches_all(const struct rule_tag *t, const struct routing_party *p)
{
    for (size_t i = 0; i < t->n_matches; i++) {
        struct str value = STR_NONE;

        (void)param_of(p, t->matches[i].key, &value);
        if (!tag_match_value(&t->matches[i], value))
            return false;
    }
    return t->n_matches != 0;
}

static bool has_address(const struct rule_tag *t, const struct routing_party *p)
{
    for (size_t i = 0; i < t->n_addresses; i++) {
        if (rule_address_matches(t->addresses[i], p->host, p->port))
            return true;
    }
    return false;
}

static void build_tag(const struct builder *b, struct tag_group *g, const struct rule_tag *from)
{
    struct tag *t = &g->tags[g->n_tags++];
    bool any = false;

    *t = (struct tag){.name = from->name, .members = new_set(b->r, b->a)};
    for (size_t i = 0; i < b->r->n; i++) {
        if (!has(g->providers, i) ||
            (!has_address(from, &b->providers[i]) && !matches_all(from, &b->providers[i])))
            continue;
        put(t->members, i);
        put(g->in_any, i);
        any = true;
    }
    /* addresses count though no provider has one; a match that nobody satisfies is as if it were not there */
    t->listed = from->n_addresses != 0 || any;
}

static void build_group(const struct builder *b, const struct routing_tags *of,
                        const uint64_t *taken)
{
    struct tag_group *g = &b->r->groups[b->r->n_groups++];
    const struct tag_rule *rule = of->rule;

    *g = (struct tag_group){.providers = new_set(b->r, b->a),
                            .rule = rule,
                            .name = of->name,
                            .in_any = new_set(b->r, b->a)};
    for (size_t i = 0; i < b->r->n; i++) {
        if (rule != NULL ? str_eq(application_of(&b->providers[i]), of->application)
                         : !has(taken, i))
            put(g->providers, i);
    }
    if (rule == NULL)
        return;
    g->tags = arena_alloc(b->a, (rule->n + 1) * sizeof(*g->tags));
    for (size_t i = 0; i < rule->n; i++)
        build_tag(b, g, &rule->tags[i]);
}

static void build_groups(const struct builder *b, const struct routing_rules *rules)
{
    struct routing *r = b->r;
    struct str *own = arena_alloc(b->a, (r->n + 1) * sizeof(*own));
    set_t taken = new_set(r, b->a);

    r->untagged = new_set(r, b->a);
    for (size_t i = 0; i < r->n; i++) {
        own[i] = STR_NONE;
        (void)param_of(&b->providers[i], STR("dubbo.tag"), &own[i]);
        if (own[i].n == 0)
            put(r->untagged, i);
        else
            r->matters = true;
    }
    r->own_tags = own;
    r->groups = arena_alloc(b->a, (rules->n_tags + 1) * sizeof(*r->groups));
    for (size_t i = 0; i < rules->n_tags; i++) {
        build_group(b, &rules->tags[i], taken);
        for (size_t w = 0; w < r->words; w++)
            taken[w] |= r->groups[i].providers[w];
    }
    build_group(b, &(struct routing_tags){.rule = NULL}, taken);
}

struct routing *routing_build(const struct routing_rules *rules,
                              const struct routing_party *consumer,
                              const struct routing_party *providers, size_t n, struct arena *a)
{
    struct routing *r = arena_alloc(a, sizeof(*r));
    const struct builder b = {r, a, consumer, providers};
    struct str force = STR_NONE;

    *r = (struct routing){.n = n, .words = routing_words(n), .line = rules->line};
    if (rules->line >= DUBBO_27)
        (void)param_of(consumer, STR("dubbo.tag"), &r->consumer_tag);
    (void)param_of(consumer, STR("dubbo.force.tag"), &force);
    r->consumer_force = str_is(force, "true");
    build_steps(&b, rules);
    build_groups(&b, rules);
    r->matters = r->matters || r->n_steps != 0 || rules->n_tags != 0 || r->consumer_tag.n != 0;
    return r;
}
