#include "registry/routing.h"

#include <string.h>

#include "base/fatal.h"

/* A set of providers; NULL = everybody. */
typedef uint64_t *set_t;

struct target {
    set_t then;
    uint32_t weight;
};

struct step {
    const struct condition_part *when; /* NULL: always */
    bool force;
    bool forbid;
    set_t others; /* providers that the rule is not about; NULL: none */
    set_t then;
    struct target *targets; /* instead of `then` */
    size_t n_targets;
    uint64_t total; /* of their weights */
};

struct tag {
    struct str name;
    bool listed;   /* the rule says who has it; else the providers themselves do */
    set_t members; /* of a listed one */
};

/* The providers of one application with a tag rule, or all others. */
struct tag_group {
    set_t providers;
    const struct tag_rule *rule; /* NULL: none */
    struct tag *tags;
    size_t n_tags;
    set_t in_any; /* members of any listed tag */
};

struct routing {
    size_t n;
    size_t words;
    enum dubbo_line line;
    struct step *steps;
    size_t n_steps;
    struct tag_group *groups;
    size_t n_groups;
    const struct str *own_tags; /* dubbo.tag of each provider */
    set_t untagged;             /* providers without one */
    struct str consumer_tag;
    bool consumer_force;
    bool matters;
};

/* ---------------------------------------------------------------- sets */

static set_t new_set(const struct routing *r, struct arena *a)
{
    set_t s = arena_alloc(a, (r->words + 1) * sizeof(*s));

    memset(s, 0, (r->words + 1) * sizeof(*s));
    return s;
}

static void put(set_t s, size_t i)
{
    s[i / 64] |= UINT64_C(1) << i % 64;
}

static bool has(const uint64_t *s, size_t i)
{
    return (s[i / 64] >> i % 64 & 1) != 0;
}

static bool is_empty(const struct routing *r, const uint64_t *s)
{
    for (size_t w = 0; w < r->words; w++) {
        if (s[w] != 0)
            return false;
    }
    return true;
}

static bool meet(const struct routing *r, const uint64_t *a, const uint64_t *b)
{
    for (size_t w = 0; w < r->words; w++) {
        if ((a[w] & b[w]) != 0)
            return true;
    }
    return false;
}

/* set &= with, unless nothing would be left and the rule is not forced; `others` stay. */
static void narrow(const struct routing *r, uint64_t *set, const uint64_t *with,
                   const uint64_t *others, bool force)
{
    if (!force && !meet(r, set, with))
        return;
    for (size_t w = 0; w < r->words; w++)
        set[w] &= with[w] | (others != NULL ? others[w] : 0);
}

/* Nobody but `others`. */
static void clear(const struct routing *r, uint64_t *set, const uint64_t *others)
{
    for (size_t w = 0; w < r->words; w++)
        set[w] &= others != NULL ? others[w] : 0;
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

static void build_step(const struct builder *b, const struct rule_step *from, bool force,
                       set_t others)
{
    struct step s = {.force = force, .forbid = from->forbid, .others = others};

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
            build_step(b, &c->steps[j], c->force, others);
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

static void build_group(const struct builder *b, struct str application,
                        const struct tag_rule *rule, const uint64_t *taken)
{
    struct tag_group *g = &b->r->groups[b->r->n_groups++];

    *g = (struct tag_group){
        .providers = new_set(b->r, b->a), .rule = rule, .in_any = new_set(b->r, b->a)};
    for (size_t i = 0; i < b->r->n; i++) {
        if (rule != NULL ? str_eq(application_of(&b->providers[i]), application) : !has(taken, i))
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
        build_group(b, rules->tags[i].application, rules->tags[i].rule, taken);
        for (size_t w = 0; w < r->words; w++)
            taken[w] |= r->groups[i].providers[w];
    }
    build_group(b, STR_NONE, NULL, taken);
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

/* ---------------------------------------------------------------- selecting: tags */

static const struct tag *find_tag(const struct tag_group *g, struct str name)
{
    for (size_t i = 0; i < g->n_tags; i++) {
        if (str_eq(g->tags[i].name, name))
            return &g->tags[i];
    }
    return NULL;
}

/* 3.3: "a|b|c" is a, b or c from the longest on, in the rule only. */
static const struct tag *find_listed(const struct routing *r, const struct tag_group *g,
                                     struct str name, bool force)
{
    const struct tag *t = find_tag(g, name);

    while (r->line >= DUBBO_33 && !force && (t == NULL || !t->listed)) {
        size_t bar = name.n;

        while (bar > 0 && name.p[bar - 1] != '|')
            bar--;
        if (bar == 0)
            break;
        name = str_sub(name, 0, bar - 1);
        t = find_tag(g, name);
    }
    return t != NULL && t->listed ? t : NULL;
}

/* Adds the group's providers that have the tag; true when the group's rule says that nobody else will do. */
static bool add_tagged(const struct routing *r, const struct tag_group *g, struct str tag,
                       bool force, uint64_t *out)
{
    const struct tag *t = find_listed(r, g, tag, force);

    if (t != NULL) {
        for (size_t w = 0; w < r->words; w++)
            out[w] |= t->members[w];
        return g->rule->force;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (has(g->providers, i) && str_eq(r->own_tags[i], tag))
            put(out, i);
    }
    return false;
}

/* Those of the group that have no tag of any kind. */
static void add_plain(const struct routing *r, const struct tag_group *g, uint64_t *out)
{
    for (size_t w = 0; w < r->words; w++)
        out[w] |= g->providers[w] & ~g->in_any[w] & r->untagged[w];
}

/* 2.7 also counts those as plain whose own tag no rule knows. */
static void add_unknown(const struct routing *r, const struct tag_group *g, uint64_t *out)
{
    if (g->rule == NULL || r->line != DUBBO_27)
        return;
    for (size_t i = 0; i < r->n; i++) {
        if (has(g->providers, i) && !has(g->in_any, i) && find_tag(g, r->own_tags[i]) == NULL)
            put(out, i);
    }
}

static void select_by_tag(const struct routing *r, struct str tag, bool force, uint64_t *set)
{
    UNFILLED uint64_t found[ROUTING_WORDS_MAX];
    bool closed[64] = {false};

    memset(found, 0, r->words * sizeof(*found));
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct tag_group *g = &r->groups[i];

        if (tag.n == 0) {
            add_plain(r, g, found);
            add_unknown(r, g, found);
        } else if (add_tagged(r, g, tag, force, found) && i < ARRAY_LEN(closed)) {
            closed[i] = true;
        }
    }
    if (tag.n != 0 && !force && !meet(r, found, set)) {
        memset(found, 0, r->words * sizeof(*found));
        for (size_t i = 0; i < r->n_groups; i++) {
            if (i >= ARRAY_LEN(closed) || !closed[i])
                add_plain(r, &r->groups[i], found);
        }
    }
    narrow(r, set, found, NULL, true);
}

/* ---------------------------------------------------------------- selecting: conditions */

static bool call_value(void *ctx, struct str key, struct str *out)
{
    const struct routing_call *c = *(const struct routing_call **)ctx;
    struct str inside;
    uint64_t index = 0;

    if (str_is(key, "method") || str_is(key, "methods")) {
        *out = c->method;
        return true;
    }
    if (condition_bracket(key, STR("arguments"), &inside))
        return str_to_u64(inside, 1000, &index) && c->argument(c->ctx, (unsigned)index, out);
    if (condition_bracket(key, STR("attachments"), &inside))
        return c->attachment(c->ctx, inside, out);
    return false;
}

static bool applies(const struct routing *r, const struct step *s, const struct routing_call *c)
{
    const struct condition_sample sample = {
        .value = call_value, .ctx = &c, .line = r->line, .is_when = true};

    return s->when == NULL || condition_part_matches(s->when, &sample);
}

/* One subset that is not empty, by weight. */
static void select_target(const struct routing *r, const struct step *s, uint64_t random,
                          uint64_t *set)
{
    uint64_t total = 0;
    uint64_t draw = 0;

    for (size_t i = 0; i < s->n_targets; i++) {
        if (s->targets[i].then == NULL || meet(r, set, s->targets[i].then))
            total += s->targets[i].weight;
    }
    if (total == 0) {
        if (s->force)
            clear(r, set, s->others);
        return;
    }
    draw = random % total;
    for (size_t i = 0; i < s->n_targets; i++) {
        const struct target *t = &s->targets[i];

        if (t->then != NULL && !meet(r, set, t->then))
            continue;
        if (draw < t->weight) {
            if (t->then != NULL)
                narrow(r, set, t->then, s->others, true);
            return;
        }
        draw -= t->weight;
    }
}

bool routing_matters(const struct routing *r)
{
    return r->matters;
}

void routing_select(const struct routing *r, const struct routing_call *c, uint64_t *set)
{
    struct str tag = c->tag.n != 0 ? c->tag : r->consumer_tag;
    uint64_t random = c->random;

    ASSERT(r->words <= ROUTING_WORDS_MAX);

    select_by_tag(r, tag, c->force_tag || r->consumer_force, set);
    for (size_t i = 0; i < r->n_steps && !is_empty(r, set); i++) {
        const struct step *s = &r->steps[i];

        if (!applies(r, s, c))
            continue;
        if (s->forbid) {
            clear(r, set, s->others);
        } else if (s->targets != NULL) {
            select_target(r, s, random, set);
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        } else {
            narrow(r, set, s->then, s->others, s->force);
        }
    }
}
