#include "registry/reference.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"
#include "registry/reference_definitions.h"
#include "registry/reference_parts.h"

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

bool reference_is_waiting(const struct reference *ref)
{
    return ref->pinned && ref->directory == NULL && !ref->was_empty;
}

/* Keeps the number of configured references without any list, which readiness depends on. */
void reference_recount(struct reference *ref, bool before)
{
    bool now = reference_is_waiting(ref);

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
    bool timed = ref->waiting_workers != 0 || ref->evict_pending != 0 || !ref->watched ||
                 reference_definitions_due(ref);

    list_member(&ref->home->lru, &ref->lru, evictable);
    list_member(&ref->home->timed, &ref->timed, timed);
    list_member(&ref->home->room, &ref->room, ref->wants_room);
}

void reference_set_pinned(struct reference *ref, bool pinned)
{
    bool before = reference_is_waiting(ref);

    ref->pinned = pinned;
    reference_recount(ref, before);
    reference_place(ref);
}

void reference_touch(struct reference *ref)
{
    ref->last_used_ms = clock_ms();
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
    ref->last_used_ms = clock_ms();
    ref->created_wall_ms = wall_ms();
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
    reference_definitions_free(ref);
    for (unsigned i = 0; i < ref->events_room; i++)
        free(ref->events[i].text);
    free(ref->events);
    free(ref->fixed_urls);
    free((char *)(uintptr_t)ref->provided_by.p);
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
    ref->n_fixed_urls = (uint32_t)n;
}

bool reference_set_discovery(struct reference *ref, enum discovery d, struct str provided_by)
{
    bool same = ref->discovery == d && str_eq(ref->provided_by, provided_by);

    if (same)
        return false;
    free((char *)(uintptr_t)ref->provided_by.p);
    ref->discovery = d;
    ref->provided_by = STR_NONE;
    if (provided_by.n != 0) {
        char *copy = xcalloc(1, provided_by.n);

        memcpy(copy, provided_by.p, provided_by.n);
        ref->provided_by = (struct str){copy, provided_by.n};
    }
    return true;
}

enum discovery reference_discovery(const struct reference *ref)
{
    enum discovery d = ref->discovery;

    if (d == DISCOVERY_INHERIT)
        d = ref->source->conf.discovery;
    if (d == DISCOVERY_INTERFACE && ref->discovery == DISCOVERY_INHERIT && ref->provided_by.n != 0)
        d = DISCOVERY_AUTO; /* who names applications means them */
    return d != DISCOVERY_INHERIT ? d : DISCOVERY_AUTO;
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
                                         .directory = ref->directory,
                                         .definitions_follow = reference_definitions_follow(ref)});
        reference_tell_definitions(ref, worker);
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

void reference_answer_waiting(struct reference *ref, const struct outgoing *o)
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
    reference_answer_waiting(
        ref, &(struct outgoing){REGISTRY_MAIL_REFUSED, .key = ref->key_text, .refusal = why});
}

void reference_tick(struct reference *ref, uint64_t now_ms)
{
    if (ref->evict_pending != 0 && now_ms - ref->evict_asked_ms >= EVICT_PATIENCE_MS)
        cache_evict_late(ref->home, ref);
    if (ref->waiting_workers != 0 &&
        (now_ms - ref->waiting_since_ms >= STARTING_MS || is_hopeless(ref, now_ms)))
        reference_refuse(ref, ref->wants_room ? REFUSAL_LIMIT : REFUSAL_STARTING);
    reference_definitions_tick(ref, now_ms);
    if (!ref->watched && ref->waiting_workers == 0)
        reference_free(ref, false); /* a look-up that nobody waits for */
    else
        reference_place(ref);
}
