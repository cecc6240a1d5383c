/*
 * The table of ways to learn about providers.  A kind reports only "the list of an interface is now this"
 * and "connected" or "lost"; when to subscribe, what an empty list means and whether anything may be
 * written is decided in reference.c, once for all kinds.
 *
 * Everything here runs in the registry thread.  A new kind is one file and one row in kind.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"
#include "base/mailbox.h"
#include "base/str.h"
#include "registry/registry.h"
#include "registry/store.h"

struct ruleset;
struct reference;
struct registry;
struct registry_kind;

/* One registry of the configuration, or the place of the fixed lists. */
struct source {
    struct registry *home;
    struct registry_conf conf; /* texts live as long as `home` */
    const struct registry_kind *kind;
    void *impl; /* the kind's own */
    bool connected;
    uint64_t changed_ms; /* when `connected` changed */
    struct store_registry
        known; /* from the last run; kept current by the kind, saved with the lists */
};
/* A kind tells with this; nothing else changes source.connected. */
void source_set_connected(struct source *s, bool connected) NONNULL;

/* What a read gave. */
struct list_report {
    const struct str *urls; /* decoded provider URLs; valid during the call */
    size_t n;
    bool saved;    /* of the last run */
    bool exists;   /* the registry knows the interface's provider list, maybe an empty one */
    int64_t czxid; /* tells a list that was made anew from the one known before; 0 = cannot tell */
    bool rolled_back;            /* the list is older than one that was read before */
    const struct ruleset *rules; /* for the reference that is told; NULL = none */
    struct str consumer_ip;      /* ours, which rules may name */
    /* Behind the first `n_interface` URLs are those of applications' instances. */
    size_t n_interface;
    bool apps_exist; /* as `exists` and `czxid`, of what says which applications these are */
    int64_t apps_czxid;
};

/* An instance that must be asked; texts are copied. */
struct metadata_question {
    union address addr;
    const char *app;
    const char *revision;
};

struct registry_kind {
    const char *scheme;
    /* The operator wrote the list: it is believed as it stands, to any address, and is not saved. */
    bool fixed;
    /* Starts connecting; never fails because nobody answers.  NULL: the address is malformed. */
    void *(*open)(struct source *s, struct err *e);
    /* No reference of this source is left.  May take some seconds. */
    void (*close)(void *kind);
    /* Reads the list of the reference's interface and, with `watched`, reads it again whenever it changes.
     * Again for the same reference: reads once more, now with its `watched`.  Answers by reference_on_list
     * or reference_on_error, also before it returns. */
    void (*watch)(void *kind, struct reference *ref);
    /* Stops that; harmless for one that was never watched. */
    void (*unwatch)(void *kind, struct reference *ref);
    void (*refresh)(void *kind, struct reference *ref);
    /* Wants our consumer node to stand: asked after every list with providers, written once per session. */
    void (*publish)(void *kind, struct reference *ref);
    void (*unpublish)(void *kind, struct reference *ref);
    /* The name of that node, when it stands; else nothing. */
    void (*node_name)(const struct reference *ref, struct buf *out);
    /* Reads what `application`, which has a provider like `p` in the list, published of the reference's service.  Answers
     * by reference_on_definition, never before it returns; a lost session answers nothing.  False: not now, or there
     * can be none.  NULL: this kind has none. */
    bool (*describe)(void *kind, struct reference *ref, const struct provider *p);
    /* The applications that the reference's interface has in the registry, with commas.  May be NULL. */
    void (*print_apps)(const struct reference *ref, struct buf *out);
    /* Puts what is known of revisions of applications into the saved lists; false: not all of it.  May be NULL. */
    bool (*save)(const void *kind, struct store_writer *w);
    /* The same for published rules.  May be NULL. */
    bool (*save_rules)(const void *kind, struct store_writer *w);
    /* Rules for a reference that has no list yet and whose providers, `n` of the last run, are `v`: those of that run, as
     * long as the registry has not been read.  `own_ip` as in a list_report.  NULL: this kind has none. */
    void (*rules)(void *kind, struct reference *ref, const struct provider *v, size_t n,
                  struct ruleset *out, struct str *own_ip);
    /* Adds to `list` which published rules that concern the reference are not obeyed as they stand, and why.  May be NULL. */
    void (*bad_rules)(const void *kind, const struct reference *ref, json_t *list);
    /* The answer to a metadata_question; p == NULL: none.  May be NULL. */
    void (*on_metadata)(void *kind, const char *app, const char *revision, struct str json);
    /* True: there is work for the next tick. */
    bool (*tick)(void *kind, uint64_t now_ms);
    /* Adds members to the registry's entry of the report: state, server, … */
    void (*report)(const void *kind, json_t *into);
    /* Can this address be used at all?  Asks nobody. */
    bool (*check)(const char *address, struct err *e);
};

extern const struct registry_kind registry_kind_static;
extern const struct registry_kind registry_kind_zookeeper;

/* By the scheme of an address; NULL when there is none. */
const struct registry_kind *registry_kind_find(struct str address);

/* Mail of a kind to the registry thread: `run` is called there and frees it. */
struct registry_post {
    struct mail mail; /* first member */
    void (*run)(struct registry_post *p);
};
