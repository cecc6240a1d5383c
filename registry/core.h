/*
 * What the files of the registry thread share.  Not for callers of registry/.
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
#include "registry/registry.h"
#include "registry/resolve.h"
#include "registry/store.h"

enum {
    EVENTS_KEPT = 20,
    LOOKUPS_MAX = 64, /* names of the direct form being read, whole registry */
    LOOKUPS_PER_SECOND = 1000,
    NEGATIVE_MS = 2000, /* life of "there is no such interface" */
    STARTING_MS = 3000, /* a call waits so long for a first list */
    SAVE_AFTER_MS = 1000,
    WORKERS_MAX = 64,
    RESOLVE_AGAIN_MS = 30000,
};

struct source;
struct reference;

/* Mail to the registry thread.  A kind's own mail has `run`, which frees it. */
struct registry_post {
    struct mail mail; /* first member */
    void (*run)(struct registry_post *p);
};

/* How the list of an interface came to be what it is now. */
struct list_report {
    const struct str *urls; /* decoded provider URLs */
    size_t n;
    bool exists;       /* the providers node is there */
    int64_t czxid;     /* of that node; 0 = unknown */
    bool root_changed; /* the registry was wiped or rolled back since the last list */
};

/* One row per way to learn about providers. */
struct registry_kind {
    const char *scheme;
    /* Starts connecting; never fails because nobody answers. NULL: the address is malformed. */
    void *(*open)(struct source *s, struct err *e);
    void (*close)(void *kind);
    /* Reads the list of r's interface and, with r->watched, keeps reading it: reference_on_list. */
    void (*watch)(void *kind, struct reference *r);
    void (*unwatch)(void *kind, struct reference *r);
    void (*refresh)(void *kind, struct reference *r);
    /* Our consumer node; once per reference and session.  unpublish also when it was never written. */
    void (*publish)(void *kind, struct reference *r);
    void (*unpublish)(void *kind, struct reference *r);
    void (*tick)(void *kind);
    /* Appends members of the registry's report: "state":…,"server":…  */
    void (*report)(const void *kind, struct buf *out);
};
const struct registry_kind *registry_kind_find(struct str address);
extern const struct registry_kind registry_kind_zookeeper;

/* One registry of the configuration. */
struct source {
    struct registry *home;
    struct registry_conf conf; /* texts in home->arena */
    const struct registry_kind *kind;
    void *impl;
    bool connected;
    uint64_t changed_ms; /* when `connected` changed */
};

struct reference_event {
    uint64_t wall_ms;
    char text[120];
};

enum consumer_state { CONSUMER_NONE, CONSUMER_WRITING, CONSUMER_THERE, CONSUMER_FAILED };

struct reference {
    UT_hash_handle hh;
    struct list kind_link; /* the kind's own list */
    struct registry *home;
    struct source *source; /* NULL: fixed providers */
    char *key_text;
    struct refkey key; /* into key_text */
    enum reference_state state;
    bool pinned;
    bool watched;  /* false while an unknown name is looked up once */
    bool had_list; /* of the registry */
    uint64_t created_wall_ms;
    uint64_t created_ms;
    uint64_t last_used_ms;
    uint64_t last_used_wall_ms;
    uint64_t last_change_wall_ms;
    uint64_t grace_until_ms; /* unlisted providers leave then; 0 = not set */
    unsigned subscribes;
    int64_t czxid;
    struct directory *directory;
    struct str *fixed_urls; /* without a source */
    size_t n_fixed_urls;
    uint64_t waiting_workers; /* bits: who asked and has no answer yet */
    unsigned evict_waiting;   /* answers still to come */
    bool evict_busy;
    uint64_t evict_asked_ms;
    struct reference_event events[EVENTS_KEPT];
    unsigned n_events;
    void *path; /* the kind's: the interface that it belongs to */
    enum consumer_state consumer;
    int64_t consumer_session;
    char *consumer_node; /* name, for the report; NULL = none */
    uint64_t consumer_retry_ms;
    unsigned consumer_tries;
};

struct negative {
    UT_hash_handle hh;
    uint64_t until_ms;
    char key[];
};

struct snapshot_entry {
    UT_hash_handle hh;
    struct arena arena;
    struct str *urls;
    size_t n;
    int64_t czxid;
    uint64_t saved_wall_ms;
    char key[];
};

struct numbers {
    struct counter references[REFERENCE_STATES];
    struct counter subscriptions, evictions, creates, deletes, events, reconnects, expired;
    struct counter watches, consumer_nodes, saved_wall_ms, writable, connected, disconnected,
        waiting;
};

struct registry {
    pthread_t thread;
    struct ev_loop *loop;
    struct mailbox box;
    ev_async wake;
    ev_timer tick; /* 20 ms */
    struct arena arena;
    struct registry_opts opts;
    struct source *sources;
    size_t n_sources;
    struct mailbox *workers[WORKERS_MAX];
    unsigned n_workers;
    struct reference *by_key;
    size_t n_references;
    struct negative *negatives;
    size_t n_negatives;
    struct snapshot_entry *snapshot;
    struct resolver *resolver;
    unsigned n_lookups;
    unsigned lookups_this_second;
    uint64_t second_ms;
    uint64_t dirty_since_ms; /* the saved list is older than this; 0 = current */
    uint64_t generation;
    uint64_t last_evict_ms;
    uint64_t last_resolve_ms;
    bool unwritable_told;
    bool stopping;
    struct numbers numbers;
};

/* ---- reference.c ---- */
struct reference *reference_new(struct registry *r, const struct refkey *k, struct source *source);
/* Unsubscribes and frees; tells the workers when `tell`. */
void reference_free(struct reference *ref, bool tell);
/* The only place that changes a state. */
void reference_enter(struct reference *ref, enum reference_state to);
void reference_event(struct reference *ref, const char *fmt, ...) PRINTF_LIKE(2, 3);
void reference_subscribe(struct reference *ref);
/* A list was read.  May free the reference (an unknown name without providers). */
void reference_on_list(struct reference *ref, const struct list_report *l);
void reference_on_error(struct reference *ref, const char *why);
void reference_use_fixed(struct reference *ref);
void reference_use_snapshot(struct reference *ref);
/* Answers those who wait. */
void reference_refuse(struct reference *ref, enum registry_refusal why);
void reference_tick(struct reference *ref, uint64_t now_ms);
const char *reference_state_name(enum reference_state s);

/* ---- publication (registry.c) ---- */
void registry_publish(struct registry *r, struct reference *ref, struct directory *d);
void registry_send(struct registry *r, unsigned worker, enum registry_mail_kind kind,
                   const char *key, struct directory *d, enum registry_refusal refusal);
void registry_remember_unknown(struct registry *r, const char *key);
void registry_mark_dirty(struct registry *r);
/* A post that will not be run any more. */
void registry_free_post(struct registry_post *p);

/* ---- snapshot.c ---- */
void snapshot_load(struct registry *r);
void snapshot_free(struct registry *r);
void snapshot_save(struct registry *r);

/* ---- judge.c ---- */
/*
 * What a new list means for the providers known so far (docs/REGISTRY.md section 9.4): appends to `out` those
 * of `old` that are not in the list but stay as unlisted.  `keep_ms`: for how long, UINT64_MAX = until they
 * are listed again.
 */
size_t judge_list(const struct directory *old, const struct provider *now, size_t n_now,
                  bool same_node, uint64_t grace_ms, struct provider *out, uint64_t *keep_ms);

/* ---- report.c ---- */
void report_references_json(const struct registry *r, struct buf *out);
void report_registries_json(const struct registry *r, struct buf *out);
