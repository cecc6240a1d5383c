#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"

#define S(state) (1U << (state))

/* One row per state: its name and the only states that may follow it. */
static const struct {
    const char *name;
    unsigned next;
} states[REFERENCE_STATES] = {
    [REFERENCE_WANTED] = {"wanted", S(REFERENCE_READING) | S(REFERENCE_READY) | S(REFERENCE_EMPTY) |
                                        S(REFERENCE_SNAPSHOT) | S(REFERENCE_LEAVING)},
    [REFERENCE_READING] = {"reading", S(REFERENCE_READY) | S(REFERENCE_EMPTY) |
                                          S(REFERENCE_FAILED) | S(REFERENCE_SNAPSHOT) |
                                          S(REFERENCE_LEAVING)},
    [REFERENCE_READY] = {"ready", S(REFERENCE_EMPTY) | S(REFERENCE_FAILED) | S(REFERENCE_LEAVING)},
    [REFERENCE_EMPTY] = {"empty", S(REFERENCE_READY) | S(REFERENCE_FAILED) | S(REFERENCE_LEAVING)},
    [REFERENCE_SNAPSHOT] = {"snapshot", S(REFERENCE_READY) | S(REFERENCE_EMPTY) |
                                            S(REFERENCE_FAILED) | S(REFERENCE_LEAVING)},
    [REFERENCE_FAILED] = {"failed", S(REFERENCE_READING) | S(REFERENCE_READY) | S(REFERENCE_EMPTY) |
                                        S(REFERENCE_SNAPSHOT) | S(REFERENCE_LEAVING)},
    [REFERENCE_LEAVING] = {"leaving", 0},
};

const char *reference_state_name(enum reference_state s)
{
    return s < REFERENCE_STATES ? states[s].name : "?";
}

static void count(struct reference *ref, int by)
{
    struct counter *c = &ref->home->numbers.references[ref->state];

    counter_set(c, counter_get(c) + (uint64_t)(int64_t)by);
}

void reference_enter(struct reference *ref, enum reference_state to)
{
    if (ref->state == to)
        return;
    ASSERT(states[ref->state].next & S(to));

    count(ref, -1);
    ref->state = to;
    count(ref, 1);
    reference_event(ref, "%s", states[to].name);
}

void reference_event(struct reference *ref, const char *fmt, ...)
{
    struct reference_event *e = &ref->events[ref->n_events++ % EVENTS_KEPT];
    va_list ap;

    e->wall_ms = wall_ms();
    va_start(ap, fmt);
    if (vsnprintf(e->text, sizeof(e->text), fmt, ap) < 0)
        e->text[0] = '\0';
    va_end(ap);
}

struct reference *reference_new(struct registry *r, const struct refkey *k, struct source *source)
{
    struct reference *ref = xcalloc(1, sizeof(*ref));
    struct buf text;
    struct err e;

    buf_init(&text, REFKEY_TEXT_MAX + 1);
    refkey_print(k, &text);
    ref->key_text = strndup((const char *)text.data, text.len);
    buf_free(&text);
    if (ref->key_text == NULL || !refkey_parse(str_from(ref->key_text), &ref->key, &e))
        fatal("no memory for a reference");
    ref->home = r;
    ref->source = source;
    ref->created_ms = ref->last_used_ms = clock_ms();
    ref->created_wall_ms = ref->last_used_wall_ms = wall_ms();
    list_init(&ref->kind_link);
    HASH_ADD_KEYPTR(hh, r->by_key, ref->key_text, strlen(ref->key_text), ref);
    r->n_references++;
    count(ref, 1);
    return ref;
}

void reference_free(struct reference *ref, bool tell)
{
    struct registry *r = ref->home;

    if (ref->state != REFERENCE_LEAVING)
        reference_enter(ref, REFERENCE_LEAVING);
    if (ref->source != NULL) {
        ref->source->kind->unpublish(ref->source->impl, ref);
        ref->source->kind->unwatch(ref->source->impl, ref);
    }
    for (unsigned i = 0; tell && i < r->n_workers; i++)
        registry_send(r, i, REGISTRY_MAIL_GONE, ref->key_text, NULL, REFUSAL_NONE);
    count(ref, -1);
    HASH_DEL(r->by_key, ref);
    r->n_references--;
    directory_put(ref->directory);
    free(ref->fixed_urls);
    free(ref->consumer_node);
    free(ref->key_text);
    free(ref);
}

void reference_subscribe(struct reference *ref)
{
    ref->subscribes++;
    counter_add(&ref->home->numbers.subscriptions, 1);
    if (ref->state == REFERENCE_WANTED || ref->state == REFERENCE_FAILED)
        reference_enter(ref, REFERENCE_READING);
    ref->source->kind->watch(ref->source->impl, ref);
}

void reference_refuse(struct reference *ref, enum registry_refusal why)
{
    struct registry *r = ref->home;

    for (unsigned i = 0; i < r->n_workers; i++) {
        if (ref->waiting_workers & UINT64_C(1) << i)
            registry_send(r, i, REGISTRY_MAIL_REFUSED, ref->key_text, NULL, why);
    }
    ref->waiting_workers = 0;
}

/* ---------------------------------------------------------------- lists */

static bool address_is_allowed(const struct reference *ref, const union address *a)
{
    const struct registry_conf *c = &ref->source->conf;

    return network_allows(c->provider_networks, c->n_provider_networks, a);
}

/* Resolves the host; what may not be called says why. */
static void settle(struct reference *ref, struct provider *p)
{
    struct err e = {0};

    if (p->unusable != USABLE)
        return;
    if (!resolve(ref->home->resolver, p->host, p->port, &p->addr, &e) ||
        (ref->source != NULL && !address_is_allowed(ref, &p->addr))) {
        p->unusable = UNUSABLE_ADDRESS;
        p->addr.sa.sa_family = AF_UNSPEC;
        log_warn("registry", "%s: provider " STR_FMT " is not used: %s", ref->key_text,
                 STR_ARG(p->host), e.text[0] != '\0' ? e.text : "outside provider_networks");
    }
}

/* URL texts to the providers of this reference; garbage is skipped and told. */
static size_t parse_urls(struct reference *ref, const struct str *urls, size_t n, struct arena *a,
                         struct provider *out)
{
    size_t n_out = 0;

    for (size_t i = 0; i < n; i++) {
        struct err e = {0};
        struct provider *p = &out[n_out];
        bool ok = ref->source != NULL ? provider_from_url(urls[i], a, p, &e)
                                      : provider_from_address(urls[i], &ref->key, a, p, &e);

        if (!ok) {
            log_warn("registry", "%s: a provider node is skipped: %s", ref->key_text, e.text);
            continue;
        }
        if (!provider_matches(p, &ref->key))
            continue;
        settle(ref, p);
        n_out++;
    }
    return n_out;
}

static void use_directory(struct reference *ref, struct directory *d)
{
    if (ref->directory != NULL && directory_equal(ref->directory, d) && ref->waiting_workers == 0) {
        d->generation = ref->directory->generation;
        directory_put(ref->directory);
        ref->directory = d; /* the source may have changed: snapshot to registry */
        return;
    }
    ref->last_change_wall_ms = wall_ms();
    reference_event(ref, "providers %zu -> %zu", ref->directory != NULL ? ref->directory->n : 0,
                    d->n);
    log_info("registry", "%s: providers %zu -> %zu", ref->key_text,
             ref->directory != NULL ? ref->directory->n : 0, d->n);
    directory_put(ref->directory);
    ref->directory = d;
    ref->waiting_workers = 0;
    registry_publish(ref->home, ref, d);
}

void reference_use_fixed(struct reference *ref)
{
    struct arena a;
    struct provider *v = NULL;
    size_t n = 0;
    struct directory *d = NULL;

    arena_init(&a);
    v = arena_alloc(&a, (ref->n_fixed_urls + 1) * sizeof(*v));
    n = parse_urls(ref, ref->fixed_urls, ref->n_fixed_urls, &a, v);
    d = directory_build(&ref->key, v, n, DIRECTORY_STATIC);
    arena_free(&a);
    d->generation = ++ref->home->generation;
    use_directory(ref, d);
    reference_enter(ref, n != 0 ? REFERENCE_READY : REFERENCE_EMPTY);
}

void reference_use_snapshot(struct reference *ref)
{
    struct snapshot_entry *e = NULL;
    struct arena a;
    struct provider *v = NULL;
    size_t n = 0;
    struct directory *d = NULL;

    HASH_FIND_STR(ref->home->snapshot, ref->key_text, e);
    if (e == NULL || ref->had_list || ref->source == NULL)
        return;
    if (ref->source->conf.snapshot_max_age_ms != 0 &&
        wall_ms() - e->saved_wall_ms > ref->source->conf.snapshot_max_age_ms)
        return;
    arena_init(&a);
    v = arena_alloc(&a, (e->n + 1) * sizeof(*v));
    n = parse_urls(ref, e->urls, e->n, &a, v);
    if (n != 0) {
        d = directory_build(&ref->key, v, n, DIRECTORY_SNAPSHOT);
        d->generation = ++ref->home->generation;
        ref->czxid = e->czxid;
        use_directory(ref, d);
        reference_enter(ref, REFERENCE_SNAPSHOT);
    }
    arena_free(&a);
}

/* The consumer node is written only once a read has shown a provider. */
static void publish_self(struct reference *ref)
{
    if (ref->source->conf.register_consumer)
        ref->source->kind->publish(ref->source->impl, ref);
}

/* A name from outside that the registry does not know costs one read and nothing that stays. */
static void forget_unknown(struct reference *ref)
{
    struct registry *r = ref->home;

    registry_remember_unknown(r, ref->key_text);
    reference_refuse(ref, REFUSAL_UNKNOWN);
    r->n_lookups--;
    reference_free(ref, false);
}

static void become_watched(struct reference *ref)
{
    ref->watched = true;
    ref->home->n_lookups--;
    ref->source->kind->watch(ref->source->impl, ref);
}

static size_t add_unlisted(struct reference *ref, const struct list_report *l, struct provider *v,
                           size_t n)
{
    bool same_node = l->exists && !l->root_changed && (ref->czxid == 0 || ref->czxid == l->czxid);
    uint64_t keep_ms = 0;
    size_t kept = 0;

    if (ref->directory == NULL)
        return n;
    kept = judge_list(ref->directory, v, n, same_node, ref->source->conf.empty_grace_ms, v + n,
                      &keep_ms);
    if (kept == 0) {
        ref->grace_until_ms = 0;
        return n;
    }
    if (keep_ms == UINT64_MAX)
        ref->grace_until_ms = 0;
    else if (ref->grace_until_ms == 0)
        ref->grace_until_ms = clock_ms() + keep_ms;
    if (!same_node)
        reference_event(ref, "the registry lost its data; %zu providers are kept", kept);
    else
        reference_event(ref, "%zu providers vanished at once; kept while their connections live",
                        kept);
    return n + kept;
}

void reference_on_list(struct reference *ref, const struct list_report *l)
{
    size_t old_n = ref->directory != NULL ? ref->directory->n : 0;
    struct arena a;
    struct provider *v = NULL;
    size_t listed = 0;
    size_t n = 0;
    struct directory *d = NULL;

    arena_init(&a);
    v = arena_alloc(&a, (l->n + old_n + 1) * sizeof(*v));
    listed = parse_urls(ref, l->urls, l->n, &a, v);
    if (!ref->watched && listed == 0) {
        arena_free(&a);
        forget_unknown(ref);
        return;
    }
    n = add_unlisted(ref, l, v, listed);
    d = directory_build(&ref->key, v, n, DIRECTORY_REGISTRY);
    arena_free(&a);
    d->generation = ++ref->home->generation;
    if (l->exists && listed != 0)
        ref->czxid = l->czxid;
    ref->had_list = true;
    use_directory(ref, d);
    reference_enter(ref, n != 0 ? REFERENCE_READY : REFERENCE_EMPTY);
    registry_mark_dirty(ref->home);
    if (!ref->watched)
        become_watched(ref);
    if (listed != 0)
        publish_self(ref);
}

void reference_on_error(struct reference *ref, const char *why)
{
    reference_event(ref, "read failed: %s", why);
    if (ref->state == REFERENCE_READING)
        reference_enter(ref, REFERENCE_FAILED);
}

/* ---------------------------------------------------------------- time */

/* Unlisted providers whose time is up leave: the list again without them. */
static void end_grace(struct reference *ref)
{
    struct provider *v = xcalloc(ref->directory->n + 1, sizeof(*v));
    size_t n = 0;
    struct directory *d = NULL;

    for (size_t i = 0; i < ref->directory->n; i++) {
        if (!ref->directory->providers[i].unlisted)
            v[n++] = ref->directory->providers[i];
    }
    d = directory_build(&ref->key, v, n, ref->directory->source);
    free(v);
    d->generation = ++ref->home->generation;
    ref->grace_until_ms = 0;
    use_directory(ref, d);
    if (n == 0 && ref->state == REFERENCE_READY)
        reference_enter(ref, REFERENCE_EMPTY);
    registry_mark_dirty(ref->home);
}

void reference_tick(struct reference *ref, uint64_t now_ms)
{
    if (ref->grace_until_ms != 0 && now_ms >= ref->grace_until_ms)
        end_grace(ref);
    if (ref->waiting_workers == 0 || now_ms - ref->created_ms < STARTING_MS)
        return;
    if (ref->directory != NULL)
        return;
    reference_refuse(ref, REFUSAL_STARTING);
    if (!ref->watched) { /* a look-up that nobody answers must not stay */
        ref->home->n_lookups--;
        reference_free(ref, false);
    }
}
