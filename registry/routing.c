#include "registry/routing.h"

#include <string.h>

#include "base/fatal.h"
#include "registry/routing_parts.h"

/* ---------------------------------------------------------------- sets */

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

static void take_step(const struct routing *r, const struct step *s, uint64_t *random,
                      uint64_t *set)
{
    if (s->forbid) {
        clear(r, set, s->others);
    } else if (s->targets != NULL) {
        select_target(r, s, *random, set);
        *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407U;
    } else {
        narrow(r, set, s->then, s->others, s->force);
    }
}

static void select_tagged(const struct routing *r, const struct routing_call *c, uint64_t *set)
{
    ASSERT(r->words <= ROUTING_WORDS_MAX);

    select_by_tag(r, c->tag.n != 0 ? c->tag : r->consumer_tag, c->force_tag || r->consumer_force,
                  set);
}

void routing_select(const struct routing *r, const struct routing_call *c, uint64_t *set)
{
    uint64_t random = c->random;

    select_tagged(r, c, set);
    for (size_t i = 0; i < r->n_steps && !is_empty(r, set); i++) {
        if (applies(r, &r->steps[i], c))
            take_step(r, &r->steps[i], &random, set);
    }
}

/* ---------------------------------------------------------------- why nobody is left */

static size_t count(const struct routing *r, const uint64_t *set)
{
    size_t n = 0;

    for (size_t w = 0; w < r->words; w++)
        n += (size_t)__builtin_popcountll(set[w]);
    return n;
}

/* The last group is that of the providers without a rule. */
static const struct str *tag_rule_name(const struct routing *r)
{
    return r->n_groups > 1 ? r->groups[0].name : NULL;
}

void routing_explain(const struct routing *r, const struct routing_call *c, uint64_t *set,
                     struct routing_blame *out)
{
    uint64_t random = c->random;

    *out = (struct routing_blame){.name = tag_rule_name(r), .n_before = count(r, set)};
    select_tagged(r, c, set);
    for (size_t i = 0; i < r->n_steps && !is_empty(r, set); i++) {
        if (!applies(r, &r->steps[i], c))
            continue;
        out->name = r->steps[i].name;
        out->n_before = count(r, set);
        take_step(r, &r->steps[i], &random, set);
    }
    out->nobody = is_empty(r, set);
}
