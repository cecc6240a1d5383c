/*
 * Which references there are: what workers and the configuration want, names that do not exist, and the
 * bound on all of them.
 *
 * Subscriptions are bounded by limits.references; the least recently used one goes when it is idle in every
 * worker, configured ones never.  Look-ups of names from outside are bounded on their own (LOOKUPS_MAX at a
 * time, LOOKUPS_PER_SECOND) and leave only an entry in the table of unknown names, which is bounded too and
 * short-lived: scanning names costs the registry one read each and evicts nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "registry/core.h"

enum { IDLE_PER_SECOND = 64 };

/* ---------------------------------------------------------------- unknown names */

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): the macros of uthash */
static struct negative *negative_find(struct registry *r, const char *key)
{
    struct negative *n = NULL;

    HASH_FIND_STR(r->negatives, key, n);
    return n;
}

static void negative_add(struct registry *r, struct negative *n)
{
    HASH_ADD_STR(r->negatives, key, n);
    r->n_negatives++;
}

static void negative_remove(struct registry *r, struct negative *n)
{
    HASH_DEL(r->negatives, n);
    r->n_negatives--;
}

struct reference *cache_find(const struct registry *r, struct str key_text)
{
    struct reference *ref = NULL;

    HASH_FIND(hh, r->by_key, key_text.n != 0 ? key_text.p : "", key_text.n, ref);
    return ref;
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

static void drop_negative(struct registry *r, struct negative *n)
{
    negative_remove(r, n);
    free(n);
}

void cache_remember_unknown(struct registry *r, const char *key)
{
    struct negative *n = negative_find(r, key);
    size_t len = strlen(key);

    if (n != NULL)
        drop_negative(r, n);
    else if (r->n_negatives >= r->opts.max_references)
        drop_negative(r, r->negatives); /* the oldest: uthash keeps the order */
    n = xcalloc(1, sizeof(*n) + len + 1);
    memcpy(n->key, key, len + 1);
    n->until_ms = clock_ms() + NEGATIVE_MS;
    negative_add(r, n);
}

static bool is_unknown(struct registry *r, const char *key)
{
    const struct negative *n = negative_find(r, key);

    return n != NULL && clock_ms() < n->until_ms;
}

/* ---------------------------------------------------------------- finding */

struct source *cache_source(struct registry *r, const char *name)
{
    for (size_t i = 0; i < r->n_sources; i++) {
        if (name == NULL || strcmp(r->sources[i].conf.name, name) == 0)
            return &r->sources[i];
    }
    return NULL;
}

static void print_key(const struct refkey *k, char out[REFKEY_TEXT_MAX + 1])
{
    struct buf b = {
        .data = (uint8_t *)out, .cap = REFKEY_TEXT_MAX + 1, .limit = REFKEY_TEXT_MAX + 1};

    refkey_print(k, &b);
    buf_add_u8(&b, '\0');
    if (b.failed)
        out[0] = '\0';
}

/* ---------------------------------------------------------------- the bound */

static bool has_room(const struct registry *r)
{
    return r->n_references - r->n_lookups < r->opts.max_references;
}

static struct reference *first_waiting_for_room(struct registry *r)
{
    return list_empty(&r->room) ? NULL : container_of(r->room.next, struct reference, room);
}

/* Longest unused, and not asked about just now; NULL when every one is in use. */
static struct reference *eviction_candidate(struct registry *r)
{
    struct reference *ref = NULL;

    if (list_empty(&r->lru))
        return NULL;
    ref = container_of(r->lru.next, struct reference, lru);
    if (ref->evict_asked_ms != 0 && clock_ms() - ref->evict_asked_ms < EVICT_PATIENCE_MS)
        return NULL;
    return ref;
}

static void evict(struct registry *r, struct reference *ref)
{
    counter_add(&r->numbers.evictions, 1);
    reference_free(ref, true);
    registry_mark_dirty(r);
}

static void ask_if_idle(struct registry *r, struct reference *ref)
{
    if (r->n_workers == 0) {
        evict(r, ref);
        return;
    }
    ref->evict_pending = UINT64_MAX >> (64 - r->n_workers);
    ref->evict_busy = false;
    ref->evict_asked_ms = clock_ms();
    r->n_evicting++;
    reference_place(ref);
    registry_send_all(r, &(struct outgoing){REGISTRY_MAIL_EVICT, .key = ref->key_text});
}

/* Places go to those who wait, as many evictions run as are needed for the rest, and who cannot get one any
 * more hears so. */
static void make_room(struct registry *r)
{
    struct reference *w = NULL;
    unsigned n_waiting = 0;

    while (has_room(r) && (w = first_waiting_for_room(r)) != NULL)
        reference_subscribe(w);
    list_each(l, &r->room) { /* NOLINT(clang-analyzer-core.NullDereference): a ring */
        n_waiting++;
    }
    while (r->n_evicting < n_waiting) {
        struct reference *ref = eviction_candidate(r);

        if (ref == NULL)
            break;
        ask_if_idle(r, ref);
        if (r->n_workers == 0 && (w = first_waiting_for_room(r)) != NULL) {
            reference_subscribe(w);
            n_waiting--;
        }
    }
    if (r->n_evicting != 0)
        return;
    while ((w = first_waiting_for_room(r)) != NULL) {
        reference_refuse(w, REFUSAL_LIMIT);
        reference_free(w, false);
    }
}

bool cache_admit(struct registry *r, struct reference *ref)
{
    if (has_room(r)) {
        reference_subscribe(ref);
        return true;
    }
    ref->wants_room = true;
    reference_place(ref);
    make_room(r);
    return false;
}

/* All that are going to answer have answered. */
static void decide(struct registry *r, struct reference *ref)
{
    r->n_evicting--;
    if (ref->evict_busy || ref->pinned) {
        ref->evict_asked_ms = clock_ms();
        reference_touch(ref);
    } else {
        evict(r, ref);
    }
    make_room(r);
}

void cache_evict_answer(struct registry *r, struct reference *ref, unsigned worker, bool idle)
{
    uint64_t bit = UINT64_C(1) << worker;

    if ((ref->evict_pending & bit) == 0)
        return; /* of a question that was given up */
    ref->evict_pending &= ~bit;
    ref->evict_busy = ref->evict_busy || !idle;
    if (ref->evict_pending == 0)
        decide(r, ref);
}

void cache_evict_late(struct registry *r, struct reference *ref)
{
    ref->evict_pending = 0;
    ref->evict_busy = true; /* a worker that does not answer may well be using it */
    decide(r, ref);
}

static void evict_idle(struct registry *r, uint64_t now_ms)
{
    if (r->opts.reference_idle_ms == 0)
        return;
    for (int i = 0; i < IDLE_PER_SECOND; i++) {
        struct reference *ref = eviction_candidate(r);

        if (ref == NULL || now_ms - ref->last_used_ms < r->opts.reference_idle_ms)
            return;
        ask_if_idle(r, ref);
    }
}

void cache_second(struct registry *r, uint64_t now_ms)
{
    while (r->negatives != NULL && now_ms >= r->negatives->until_ms)
        drop_negative(r, r->negatives);
    evict_idle(r, now_ms);
}

/* ---------------------------------------------------------------- wants */

static bool may_look_up(struct registry *r, uint64_t now_ms)
{
    if (now_ms - r->second_ms >= 1000) {
        r->second_ms = now_ms;
        r->lookups_this_second = 0;
    }
    if (r->n_lookups >= LOOKUPS_MAX || r->lookups_this_second >= LOOKUPS_PER_SECOND)
        return false;
    r->lookups_this_second++;
    return true;
}

static bool is_away(const struct source *s, uint64_t now_ms)
{
    return !s->connected && now_ms - s->changed_ms > s->conf.connect_timeout_ms;
}

/* A reference of the last run is one that has had providers: no look-up. */
static void take_over_saved(struct registry *r, const struct refkey *k, struct source *s,
                            unsigned worker)
{
    struct reference *ref = reference_new(r, k, s);

    (void)reference_use_snapshot(ref);
    reference_wait(ref, worker);
    reference_subscribe(ref);
}

static enum registry_refusal look_up(struct registry *r, const struct refkey *k, struct source *s,
                                     unsigned worker)
{
    struct reference *ref = NULL;
    uint64_t now = clock_ms();

    if (is_away(s, now))
        return REFUSAL_STARTING;
    if (!may_look_up(r, now))
        return REFUSAL_LIMIT;
    ref = reference_new(r, k, s);
    reference_wait(ref, worker);
    reference_look_up(ref);
    return REFUSAL_NONE;
}

static bool had_providers(const struct snapshot_entry *e)
{
    return e != NULL && (e->n != 0 || e->apps.n != 0);
}

void cache_want(struct registry *r, const struct refkey *k, const char *source, unsigned worker)
{
    struct source *s = cache_source(r, source);
    char key[REFKEY_TEXT_MAX + 1];
    struct reference *ref = NULL;
    enum registry_refusal no = REFUSAL_NONE;

    print_key(k, key);
    ref = cache_find(r, str_from(key));
    if (ref != NULL) {
        ref->evict_busy = true;
        reference_touch(ref);
        reference_wait(ref, worker);
        return;
    }
    if (s == NULL || is_unknown(r, key))
        no = REFUSAL_UNKNOWN;
    else if (has_room(r) && had_providers(snapshot_find(r, s, key)))
        take_over_saved(r, k, s, worker);
    else
        no = look_up(r, k, s, worker);
    if (no == REFUSAL_NONE)
        return;
    refused_note(r, key, no);
    registry_send(r, worker, &(struct outgoing){REGISTRY_MAIL_REFUSED, .key = key, .refusal = no});
}

/* ---------------------------------------------------------------- configured services */

static bool same_urls(const struct reference *ref, const struct wanted_service *w)
{
    if (ref->n_fixed_urls != w->n_urls)
        return false;
    for (size_t i = 0; i < w->n_urls; i++) {
        if (!str_eq(ref->fixed_urls[i], w->urls[i]))
            return false;
    }
    return true;
}

static void configure_one(struct registry *r, const struct wanted_service *w)
{
    struct source *s = w->n_urls != 0 ? NULL : cache_source(r, w->registry);
    char key[REFKEY_TEXT_MAX + 1];
    struct reference *ref = NULL;
    bool moved = false;

    if (s == NULL)
        s = &r->fixed;
    print_key(&w->key, key);
    ref = cache_find(r, str_from(key));
    if (ref != NULL && (ref->source != s || (s->kind->fixed && !same_urls(ref, w)))) {
        reference_free(ref, false); /* its providers come from elsewhere now: a new one, at once */
        ref = NULL;
    }
    if (ref == NULL) {
        ref = reference_new(r, &w->key, s);
        if (s->kind->fixed)
            reference_set_fixed(ref, w->urls, w->n_urls);
        (void)reference_use_snapshot(ref);
    }
    moved = reference_set_discovery(ref, w->discovery, w->provided_by);
    reference_set_pinned(ref, true);
    if (!ref->watched)
        reference_subscribe(ref);
    else if (moved)
        ref->source->kind->watch(ref->source->impl, ref);
}

void cache_configure(struct registry *r, const struct wanted_service *services, size_t n)
{
    struct reference *ref = NULL;
    struct reference *next = NULL;

    for (ref = r->by_key; ref != NULL; ref = ref->hh.next)
        reference_set_pinned(ref, false);
    for (size_t i = 0; i < n; i++)
        configure_one(r, &services[i]);
    HASH_ITER(hh, r->by_key, ref, next)
    {
        /* fixed ones that are configured no more have nothing to live for */
        if (!ref->pinned && ref->source->kind->fixed)
            reference_free(ref, true);
    }
    r->configured = true;
}

void cache_free(struct registry *r)
{
    while (r->by_key != NULL)
        reference_free(r->by_key, false);
    while (r->negatives != NULL)
        drop_negative(r, r->negatives); /* NOLINT(clang-analyzer-unix.Malloc): left the table */
    refused_free(r);
}
