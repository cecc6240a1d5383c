/*
 * Application-level discovery in ZooKeeper (docs/REGISTRY.md section 6): what its files share.
 *
 *   kind_zookeeper_mapping.c    which applications an interface has, and what they add to its list
 *   kind_zookeeper_apps.c       applications and their instances: reads and watches, shared by all interfaces
 *   kind_zookeeper_revision.c   what a revision of an application exports: read once.  It is in the saved lists too, and is
 *                               kept for a while after its last instance: who published it does so at its start only, and
 *                               a registry that lost its data gets the instance back without it
 *
 * A change reads the lists of the interfaces concerned again (zk_path_read).  What could not be read leaves what
 * was known before: an instance serves with its last known revision until the new one is known.
 *
 * Registry thread only.
 */
#pragma once

#include "registry/instance.h"
#include "registry/zk.h"

enum {
    APPS_MAX = 4096,     /* per registry */
    APP_IDLE_MS = 60000, /* an application that nobody uses any more is forgotten after */
    APP_SETTLE_MS = 200, /* changes are told together, but not later */
    APP_HOLD_MS = 2000,  /* a first list waits so long for its applications */
    METADATA_AGAIN_MS = 10000,
    REVISIONS_KEPT = 4, /* per application, that no instance has */
};

struct zk_app {
    UT_hash_handle hh; /* zk->apps */
    struct zk *zk;
    struct zk_session *session;
    struct list link;      /* session->apps */
    struct list reading;   /* session->app_reads: its instances must be listed */
    struct list uses;      /* zk_use.of_app */
    struct list revisions; /* zk_revision.link; those without instances: longest unused first */
    unsigned n_unused;     /* of them */
    struct zk_instance *instances;
    size_t bytes;      /* of its path in a packet of watches */
    unsigned n_reads;  /* in flight */
    unsigned n_queued; /* instances that must be read */
    unsigned n_asking; /* revisions being read */
    uint32_t n_listed; /* instances in the last list */
    uint64_t next_read_ms;
    uint64_t not_before_ms;
    uint64_t unused_since_ms; /* 0 = used */
    uint64_t changed_ms;      /* and not told yet; 0 = nothing to tell */
    bool in_flight;
    bool watch_set;
    bool known;        /* listed in this session */
    bool settled_once; /* all of it was known at some time */
    char *path;        /* behind `name` */
    char name[];
};

/* An interface has an application. */
struct zk_use {
    struct list of_app;
    struct list of_path;
    struct zk_app *app;
    struct zk_path *path;
    bool mapped; /* the mapping says so */
    bool given;  /* the configuration says so */
};

struct zk_instance {
    UT_hash_handle hh; /* app->instances */
    struct zk_app *app;
    struct zk_session *session;  /* which has room for its watch */
    struct list link;            /* session->instances */
    struct list queue;           /* session->instance_reads */
    struct instance *v;          /* NULL until it was read */
    struct zk_revision *wanted;  /* counted */
    struct zk_revision *serving; /* counted; the last known one */
    size_t bytes;
    bool in_flight;
    bool watch_set;
    bool listed; /* while a list is compared */
    char name[];
};

struct zk_revision {
    struct list link; /* app->revisions */
    struct zk_app *app;
    unsigned users;
    struct arena arena;
    struct app_metadata services;
    bool remote;
    bool known;
    bool failed; /* references were told so */
    bool asking;
    unsigned n_asked; /* instances that were asked in this round */
    uint64_t retry_at_ms;
    char revision[];
};

/* ---- applications ---- */
struct zk_app *zk_app_find(struct zk *z, struct str name);
/* NULL: there are too many. */
struct zk_app *zk_app_get(struct zk *z, struct str name);
/* The last use has gone. */
void zk_app_idle(struct zk_app *app);
/* Has everything been read that can be read now? */
bool zk_app_settled(const struct zk_app *app);
/* Its interfaces must see it. */
void zk_app_changed(struct zk_app *app);
/* After every answer: tells, when nothing more is under way. */
void zk_app_answered(struct zk_app *app);
/* Everything that waits to be read on this session and may be. */
void zk_apps_read(struct zk_session *s);

/* ---- revisions ---- */
/* Counted. */
struct zk_revision *zk_revision_get(struct zk_app *app, struct str revision, bool remote);
void zk_revision_put(struct zk_revision *r); /* NULL is fine */
/* What was saved of a new application. */
void zk_revisions_restore(struct zk_app *app);
void zk_revisions_free(struct zk_app *app);
/* Those that have to be asked for (again); for the tick and after a change. */
void zk_revisions_ask(struct zk_app *app, uint64_t now_ms);
/* The session is gone: questions to it get no answer. */
void zk_revisions_lost(struct zk_app *app);
/* Instances take over what has become known. */
void zk_instances_settle(struct zk_app *app);

/* ---- mapping ---- */
/* The interfaces of the application are read again. */
void zk_app_tell(struct zk_app *app);
