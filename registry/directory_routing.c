#include "registry/directory_routing.h"

#include <string.h>

#include "base/hash.h"
#include "registry/rules.h"

static size_t add_others(const struct provider *p, struct url_param *params)
{
    struct str rest = p->params != NULL ? p->params->others : STR_NONE;
    size_t n = 0;

    while (rest.n != 0) {
        struct str value = STR_NONE;
        struct str key = str_cut(str_cut(rest, '&', &rest), '=', &value);

        params[n++] = (struct url_param){key, value};
    }
    return n;
}

/* The party of a provider whose URL is not at hand: what is kept of it. */
static struct routing_party party_of_fields(const struct provider *p, struct arena *a)
{
    const struct url_param all[] = {
        {STR("application"), p->application},
        {STR("dubbo.tag"), p->tag},
        {STR("group"), p->group},
        {STR("version"), p->version},
        {STR("interface"), p->interface},
        {STR("methods"), p->methods},
        {STR("release"), p->release},
        {STR("side"), STR("provider")},
    };
    struct url_param *params = arena_alloc(a, sizeof(all) + URL_PARAMS_MAX * sizeof(*params));
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i].value.n != 0)
            params[n++] = all[i];
    }
    n += add_others(p, params + n);
    return (struct routing_party){.protocol = STR("dubbo"),
                                  .host = p->host,
                                  .port = p->port,
                                  .path = p->path,
                                  .params = params,
                                  .n_params = n};
}

static struct routing_party copy_party(const struct routing_party *p, struct arena *a)
{
    struct url_param *params = arena_alloc(a, (p->n_params + 1) * sizeof(*params));

    for (size_t i = 0; i < p->n_params; i++)
        params[i] = (struct url_param){arena_str(a, p->params[i].key),
                                       arena_str(a, p->params[i].value)};
    return (struct routing_party){.protocol = arena_str(a, p->protocol),
                                  .host = arena_str(a, p->host),
                                  .port = p->port,
                                  .path = arena_str(a, p->path),
                                  .params = params,
                                  .n_params = p->n_params};
}

/* Of two nodes of one identity the directory holds one: that one's URL counts. */
static bool is_that_one(const struct provider *kept, const struct provider *p)
{
    return kept->timestamp_ms == p->timestamp_ms && kept->unlisted == p->unlisted &&
           str_eq(kept->application, p->application) && str_eq(kept->tag, p->tag);
}

static void take_listed(struct directory *d, const struct routing_source *src,
                        const struct routing_party **from)
{
    for (size_t i = 0; src->parties != NULL && i < src->n; i++) {
        const struct provider *kept = directory_find(d, &src->listed[i]);

        if (kept == NULL)
            continue;
        if (from[kept - d->providers] == NULL || is_that_one(kept, &src->listed[i]))
            from[kept - d->providers] = &src->parties[i];
    }
}

static const struct routing_party *party_before(const struct directory *old,
                                                const struct provider *p)
{
    const struct provider *was = old != NULL && old->rules != NULL ? directory_find(old, p) : NULL;

    return was != NULL ? &old->rules->parties[was - old->providers] : NULL;
}

static void set_parties(struct directory *d, const struct routing_source *src)
{
    struct arena temporary;
    const struct routing_party **from = NULL;
    struct routing_party *parties = arena_alloc(&d->arena, (d->n + 1) * sizeof(*parties));

    arena_init(&temporary);
    from = arena_alloc(&temporary, (d->n + 1) * sizeof(*from));
    take_listed(d, src, from);
    for (size_t i = 0; i < d->n; i++) {
        if (from[i] == NULL)
            from[i] = party_before(src->old, &d->providers[i]);
        parties[i] = from[i] != NULL ? copy_party(from[i], &d->arena)
                                     : party_of_fields(&d->providers[i], &d->arena);
    }
    arena_free(&temporary);
    d->rules->parties = parties;
}

static void hold_rules(struct directory *d, const struct routing_source *src)
{
    struct ruleset_entry *held = arena_alloc(&d->arena, (src->n_rules + 1) * sizeof(*held));

    for (size_t i = 0; i < src->n_rules; i++) {
        const struct ruleset_entry *e = &src->rules[i];

        if (e->rules->n_conditions != 0 || e->rules->tags != NULL)
            held[d->rules->n++] = (struct ruleset_entry){arena_str(&d->arena, e->application),
                                                         rules_get(e->rules)};
    }
    d->rules->v = held;
}

static uint64_t add_hash(uint64_t h, const void *p, size_t n)
{
    return h * UINT64_C(1099511628211) + hash_bytes(p, n);
}

/* Two directories with the same providers and the same hash route alike. */
static uint64_t hash_of(const struct directory *d)
{
    const struct directory_rules *r = d->rules;
    uint64_t h = 1;

    for (size_t i = 0; i < r->n; i++)
        h = add_hash(h, &r->v[i].rules->hash, sizeof(uint64_t));
    for (size_t i = 0; r->n != 0 && i < d->n; i++) {
        for (size_t j = 0; j < r->parties[i].n_params; j++) {
            const struct url_param *p = &r->parties[i].params[j];

            h = add_hash(h, p->key.p, p->key.n);
            if (p->value.n != 0)
                h = add_hash(h, p->value.p, p->value.n);
        }
    }
    return h;
}

static struct routing *build(struct directory *d, const struct routing_party *consumer)
{
    const struct directory_rules *r = d->rules;
    struct routing_condition *conditions = NULL;
    struct routing_tags *tags = NULL;
    struct routing_rules rules = {.line = DUBBO_33};
    struct arena *a = &d->arena;
    size_t n_conditions = 0;

    for (size_t i = 0; i < r->n; i++)
        n_conditions += r->v[i].rules->n_conditions;
    conditions = arena_alloc(a, (n_conditions + 1) * sizeof(*conditions));
    tags = arena_alloc(a, (r->n + 1) * sizeof(*tags));
    rules.conditions = conditions;
    rules.tags = tags;
    for (size_t i = 0; i < r->n; i++) {
        const struct ruleset_entry *e = &r->v[i];

        if (e->rules->tags != NULL)
            tags[rules.n_tags++] = (struct routing_tags){e->application, &e->rules->name,
                                                         e->rules->tags};
        for (size_t j = 0; j < e->rules->n_conditions; j++)
            conditions[rules.n_conditions++] = (struct routing_condition){
                &e->rules->conditions[j], &e->rules->name, e->application};
    }
    return routing_build(&rules, consumer, r->parties, d->n, a);
}

bool directory_has_tags(const struct directory *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->providers[i].tag.n != 0)
            return true;
    }
    return false;
}

static bool is_routed(const struct directory *d, const struct routing_source *src)
{
    for (size_t i = 0; i < src->n_rules; i++) {
        if (src->rules[i].rules->n_conditions != 0 || src->rules[i].rules->tags != NULL)
            return true;
    }
    return directory_has_tags(d);
}

void directory_route(struct directory *d, const struct routing_source *src)
{
    if (!is_routed(d, src))
        return;
    d->rules = arena_alloc(&d->arena, sizeof(*d->rules));
    d->rules->consumer_ip = arena_str(&d->arena, src->consumer->host);
    hold_rules(d, src);
    set_parties(d, src);
    d->rules->hash = hash_of(d);
    struct routing *r = build(d, src->consumer);

    d->rules->routing = routing_matters(r) ? r : NULL;
}
