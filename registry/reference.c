#include "registry/reference.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/configurator.h"
#include "registry/core.h"

#define S(state) (1U << (state))

/* One row per state: its name and the only states that may follow it. */
static const struct {
    const char *name;
    unsigned next;
} states[REFERENCE_STATES] = {
    [REFERENCE_WANTED] = {"wanted",
                          S(REFERENCE_READING) | S(REFERENCE_SNAPSHOT) | S(REFERENCE_LEAVING)},
    [REFERENCE_READING] = {"reading", S(REFERENCE_READY) | S(REFERENCE_EMPTY) |
                                          S(REFERENCE_FAILED) | S(REFERENCE_LEAVING)},
    [REFERENCE_READY] = {"ready", S(REFERENCE_EMPTY) | S(REFERENCE_LEAVING)},
    [REFERENCE_EMPTY] = {"empty", S(REFERENCE_READY) | S(REFERENCE_LEAVING)},
    [REFERENCE_SNAPSHOT] = {"snapshot",
                            S(REFERENCE_READY) | S(REFERENCE_EMPTY) | S(REFERENCE_LEAVING)},
    [REFERENCE_FAILED] = {"failed", S(REFERENCE_READY) | S(REFERENCE_EMPTY) | S(REFERENCE_LEAVING)},
    [REFERENCE_LEAVING] = {"leaving", 0},
};

const char *reference_state_name(enum reference_state s)
{
    return s < REFERENCE_STATES ? states[s].name : "?";
}

static void count_state(const struct reference *ref, bool up)
{
    struct counter *c = &ref->home->numbers.references[ref->state];

    counter_set(c, up ? counter_get(c) + 1 : counter_get(c) - 1);
}

void reference_enter(struct reference *ref, enum reference_state to)
{
    if (ref->state == to)
        return;
    ASSERT(states[ref->state].next & S(to));

    count_state(ref, false);
    ref->state = to;
    count_state(ref, true);
    reference_event(ref, "%s", states[to].name);
}

/* Most references have few events. */
static void make_event_room(struct reference *ref)
{
    unsigned room = ref->events_room == 0 ? REFERENCE_EVENTS / 4 : ref->events_room * 2;

    if (ref->n_events < ref->events_room || ref->events_room == REFERENCE_EVENTS)
        return;
    ref->events = xrealloc(ref->events, room * sizeof(*ref->events));
    memset(ref->events + ref->events_room, 0, (room - ref->events_room) * sizeof(*ref->events));
    ref->events_room = room;
}

void reference_event(struct reference *ref, const char *fmt, ...)
{
    struct reference_event *e = NULL;
    char text[REFERENCE_EVENT_LEN] = "";
    va_list ap;

    va_start(ap, fmt);
    if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
        text[0] = '\0';
    va_end(ap);
    if (ref->n_events != 0) {
        e = &ref->events[(ref->n_events - 1) % REFERENCE_EVENTS];
        if (e->text != NULL && strcmp(e->text, text) == 0) {
            e->wall_ms = wall_ms(); /* the same again, not twenty times */
            return;
        }
    }
    make_event_room(ref);
    e = &ref->events[ref->n_events++ % REFERENCE_EVENTS];
    free(e->text);
    e->wall_ms = wall_ms();
    e->text = strdup(text);
}

/* ---------------------------------------------------------------- bookkeeping */

static bool counts_as_waiting(const struct reference *ref)
{
    return ref->pinned && ref->directory == NULL;
}

/* Keeps the number of configured references without any list, which readiness depends on. */
static void recount(struct reference *ref, bool before)
{
    bool now = counts_as_waiting(ref);

    if (now != before)
        ref->home->n_waiting = now ? ref->home->n_waiting + 1 : ref->home->n_waiting - 1;
}

static void list_member(struct list *head, struct list *l, bool in)
{
    if (!in)
        list_remove(l);
    else if (list_empty(l))
        list_add(head, l);
}

void reference_place(struct reference *ref)
{
    bool evictable = ref->watched && !ref->pinned && ref->evict_pending == 0;
    bool timed = ref->waiting_workers != 0 || ref->evict_pending != 0 || !ref->watched;

    list_member(&ref->home->lru, &ref->lru, evictable);
    list_member(&ref->home->timed, &ref->timed, timed);
    list_member(&ref->home->room, &ref->room, ref->wants_room);
}

void reference_set_pinned(struct reference *ref, bool pinned)
{
    bool before = counts_as_waiting(ref);

    ref->pinned = pinned;
    recount(ref, before);
    reference_place(ref);
}

void reference_touch(struct reference *ref)
{
    ref->last_used_ms = clock_ms();
    ref->last_used_wall_ms = wall_ms();
    list_remove(&ref->lru); /* to the end */
    reference_place(ref);
}

/* NOLINTBEGIN(readability-function-size): the macros of uthash */
static void table_add(struct registry *r, struct reference *ref)
{
    HASH_ADD_KEYPTR(hh, r->by_key, ref->key_text, strlen(ref->key_text), ref);
}

static void table_remove(struct registry *r, struct reference *ref)
{
    HASH_DEL(r->by_key, ref);
}
/* NOLINTEND(readability-function-size) */

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
        fatal("a reference key that is none");
    ref->home = r;
    ref->source = source;
    ref->created_ms = ref->last_used_ms = clock_ms();
    ref->created_wall_ms = ref->last_used_wall_ms = wall_ms();
    list_init(&ref->lru);
    list_init(&ref->timed);
    list_init(&ref->room);
    table_add(r, ref);
    r->n_references++;
    r->n_lookups++; /* until it is watched */
    count_state(ref, true);
    return ref;
}

void reference_free(struct reference *ref, bool tell)
{
    struct registry *r = ref->home;

    reference_enter(ref, REFERENCE_LEAVING);
    ref->source->kind->unpublish(ref->source->impl, ref);
    ref->source->kind->unwatch(ref->source->impl, ref);
    if (tell)
        registry_send_all(r, &(struct outgoing){REGISTRY_MAIL_GONE, .key = ref->key_text});
    reference_set_pinned(ref, false);
    count_state(ref, false);
    list_remove(&ref->lru);
    list_remove(&ref->timed);
    list_remove(&ref->room);
    r->n_evicting -= ref->evict_pending != 0 ? 1U : 0U;
    table_remove(r, ref);
    r->n_references--;
    r->n_lookups -= ref->watched ? 0U : 1U;
    directory_put(ref->directory);
    for (unsigned i = 0; i < ref->events_room; i++)
        free(ref->events[i].text);
    free(ref->events);
    free(ref->fixed_urls);
    free(ref->lost);
    free(ref->key_text);
    free(ref);
}

void reference_set_fixed(struct reference *ref, const struct str *urls, size_t n)
{
    size_t bytes = 0;
    struct str *v = NULL;
    char *at = NULL;

    for (size_t i = 0; i < n; i++)
        bytes += urls[i].n;
    v = xcalloc(1, n * sizeof(*v) + bytes + 1); /* the slices and, behind them, their texts */
    at = (char *)(v + n);
    for (size_t i = 0; i < n; i++) {
        if (urls[i].n != 0)
            memcpy(at, urls[i].p, urls[i].n);
        v[i] = (struct str){at, urls[i].n};
        at += urls[i].n;
    }
    ref->fixed_urls = v;
    ref->n_fixed_urls = n;
}

void reference_look_up(struct reference *ref)
{
    reference_place(ref);
    if (ref->state == REFERENCE_WANTED)
        reference_enter(ref, REFERENCE_READING);
    ref->source->kind->watch(ref->source->impl, ref);
}

void reference_subscribe(struct reference *ref)
{
    ASSERT(!ref->watched);
    ref->watched = true;
    ref->wants_room = false;
    ref->home->n_lookups--;
    ref->subscribes++;
    counter_add(&ref->home->numbers.subscriptions, 1);
    reference_place(ref);
    if (ref->state == REFERENCE_WANTED)
        reference_enter(ref, REFERENCE_READING);
    ref->source->kind->watch(ref->source->impl, ref);
}

/* ---------------------------------------------------------------- who waits */

/* No list from anywhere, and none to be expected soon. */
static bool is_hopeless(const struct reference *ref, uint64_t now_ms)
{
    const struct source *s = ref->source;

    return ref->state == REFERENCE_FAILED ||
           (!s->connected && now_ms - s->changed_ms > s->conf.connect_timeout_ms);
}

void reference_wait(struct reference *ref, unsigned worker)
{
    uint64_t now = clock_ms();

    if (ref->directory != NULL) {
        registry_send(ref->home, worker,
                      &(struct outgoing){REGISTRY_MAIL_DIRECTORY, .key = ref->key_text,
                                         .directory = ref->directory});
        return;
    }
    if (is_hopeless(ref, now)) {
        registry_send(ref->home, worker,
                      &(struct outgoing){REGISTRY_MAIL_REFUSED, .key = ref->key_text,
                                         .refusal = REFUSAL_STARTING});
        return;
    }
    if (ref->waiting_workers == 0)
        ref->waiting_since_ms = now;
    ref->waiting_workers |= UINT64_C(1) << worker;
    reference_place(ref);
}

static void answer_waiting(struct reference *ref, const struct outgoing *o)
{
    for (unsigned i = 0; i < ref->home->n_workers; i++) {
        if (ref->waiting_workers & UINT64_C(1) << i)
            registry_send(ref->home, i, o);
    }
    ref->waiting_workers = 0;
    reference_place(ref);
}

void reference_refuse(struct reference *ref, enum registry_refusal why)
{
    if (!ref->watched) /* a look-up: nothing of it stays */
        refused_note(ref->home, ref->key_text, why);
    answer_waiting(ref,
                   &(struct outgoing){REGISTRY_MAIL_REFUSED, .key = ref->key_text, .refusal = why});
}

/* ---------------------------------------------------------------- lists */

/* Resolves the host; what may not be called says why. */
static void settle(const struct reference *ref, struct provider *p)
{
    const struct registry_conf *c = &ref->source->conf;
    struct err e = {0};
    bool ok = false;

    if (p->unusable != USABLE && p->unusable != UNUSABLE_ADDRESS)
        return;
    ok = resolve(ref->home->resolver, p->host, p->port, &p->addr, &e);
    if (ok && !ref->source->kind->fixed &&
        !network_allows(c->provider_networks, c->n_provider_networks, &p->addr)) {
        err_set(&e, "outside provider_networks");
        ok = false;
    }
    p->unusable = ok ? USABLE : UNUSABLE_ADDRESS;
    if (ok)
        return;
    p->addr = (union address){.sa.sa_family = AF_UNSPEC};
    log_warn("registry", "%s: provider " STR_FMT " is not used: %s", ref->key_text,
             STR_ARG(p->host), e.text);
}

static bool read_url(const struct reference *ref, const struct list_report *l, struct str url,
                     struct arena *a, struct provider *out, struct err *e)
{
    const struct conf_consumer consumer = {.ip = l->consumer_ip,
                                           .application = str_from(ref->home->opts.application),
                                           .key = ref->key};

    if (ref->source->kind->fixed)
        return provider_from_address(url, &ref->key, a, out, e);
    if (l->configurators == NULL)
        return provider_from_url(url, a, out, e);
    return provider_from_url_over(url, l->configurators, &consumer, a, out, e);
}

/* URL texts to the providers of this reference; garbage is skipped and told. */
static size_t parse_urls(const struct reference *ref, const struct list_report *l, struct arena *a,
                         struct provider *out)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct err e = {0};
        bool ok = read_url(ref, l, l->urls[i], a, &out[n], &e);

        if (!ok)
            log_warn("registry", "%s: a provider is skipped: %s", ref->key_text, e.text);
        if (!ok || !provider_matches(&out[n], &ref->key))
            continue;
        settle(ref, &out[n]);
        n++;
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
    bool before = counts_as_waiting(ref);
    bool same = old != NULL && directory_equal(old, d);
    struct outgoing o = {REGISTRY_MAIL_DIRECTORY, .key = ref->key_text, .directory = d};

    if (same && old->source == d->source) { /* the workers hold the old one: one is enough */
        o.directory = old;
        answer_waiting(ref, &o);
        directory_put(d);
        return false;
    }
    ref->directory = d;
    recount(ref, before);
    if (!same)
        note_change(ref, old, d);
    registry_send_all(ref->home, &o);
    ref->waiting_workers = 0;
    answer_waiting(ref, &o);
    directory_put(old);
    return !same;
}

static void enter_by_list(struct reference *ref)
{
    reference_enter(ref, ref->directory->n != 0 ? REFERENCE_READY : REFERENCE_EMPTY);
}

bool reference_use_snapshot(struct reference *ref)
{
    const struct snapshot_entry *e = snapshot_find(ref->home, ref->source, ref->key_text);
    struct arena a;
    struct provider *v = NULL;
    size_t n = 0;

    if (e == NULL || ref->directory != NULL)
        return false;
    arena_init(&a);
    v = arena_alloc(&a, (e->n + 1) * sizeof(*v));
    n = parse_urls(ref, &(struct list_report){.urls = e->urls, .n = e->n}, &a, v);
    if (n != 0) {
        ref->czxid = e->czxid;
        reference_enter(ref, REFERENCE_SNAPSHOT);
        use_directory(ref, directory_build(&ref->key, v, n, DIRECTORY_SNAPSHOT));
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
                      size_t listed)
{
    size_t n = add_unlisted(ref, l, v, listed);
    bool fixed = ref->source->kind->fixed;
    bool changed = use_directory(
        ref, directory_build(&ref->key, v, n, fixed ? DIRECTORY_STATIC : DIRECTORY_REGISTRY));
    bool same_list = ref->had_list && (listed == 0 || ref->czxid == l->czxid);

    if (listed != 0)
        ref->czxid = l->czxid;
    ref->had_list = true;
    enter_by_list(ref);
    if (!fixed && (changed || !same_list))
        registry_mark_dirty(ref->home);
}

void reference_on_list(struct reference *ref, const struct list_report *l)
{
    size_t old_n = ref->directory != NULL ? ref->directory->n : 0;
    struct arena a;
    struct provider *v = NULL;
    size_t listed = 0;

    arena_init(&a);
    v = arena_alloc(&a, (l->n + old_n + 1) * sizeof(*v));
    listed = parse_urls(ref, l, &a, v);
    if (!ref->watched && listed == 0) {
        forget_unknown(ref);
    } else if (ref->watched || cache_admit(ref->home, ref)) {
        take_list(ref, l, v, listed);
        if (listed != 0 && ref->source->conf.register_consumer)
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

static void rebuild(struct reference *ref, const struct provider *v, size_t n)
{
    if (use_directory(ref, directory_build(&ref->key, v, n, ref->directory->source)) &&
        !ref->source->kind->fixed)
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

void reference_tick(struct reference *ref, uint64_t now_ms)
{
    if (ref->evict_pending != 0 && now_ms - ref->evict_asked_ms >= EVICT_PATIENCE_MS)
        cache_evict_late(ref->home, ref);
    if (ref->waiting_workers != 0 &&
        (now_ms - ref->waiting_since_ms >= STARTING_MS || is_hopeless(ref, now_ms)))
        reference_refuse(ref, ref->wants_room ? REFUSAL_LIMIT : REFUSAL_STARTING);
    if (!ref->watched && ref->waiting_workers == 0)
        reference_free(ref, false); /* a look-up that nobody waits for */
    else
        reference_place(ref);
}
