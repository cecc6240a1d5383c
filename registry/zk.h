/*
 * ZooKeeper as a registry kind: what its files share.
 *
 *   kind_zookeeper.c          the handle: addresses, session, replacement
 *   kind_zookeeper_paths.c    reads and watches, one per interface
 *   kind_zookeeper_consumer.c our consumer nodes
 *
 * The client library runs two threads of its own.  Its callbacks copy what they got into the operation and
 * post it to the registry thread; nothing else happens there (docs/REGISTRY.md section 9).
 */
#pragma once

#include <zookeeper/zookeeper.h>

#include "registry/core.h"

struct zk;

/* One asynchronous call.  Owned by the registry thread but for the time in the library. */
struct zk_op {
    struct registry_post post; /* first member */
    struct list link;          /* zk->ops */
    struct zk *zk;
    unsigned generation; /* of the handle: answers of an older one are dropped */
    void (*done)(struct zk_op *op);
    void *target; /* memory that the library uses while the call runs; freed with the operation */
    char *key;    /* of a path or reference: looked up again, it may be gone */
    int step;     /* of a consumer node */
    int rc;
    int64_t czxid;
    int64_t owner;
    int32_t version;
    char **names; /* children, percent-decoded once by nobody: as they are */
    size_t n_names;
};

/* An interface under the root: one read, one watch, any number of references. */
struct zk_path {
    UT_hash_handle hh;
    struct zk *zk;
    struct list references; /* reference.kind_link */
    char *path;             /* /dubbo/IFACE/providers */
    bool in_flight;
    bool dirty;      /* must be read */
    bool had_answer; /* from this or an earlier session */
    uint64_t last_read_ms;
    uint64_t not_before_ms; /* pacing after a new session */
    int64_t czxid;
    size_t watch_bytes; /* what it adds to the watches of the handle */
    char interface[];
};

struct zk {
    struct source *source;
    zhandle_t *handle;
    unsigned generation;
    struct list ops;
    unsigned n_ops;
    struct zk_path *paths; /* by interface */
    struct str hosts;      /* HOST:PORT,… as configured, in home->arena */
    bool connected;
    bool ever_connected;
    int64_t session;
    uint64_t opened_ms;       /* of the handle */
    uint64_t disconnected_ms; /* since when there is no connection */
    uint64_t retry_at_ms;     /* no handle: try again then */
    unsigned failures;        /* handles in a row that never connected */
    unsigned connects;        /* in the last 10 s, without a good answer between */
    uint64_t connects_since_ms;
    int64_t root_czxid;
    bool root_changed; /* the tree is another one than before */
    char server[64];
    char consumer_ip[64]; /* fixed at the first session */
};

struct zk_op *zk_op_new(struct zk *z, void (*done)(struct zk_op *op));
void zk_op_sent(struct zk_op *op, int rc); /* rc of the zoo_a… call: not ZOK = it never left */
void zk_on_strings(int rc, const struct String_vector *v, const struct Stat *stat,
                   const void *data);
void zk_on_stat(int rc, const struct Stat *stat, const void *data);
void zk_on_string(int rc, const char *value, const void *data);
void zk_on_void(int rc, const void *data);
/* The one watcher of every watch. */
void zk_watcher(zhandle_t *h, int type, int state, const char *path, void *ctx);

/* ---- paths ---- */
void zk_watch(void *kind, struct reference *r);
void zk_unwatch(void *kind, struct reference *r);
void zk_refresh(void *kind, struct reference *r);
void zk_paths_tick(struct zk *z, uint64_t now_ms);
void zk_paths_event(struct zk *z, const char *path);
/* A new session: everything is read again, paced. */
void zk_paths_read_again(struct zk *z);
void zk_paths_lost(struct zk *z);
void zk_paths_free(struct zk *z);

/* ---- consumer nodes ---- */
void zk_publish(void *kind, struct reference *r);
void zk_unpublish(void *kind, struct reference *r);
void zk_consumer_new_session(struct zk *z);
void zk_consumer_tick(struct zk *z, uint64_t now_ms);
