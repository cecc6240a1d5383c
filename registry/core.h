/*
 * What the files of the registry thread share.  Not for callers of registry/.
 *
 *   registry.c    the thread: mail from others, mail to workers, the tick
 *   cache.c       which references there are: wants, unknown names, the bound, eviction
 *   reference.c   what one of them does
 *   snapshot.c    the saved lists; snapshot_revisions.c: what applications export, snapshot_rules.c: what operators published
 *   report.c      what the admin interface shows
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/stats.h"
#include "registry/kind.h"
#include "registry/reference.h"
#include "registry/registry.h"
#include "registry/resolve.h"

enum {
    TICK_MS = 20,       /* while something is to be done soon */
    IDLE_TICK_MS = 200, /* else */
    LOOKUPS_MAX = 64,   /* names of the direct form being read, whole process */
    LOOKUPS_PER_SECOND = 1000,
    REFUSED_KEPT = 64,  /* names that got no list, for the report */
    NEGATIVE_MS = 2000, /* life of "there is no such interface" */
    EVICT_PATIENCE_MS = 2000,
    SAVE_AFTER_MS = 500, /* after a change; a slow disk is asked less often */
    WORKERS_MAX = 64,
    RESOLVE_AGAIN_MS = 30000,
};

/* An unknown name. */
struct negative {
    UT_hash_handle hh;
    uint64_t until_ms;
    char key[];
};

/* A name that got no list. */
struct refused {
    char *key; /* NULL = free */
    uint64_t wall_ms;
    enum registry_refusal why;
};

struct snapshot_entry {
    UT_hash_handle hh;
    struct arena arena;
    const char *registry;
    struct str *urls;
    size_t n;
    int64_t czxid;
    uint64_t saved_wall_ms;
    struct str apps; /* of the mapping, with commas */
    char key[];
};

struct store_definition;
struct saved_rule;

/* What the last run knew of the methods of a reference that has had no list yet. */
struct saved_definitions {
    UT_hash_handle hh;
    size_t n;
    struct {
        char *application;
        struct definition *definition;
    } v[DEFINITIONS_MAX];
    char key[];
};

struct numbers {
    struct counter references[REFERENCE_STATES];
    struct counter subscriptions, evictions, creates, deletes, events, reconnects, expired;
    struct counter watches, consumer_nodes, saved_wall_ms, writable, connected, disconnected;
    struct counter waiting, bad_rules;
};

struct registry {
    pthread_t thread;
    struct ev_loop *loop;
    struct mailbox box;
    ev_async wake;
    ev_timer tick;
    struct arena arena;
    struct registry_opts opts;
    struct source *sources;
    size_t n_sources;
    struct source fixed; /* of services with fixed providers */
    struct mailbox *workers[WORKERS_MAX];
    unsigned n_workers;
    unsigned next_asked; /* the worker that asks the next instance */
    unsigned n_evicting; /* references whose workers were asked */
    unsigned lookups_this_second;
    bool configured;
    bool hurried; /* the tick runs at TICK_MS */
    bool unwritable_told;
    bool stopping;

    struct reference *by_key;
    size_t n_references; /* look-ups among them */
    size_t n_lookups;
    size_t n_waiting;  /* pinned without any list */
    struct list lru;   /* reference.lru, longest unused first */
    struct list timed; /* reference.timed */
    struct list room;  /* reference.room, first come first served */
    uint64_t second_ms;
    struct refused refused[REFUSED_KEPT]; /* a ring */
    size_t n_refused;
    struct negative *negatives; /* in order of entry, which is the order of expiry */
    size_t n_negatives;

    struct snapshot_entry *snapshot;
    struct snapshot_app *snapshot_apps;
    struct saved_definitions *saved_definitions;
    struct saved_rule *saved_rules;
    uint64_t dirty_since_ms; /* the saved list is older than this; 0 = current */
    uint64_t save_not_before_ms;

    struct resolver *resolver;
    uint64_t last_resolve_ms;
    uint64_t last_second_ms;
    size_t definition_bytes; /* of all references */
    bool definitions_full_told;
    uint64_t status; /* what the control thread was told last */
    struct numbers numbers;
};

/* ---- registry.c ---- */
/* registry_start without the thread, for tests: registry_take_mail and registry_tick are the thread's turns. */
struct registry *registry_new(const struct registry_opts *opts, struct err *e) NONNULL MUST_CHECK;
void registry_free(struct registry *r) NONNULL;
void registry_take_mail(struct registry *r) NONNULL;
void registry_tick(struct registry *r) NONNULL;
/* One mail to one worker. */
struct outgoing {
    enum registry_mail_kind kind;
    const char *key;
    struct directory *directory;
    enum registry_refusal refusal;
    struct definitions *definitions;
    bool definitions_follow;
};
void registry_send(const struct registry *r, unsigned worker, const struct outgoing *o) NONNULL;
void registry_send_all(const struct registry *r, const struct outgoing *o) NONNULL;
void registry_mark_dirty(struct registry *r) NONNULL;

/* Resolved and allowed, or false with a sentence. */
bool provider_address(const struct source *s, struct str host, uint16_t port, union address *out,
                      struct err *e) __attribute__((nonnull(1, 4, 5))) MUST_CHECK;
/* One of the workers asks; there must be one.  The answer goes to the kind's on_metadata. */
void registry_ask_metadata(const struct source *s, const struct metadata_question *q) NONNULL;
/* The same with `ask`, which is taken over; the answer goes to reference_on_telnet. */
void registry_ask_telnet(struct registry *r, struct telnet_ask *ask) NONNULL;

/* ---- cache.c ---- */
struct reference *cache_find(const struct registry *r, struct str key_text)
    __attribute__((nonnull(1)));
struct source *cache_source(struct registry *r, const char *name) __attribute__((nonnull(1)));
void cache_want(struct registry *r, const struct refkey *k, const char *source, unsigned worker)
    __attribute__((nonnull(1, 2)));
void cache_configure(struct registry *r, const struct wanted_service *services, size_t n)
    __attribute__((nonnull(1)));
void cache_evict_answer(struct registry *r, struct reference *ref, unsigned worker,
                        bool idle) NONNULL;
void cache_remember_unknown(struct registry *r, const char *key) NONNULL;

struct registry_mail *registry_mail_new(enum registry_mail_kind kind) MUST_CHECK;

/* post.c */
void registry_post_stop(struct registry *r) NONNULL;

/* refused.c */
void refused_note(struct registry *r, const char *key, enum registry_refusal why) NONNULL;
const char *refused_reason(enum registry_refusal why);
void refused_free(struct registry *r) NONNULL;

/* A look-up has found providers: true when it is a subscription now.  False: it waits for a place, or it was
 * refused and is gone. */
bool cache_admit(struct registry *r, struct reference *ref) NONNULL MUST_CHECK;
/* Not all workers have said in time whether it is idle. */
void cache_evict_late(struct registry *r, struct reference *ref) NONNULL;
/* Once a second. */
void cache_second(struct registry *r, uint64_t now_ms) NONNULL;
void cache_free(struct registry *r) NONNULL;

/* ---- snapshot.c ---- */
void snapshot_load(struct registry *r) NONNULL;
const struct snapshot_entry *snapshot_find(const struct registry *r, const struct source *s,
                                           const char *key) NONNULL;
/* Whatever its age; also before the kinds are there. */
bool snapshot_has_list(const struct registry *r, struct str registry, const char *key)
    __attribute__((nonnull(1, 3)));
void snapshot_save(struct registry *r) NONNULL;
void snapshot_free(struct registry *r) NONNULL;

/* ---- snapshot_revisions.c ---- */
/* Copied. */
void snapshot_add_revision(struct registry *r, const struct source *source,
                           const struct store_revision *v) NONNULL;
/* Hands over what was saved of the application; from then on it is the kind's to save. */
void snapshot_take_revisions(const struct source *source, struct str app,
                             void (*take)(void *ctx, const struct store_revision *v), void *ctx)
    __attribute__((nonnull(1, 3)));
/* What nobody took, and what the kinds have.  False: not all of it. */
bool snapshot_put_revisions(const struct registry *r, struct store_writer *w) NONNULL;
void snapshot_free_revisions(struct registry *r) NONNULL;

/* ---- snapshot_definitions.c ---- */
/* store_reader.on_definition; `ctx` is the registry. */
void saved_definitions_load(void *ctx, const struct store_definition *d) NONNULL;
/* Behind all lists: they take what room is left. */
void saved_definitions_write(const struct registry *r, struct store_writer *w) NONNULL;
/* The caller's; NULL: there are none. */
struct saved_definitions *saved_definitions_take(const struct reference *ref) NONNULL MUST_CHECK;
void saved_definitions_free(struct saved_definitions *s); /* NULL is fine */
void saved_definitions_end(struct registry *r) NONNULL;

/* ---- snapshot_rules.c ---- */
/* Copied. */
void saved_rules_add(struct registry *r, const struct store_rule *v) NONNULL;
bool saved_rules_has(const struct source *source, struct str node)
    __attribute__((nonnull(1))) MUST_CHECK;
/* What was saved of the node, now in `a`; from then on it is the kind's to save.  False: nothing was. */
bool saved_rules_take(const struct source *source, struct str node, struct arena *a,
                      struct str *text) __attribute__((nonnull(1, 3, 4))) MUST_CHECK;
/* All that are left of configuration nodes: the registry has no others than those that were taken. */
void saved_rules_forget_nodes(const struct source *source) NONNULL;
/* What nobody took, and what the kinds have.  False: not all of it. */
bool saved_rules_write(const struct registry *r, struct store_writer *w) NONNULL;
void saved_rules_end(struct registry *r) NONNULL;

/* ---- report.c ---- */
/* `key` empty = all of them. */
void registry_print_references(const struct registry *r, struct str key, struct buf *out)
    __attribute__((nonnull(1, 3)));
void registry_print_registries(const struct registry *r, struct buf *out) NONNULL;
