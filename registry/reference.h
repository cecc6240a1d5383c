/*
 * One subscription: interface + version + group of one registry (docs/ARCHITECTURE.md, docs/REGISTRY.md).
 *
 *            +--> SNAPSHOT --+
 *   WANTED --+               +--> READY <--> EMPTY
 *            +--> READING ---+
 *                   +--> FAILED --> READY, EMPTY          any of them --> LEAVING
 *
 * reference_enter is the only place that changes a state.  Lists come in through reference_on_list, whatever
 * the kind of registry, and leave as immutable directories for all workers.  Losing the connection changes no
 * state: lists stay in use.  No request reaches this file: only a list that was read and that shows a provider
 * makes it ask for a consumer node, and the kind writes that once per session.
 *
 * A name of the direct form starts as a look-up (`watched` false): it is read once, and if it has no provider
 * it is forgotten, remembered only in the bounded table of unknown names (cache.c).
 *
 * Registry thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "registry/judge.h"
#include "registry/kind.h"
#include "registry/refkey.h"
#include "registry/registry.h"

enum {
    REFERENCE_EVENTS = 20, /* the last ones are kept for the report */
    REFERENCE_EVENT_LEN = 160,
    STARTING_MS = 3000, /* a call waits so long for a first list */
};

struct reference_event {
    uint64_t wall_ms;
    char *text;
};

struct reference {
    UT_hash_handle hh;
    struct list lru;   /* registry.lru: watched, not pinned, not asked about */
    struct list timed; /* registry.timed: has a deadline of some kind */
    struct list room;  /* registry.room: wants_room */
    struct registry *home;
    struct source *source;
    char *key_text;
    struct refkey key; /* into key_text */
    enum reference_state state : 8;
    enum discovery discovery   : 8;
    bool pinned;            /* by the configuration: never evicted */
    bool watched;           /* false: a look-up */
    bool wants_room;        /* a look-up that found providers while all places are taken */
    bool had_list;          /* of the registry; else from the saved lists */
    bool evict_busy;        /* a worker that was asked about it uses it */
    bool was_empty;         /* the last run knew no provider of it: nobody waits for its list */
    struct str provided_by; /* applications, with commas; owned */
    uint64_t created_wall_ms;
    uint64_t last_used_ms;
    uint64_t last_change_wall_ms;
    unsigned subscribes; /* how often it became a subscription: 1 */
    uint32_t n_fixed_urls;

    struct directory *directory; /* what the workers have; NULL = nothing yet */
    int64_t czxid;               /* list_report.czxid of the last list that showed a provider */
    struct judge_window window;
    uint64_t *
        lost; /* per provider of the directory, bits: workers without a connection to it; NULL = none */
    struct reference_definitions *definitions; /* NULL: no application to ask */
    struct str *fixed_urls;

    uint64_t waiting_workers; /* bits: who asked and has no answer yet */
    uint64_t waiting_since_ms;
    uint64_t evict_pending; /* bits: workers asked whether it is idle */
    uint64_t evict_asked_ms;

    struct reference_event
        *events; /* a ring once there are REFERENCE_EVENTS; as long as needed before */
    unsigned n_events;
    unsigned events_room;
    void *kind_ref; /* the kind's own */
};

struct reference *reference_new(struct registry *r, const struct refkey *k,
                                struct source *source) NONNULL MUST_CHECK;
/* Unsubscribes and frees; with `tell` the workers hear that it is gone. */
void reference_free(struct reference *ref, bool tell) NONNULL;

void reference_enter(struct reference *ref, enum reference_state to) NONNULL;
const char *reference_state_name(enum reference_state s);
/* For the report; a text equal to the last one only refreshes its time. */
void reference_event(struct reference *ref, const char *fmt, ...) PRINTF_LIKE(2, 3);

void reference_set_pinned(struct reference *ref, bool pinned) NONNULL;
/* Fixed providers; copies. */
void reference_set_fixed(struct reference *ref, const struct str *urls, size_t n)
    __attribute__((nonnull(1)));
/* Where its providers are looked for; `provided_by` is copied.  True: that is new. */
bool reference_set_discovery(struct reference *ref, enum discovery d, struct str provided_by)
    __attribute__((nonnull(1)));
/* Never DISCOVERY_INHERIT. */
enum discovery reference_discovery(const struct reference *ref) NONNULL;
/* The saved list, when there is one and the registry has not been heard.  True: it has a directory now. */
bool reference_use_snapshot(struct reference *ref) NONNULL;
/* First read.  May free the reference. */
void reference_look_up(struct reference *ref) NONNULL;
/* From now on the list is watched; once in its life. */
void reference_subscribe(struct reference *ref) NONNULL;
void reference_touch(struct reference *ref) NONNULL;
/* Puts it into the lists that it belongs to; after a change of what decides that. */
void reference_place(struct reference *ref) NONNULL;

/* From kinds.  May free the reference (a look-up without providers). */
void reference_on_list(struct reference *ref, const struct list_report *l) NONNULL;
void reference_on_error(struct reference *ref, const char *why) NONNULL;

/* Worker `i` waits for an answer, or gets it now. */
void reference_wait(struct reference *ref, unsigned worker) NONNULL;
/* Answers those who wait. */
void reference_refuse(struct reference *ref, enum registry_refusal why) NONNULL;
/* Worker `i` does not reach these unlisted providers of `d`, which is or was our directory. */
void reference_unlisted_lost(struct reference *ref, unsigned worker, const struct directory *d,
                             const size_t *lost, size_t n) NONNULL;
/* Host names may have other addresses now. */
void reference_resolve_again(struct reference *ref) NONNULL;
/* For those in registry.timed.  May free the reference. */
void reference_tick(struct reference *ref, uint64_t now_ms) NONNULL;
