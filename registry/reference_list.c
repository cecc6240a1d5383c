#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "registry/configurator.h"
#include "registry/core.h"
#include "registry/directory_routing.h"
#include "registry/reference_definitions.h"
#include "registry/reference_parts.h"
#include "registry/rules.h"

/* ---------------------------------------------------------------- lists */

bool provider_address(const struct source *s, struct str host, uint16_t port, union address *out,
                      struct err *e)
{
    const struct registry_conf *c = &s->conf;

    if (!resolve(s->home->resolver, host, port, out, e))
        return false;
    if (s->kind->fixed || network_allows(c->provider_networks, c->n_provider_networks, out))
        return true;
    err_set(e, "outside provider_networks");
    return false;
}

/* Resolves the host; what may not be called says why. */
static void settle(const struct reference *ref, struct provider *p)
{
    struct err e = {0};
    bool ok = false;

    if (p->unusable != USABLE && p->unusable != UNUSABLE_ADDRESS)
        return;
    ok = provider_address(ref->source, p->host, p->port, &p->addr, &e);
    p->unusable = ok ? USABLE : UNUSABLE_ADDRESS;
    if (ok)
        return;
    p->addr = (union address){.sa.sa_family = AF_UNSPEC};
    log_warn("registry", "%s: provider " STR_FMT " is not used: %s", ref->key_text,
             STR_ARG(p->host), e.text);
}

static bool read_url(const struct reference *ref, const struct list_report *l, struct str url,
                     struct arena *a, struct provider *out, struct routing_party *party,
                     struct err *e)
{
    const struct conf_consumer consumer = {.ip = l->consumer_ip,
                                           .application = str_from(ref->home->opts.application),
                                           .key = ref->key};
    static const struct ruleset none = {.n = 0};

    if (ref->source->kind->fixed)
        return provider_from_address(url, &ref->key, a, out, e);
    if (party == NULL && (l->rules == NULL || l->rules->n == 0))
        return provider_from_url(url, a, out, e);
    return provider_from_url_under(url, l->rules != NULL ? l->rules : &none, &consumer, a, out,
                                   party, e);
}

static void mark_found(const struct reference *ref, const struct list_report *l, size_t i,
                       struct provider *p)
{
    if (ref->source->kind->fixed)
        p->found = FOUND_CONFIGURATION;
    else if (!l->saved && i < l->n_interface)
        p->found = FOUND_INTERFACE;
    else if (!l->saved)
        p->found = FOUND_INSTANCE;
}

/* URL texts to the providers of this reference; garbage is skipped and told. */
static size_t parse_urls(const struct reference *ref, const struct list_report *l, struct arena *a,
                         struct provider *out, struct routing_party *parties)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct err e = {0};
        bool ok = read_url(ref, l, l->urls[i], a, &out[n], parties != NULL ? &parties[n] : NULL,
                           &e);

        if (!ok)
            log_warn("registry", "%s: a provider is skipped: %s", ref->key_text, e.text);
        if (!ok || !provider_matches(&out[n], &ref->key))
            continue;
        settle(ref, &out[n]);
        mark_found(ref, l, i, &out[n++]);
    }
    return n;
}

static void note_change(struct reference *ref, const struct directory *old,
                        const struct directory *d)
{
    size_t n = old != NULL ? old->n : 0;

    free(ref->lost); /* the workers look again */
    ref->lost = NULL;
    ref->last_change_wall_ms = wall_ms();
    reference_event(ref, "providers %zu -> %zu, usable %zu", n, d->n, d->n_usable);
    log_info("registry", "%s: providers %zu -> %zu, usable %zu", ref->key_text, n, d->n,
             d->n_usable);
}

/* True when the workers see a difference. */
static bool use_directory(struct reference *ref, struct directory *d)
{
    struct directory *old = ref->directory;
    bool before = reference_is_waiting(ref);
    bool same = old != NULL && directory_equal(old, d);
    struct outgoing o = {REGISTRY_MAIL_DIRECTORY, .key = ref->key_text, .directory = d};

    if (same && directory_told_alike(old, d)) { /* the workers hold the old one: one is enough */
        o.directory = old;
        reference_describe(ref);
        o.definitions_follow = reference_definitions_follow(ref);
        reference_answer_waiting(ref, &o);
        directory_put(d);
        return false;
    }
    ref->directory = d;
    reference_recount(ref, before);
    if (!same)
        note_change(ref, old, d);
    reference_describe(ref);
    o.definitions_follow = reference_definitions_follow(ref);
    registry_send_all(ref->home, &o);
    reference_tell_definitions(ref, WORKERS_MAX);
    ref->waiting_workers = 0;
    reference_answer_waiting(ref, &o);
    directory_put(old);
    return !same;
}

/* The consumer as rules see it. */
static void route(const struct reference *ref, struct directory *d,
                  const struct routing_source *from, struct str ip)
{
    const struct registry_opts *o = &ref->home->opts;
    struct routing_source src = *from;
    struct arena *a = &d->arena; /* what a rule asks for is kept */
    struct url_param *params = NULL;
    size_t n = 0;

    if (src.n_rules == 0 && !directory_has_tags(d))
        return;
    params = arena_alloc(a, (o->n_consumer_parameters + 5) * sizeof(*params));
    params[n++] = (struct url_param){STR("application"), arena_str(a, str_from(o->application))};
    params[n++] = (struct url_param){STR("interface"), arena_str(a, ref->key.interface)};
    params[n++] = (struct url_param){STR("side"), STR("consumer")};
    if (ref->key.version.n != 0)
        params[n++] = (struct url_param){STR("version"), arena_str(a, ref->key.version)};
    if (ref->key.group.n != 0)
        params[n++] = (struct url_param){STR("group"), arena_str(a, ref->key.group)};
    for (size_t i = 0; i < o->n_consumer_parameters; i++)
        params[n++] = (struct url_param){arena_str(a, o->consumer_parameters[i].key),
                                         arena_str(a, o->consumer_parameters[i].value)};
    src.consumer = &(const struct routing_party){.protocol = STR("consumer"),
                                                 .host = arena_str(a, ip),
                                                 .path = arena_str(a, ref->key.interface),
                                                 .params = params,
                                                 .n_params = n};
    directory_route(d, &src);
}

static void enter_by_list(struct reference *ref)
{
    reference_enter(ref, ref->directory->n != 0 ? REFERENCE_READY : REFERENCE_EMPTY);
}

/* Configurators have had their effect on what was saved; conditions and tags have theirs now. */
static void route_saved(struct reference *ref, struct directory *d, struct routing_source *src)
{
    UNFILLED struct ruleset rules;
    struct str ip = STR_NONE;

    rules.n = 0;
    if (ref->source->kind->rules != NULL)
        ref->source->kind->rules(ref->source->impl, ref, src->listed, src->n, &rules, &ip);
    src->rules = rules.v;
    src->n_rules = rules.n;
    route(ref, d, src, ip);
}

bool reference_use_snapshot(struct reference *ref)
{
    const struct snapshot_entry *e = snapshot_find(ref->home, ref->source, ref->key_text);
    struct arena a;
    struct provider *v = NULL;
    struct routing_party *parties = NULL;
    size_t n = 0;

    if (e == NULL || ref->directory != NULL)
        return false;
    ref->was_empty = e->n == 0; /* not pinned yet: it is counted then */
    arena_init(&a);
    v = arena_alloc(&a, (e->n + 1) * sizeof(*v));
    parties = arena_alloc(&a, (e->n + 1) * sizeof(*parties));
    n = parse_urls(ref, &(struct list_report){.urls = e->urls, .n = e->n, .saved = true}, &a, v,
                   parties);
    if (n != 0) {
        ref->czxid = e->czxid;
        reference_enter(ref, REFERENCE_SNAPSHOT);
        struct directory *d = directory_build(&ref->key, v, n, DIRECTORY_SNAPSHOT);

        route_saved(ref, d,
                    &(struct routing_source){.listed = v, .parties = parties, .n = n, .old = NULL});
        use_directory(ref, d);
        ref->last_change_wall_ms = e->saved_wall_ms;
    }
    arena_free(&a);
    return n != 0;
}

/* A name from outside that the registry does not know costs one read and nothing that stays. */
static void forget_unknown(struct reference *ref)
{
    cache_remember_unknown(ref->home, ref->key_text);
    reference_refuse(ref, REFUSAL_UNKNOWN);
    reference_free(ref, false);
}

/* `n` providers stay that the registry does not list any more. */
static void note_unlisted(struct reference *ref, enum judgement j, size_t n)
{
    if (j == JUDGED_REPLACED && n != 0)
        reference_event(ref, "the registry's list is another one; %zu are kept while connected", n);
    else if (j == JUDGED_MASS && n != 0)
        reference_event(ref, "most providers vanished at once; %zu are kept while connected", n);
}

/* Behind the `n` listed providers in `v`. */
static size_t add_unlisted(struct reference *ref, const struct list_report *l, struct provider *v,
                           size_t n)
{
    const struct judge_input in = {
        .old = ref->directory,
        .now = v,
        .n_now = n,
        .same_list = l->exists && !l->rolled_back &&
                     (ref->czxid == 0 || l->czxid == 0 || ref->czxid == l->czxid),
        .now_ms = clock_ms(),
    };
    size_t kept = 0;

    if (ref->directory == NULL || ref->source->kind->fixed)
        return n;
    enum judgement j = judge_list(&in, &ref->window, v + n, &kept);

    note_unlisted(ref, j, kept);
    return n + kept;
}

static void take_list(struct reference *ref, const struct list_report *l, struct provider *v,
                      const struct routing_party *parties, size_t listed)
{
    size_t n = add_unlisted(ref, l, v, listed);
    bool fixed = ref->source->kind->fixed;
    struct directory *d = directory_build(&ref->key, v, n,
                                          fixed ? DIRECTORY_STATIC : DIRECTORY_REGISTRY);
    const struct routing_source src = {.rules = l->rules != NULL ? l->rules->v : NULL,
                                       .n_rules = l->rules != NULL ? l->rules->n : 0,
                                       .listed = v,
                                       .parties = parties,
                                       .n = listed,
                                       .old = ref->directory};

    route(ref, d, &src, l->consumer_ip);
    bool changed = use_directory(ref, d);
    bool same_list = ref->had_list && (listed == 0 || ref->czxid == l->czxid);

    if (listed != 0)
        ref->czxid = l->czxid;
    ref->had_list = true;
    enter_by_list(ref);
    if (!fixed && (changed || !same_list))
        registry_mark_dirty(ref->home);
}

/* The part of it that the reference looks at.  Without a provider list of its own an interface is judged by what names its
 * applications. */
static struct list_report own_part(const struct reference *ref, const struct list_report *l)
{
    struct list_report own = *l;
    enum discovery d = reference_discovery(ref);

    if (ref->source->kind->fixed)
        return own;
    if (d == DISCOVERY_INTERFACE) {
        own.n = l->n_interface;
        return own;
    }
    if (d == DISCOVERY_APPLICATION) {
        own.urls += l->n_interface;
        own.n -= l->n_interface;
        own.n_interface = 0;
        own.rolled_back = false;
    }
    if (d == DISCOVERY_APPLICATION || !l->exists) {
        own.exists = l->apps_exist;
        own.czxid = l->apps_czxid;
    }
    return own;
}

void reference_on_list(struct reference *ref, const struct list_report *report)
{
    const struct list_report own = own_part(ref, report);
    const struct list_report *l = &own;
    size_t old_n = ref->directory != NULL ? ref->directory->n : 0;
    struct arena a;
    struct provider *v = NULL;
    struct routing_party *parties = NULL;
    size_t listed = 0;

    arena_init(&a);
    v = arena_alloc(&a, (l->n + old_n + 1) * sizeof(*v));
    if (l->rules != NULL && ruleset_routes(l->rules))
        parties = arena_alloc(&a, (l->n + 1) * sizeof(*parties));
    listed = parse_urls(ref, l, &a, v, parties);
    if (!ref->watched && listed == 0) {
        forget_unknown(ref);
    } else if (ref->watched || cache_admit(ref->home, ref)) {
        take_list(ref, l, v, parties, listed);
        /* the directory of an interface is its providers' to make, not ours */
        if (listed != 0 && report->exists && ref->source->conf.register_consumer)
            ref->source->kind->publish(ref->source->impl, ref);
    }
    arena_free(&a);
}

void reference_on_error(struct reference *ref, const char *why)
{
    reference_event(ref, "read failed: %s", why);
    if (ref->state == REFERENCE_READING)
        reference_enter(ref, REFERENCE_FAILED);
}

/* ---------------------------------------------------------------- time */

/* The rules are still those of the present directory. */
static void rebuild(struct reference *ref, const struct provider *v, size_t n)
{
    struct directory *old = ref->directory;
    struct directory *d = directory_build(&ref->key, v, n, old->source);
    struct routing_source src = {.old = old};
    struct str ip = STR_NONE;

    if (old->rules != NULL) {
        src.rules = old->rules->v;
        src.n_rules = old->rules->n;
        ip = old->rules->consumer_ip;
    }

    route(ref, d, &src, ip);
    if (use_directory(ref, d) && !ref->source->kind->fixed)
        registry_mark_dirty(ref->home);
}

/* Providers that no worker reaches leave: the list again without them. */
static void drop_lost(struct reference *ref, uint64_t all_workers)
{
    const struct directory *d = ref->directory;
    struct provider *v = xcalloc(d->n + 1, sizeof(*v));
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++) {
        if (ref->lost[i] != all_workers)
            v[n++] = d->providers[i];
    }
    if (n != d->n) {
        reference_event(ref, "%zu providers left: neither listed nor connected", d->n - n);
        rebuild(ref, v, n);
        enter_by_list(ref);
    }
    free(v);
}

void reference_unlisted_lost(struct reference *ref, unsigned worker, const struct directory *d,
                             const size_t *lost, size_t n)
{
    const struct directory *now = ref->directory;

    if (now == NULL)
        return;
    if (ref->lost == NULL)
        ref->lost = xcalloc(now->n + 1, sizeof(*ref->lost));
    for (size_t i = 0; i < now->n; i++)
        ref->lost[i] &= ~(UINT64_C(1) << worker); /* a report stands for the whole of it */
    for (size_t i = 0; i < n; i++) {
        const struct provider *p = lost[i] < d->n ? directory_find(now, &d->providers[lost[i]])
                                                  : NULL;

        if (p != NULL && p->unlisted)
            ref->lost[p - now->providers] |= UINT64_C(1) << worker;
    }
    drop_lost(ref, UINT64_MAX >> (64 - ref->home->n_workers));
}

void reference_resolve_again(struct reference *ref)
{
    const struct directory *d = ref->directory;
    struct provider *v = NULL;
    bool any = false;

    if (d == NULL)
        return;
    v = xcalloc(d->n + 1, sizeof(*v));
    for (size_t i = 0; i < d->n; i++) {
        union address numeric;

        v[i] = d->providers[i];
        if (address_from_text(v[i].host, v[i].port, &numeric))
            continue;
        settle(ref, &v[i]);
        any = true;
    }
    if (any)
        rebuild(ref, v, d->n);
    free(v);
}
