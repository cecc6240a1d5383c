/*
 * ZooKeeper as a registry kind: what its files share.
 *
 *   kind_zookeeper.c            the row of the table; the client library's log
 *   kind_zookeeper_session.c    handles: opening, losing, replacing, closing
 *   kind_zookeeper_op.c         asynchronous calls and their answers
 *   kind_zookeeper_hosts.c      server addresses, our own address
 *   kind_zookeeper_paths.c      the nodes of an interface: reads and watches
 *   kind_zookeeper_rules.c      rules among them: configurators and routers
 *   kind_zookeeper_config.c     rules of 2.7 and 3.x: configuration nodes
 *   kind_zookeeper_metadata.c   what providers publish of their methods
 *   kind_zookeeper_consumer.c   our consumer nodes
 *   kind_zookeeper_acl.c        who may do what with them
 *   zk_apps.h                   applications and their instances
 *
 * The client library runs two threads per handle.  Its callbacks copy what they got and post it to the
 * registry thread; nothing else happens there.  Only asynchronous calls are used.  All structs belong to the
 * registry thread; an operation is with the library until its answer comes as mail (docs/ROBUSTNESS.md
 * section 3, docs/REGISTRY.md section 9).
 */
#pragma once

#include <zookeeper/zookeeper.h>

#include "base/hash.h"
#include "base/list.h"
#include "registry/core.h"
#include "registry/rules.h"

enum {
    ZK_PORT = 2181,
    ZK_HOSTS_MAX = 32,
    /* All watches of a handle are set again in one packet; above 1 MiB the server cuts every connection. */
    ZK_WATCH_BYTES = 700000,
    ZK_DATA_MAX = 4 << 20, /* bytes of a node */
    ZK_DRAIN_MS = 2000,    /* calls in flight are waited for so long before a handle is closed */
};

/* One handle of the client library; the watcher's context. */
struct zk_handle {
    struct zk_session *session; /* this and the next are set before the library knows us */
    unsigned generation;
    zhandle_t *h;
    struct list ops;
    unsigned n_ops; /* in flight, or answered and still in the mailbox */
    bool closed;
    uint64_t close_by_ms;
    struct list link; /* session->closing */
};

/* One session at a time and the interfaces it watches.  A registry has one; more when the watches do not fit
 * into one. */
struct zk_session {
    struct zk *zk;
    struct list link;         /* zk->sessions */
    struct zk_handle *handle; /* NULL: waits for retry_at_ms */
    struct list closing;      /* handles on their way out */
    unsigned generation;
    bool connected;
    bool ever_connected;
    int64_t id;
    uint32_t timeout_ms; /* as agreed with the server, before that as asked for */
    char server[64];
    uint64_t started_ms;      /* of the session */
    uint64_t disconnected_ms; /* since when there is no connection */
    uint64_t told_ms;         /* when that was logged last */
    bool told_silence;        /* that it never answered */
    uint64_t retry_at_ms;
    unsigned failures; /* handles in a row that gave no answer */
    unsigned connects; /* since connects_since_ms, without an answer between */
    uint64_t connects_since_ms;

    struct list paths; /* zk_path.link */
    struct list dirty; /* zk_path.dirty */
    size_t watch_bytes;

    struct list apps;           /* zk_app.link */
    struct list app_reads;      /* zk_app.reading */
    struct list instances;      /* zk_instance.link */
    struct list instance_reads; /* zk_instance.queue */

    struct list publish;  /* zk_ref.queue: nodes to be written */
    struct list retry;    /* zk_ref.queue: failed ones */
    struct list standing; /* zk_ref.queue: written ones, longest unchecked first */
    uint64_t budget;      /* nodes that may be written now */
    uint64_t budget_ms;
};

/* Rules of 2.7 and 3.x. */
struct zk_config {
    struct zk_config_node *nodes; /* by name */
    struct zk_config_app *apps;   /* by name: whose rules concern us */
    struct list dirty;            /* zk_config_node.dirty */
    unsigned n_in_flight;         /* reads of nodes */
    unsigned n_unknown;           /* nodes that concern us and were not read yet */
    bool ready;                   /* a read of the directory was answered once */
    bool read;                    /* with what is in it */
    char *bad;                    /* why it cannot be read as it stands; NULL = it was */
    bool in_flight;               /* a read of the directory */
    bool watch_set;               /* of the directory */
    bool any_held;                /* some zk_path.held */
    uint64_t not_before_ms;
};

struct zk {
    struct source *source;
    struct str hosts; /* HOST:PORT,… as configured, in home->arena */
    struct str auth;  /* USER:PASSWORD, or nothing */
    char *shown;      /* the address without that */
    struct list sessions;
    struct zk_path *paths; /* by interface */
    struct zk_config config;
    struct zk_app *apps;  /* by name */
    char consumer_ip[64]; /* fixed at the first session */
    bool new_tree;        /* the root was made anew while we knew it */
};

/* The nodes of an interface: ROOT/IFACE itself, which shows what there is below it, and its categories, in the
 * order in which they are read: no list is used without the rules beside it. */
enum zk_category { ZK_SELF, ZK_CONFIGURATORS, ZK_ROUTERS, ZK_PROVIDERS, ZK_CATEGORIES };

/* Children of one of them.  With its watch set, what was read of it is current. */
struct zk_node {
    bool exists;
    bool in_flight;
    bool watch_set;
};

/* ROOT/mapping/IFACE: which applications have the interface. */
struct zk_mapping {
    struct list uses; /* zk_use.of_path */
    int64_t czxid;    /* of the node; 0 = there is none */
    uint64_t held_ms; /* since when its first list waits, or waited, for applications; 0 = never */
    bool in_flight;
    bool known; /* read in this session, and no event since */
    bool watch_set;
};

/* Published rules that are not obeyed: those two sets, and of applications. */
enum { ZK_BAD_CONFIGURATORS, ZK_BAD_ROUTERS, ZK_BAD_APPS, ZK_BAD_RULES };

/* An interface: one read and watch of each of its nodes, any number of references. */
struct zk_path {
    UT_hash_handle hh;
    struct zk_session *session;
    struct list link;        /* session->paths */
    struct list dirty;       /* session->dirty: must be read */
    struct list refs;        /* zk_ref.link */
    size_t bytes;            /* of its nodes in a packet of watches */
    uint64_t next_read_ms;   /* the pace of changes; 0 = at once */
    uint64_t not_before_ms;  /* after an error, or held */
    int64_t pzxid;           /* of the last list of providers */
    struct rules *rules[2];  /* of its configurators and its routers; NULL: none */
    char *bad[ZK_BAD_RULES]; /* why some of these are not obeyed; NULL = they are */
    struct zk_mapping mapping;
    unsigned failures;
    uint32_t n_listed; /* nodes in it */
    struct zk_node node[ZK_CATEGORIES];
    bool reading;    /* from the first node to the last */
    bool held;       /* a list came before the rules that concern it */
    bool delivering; /* its references are being told: not to be freed */
    bool saved;      /* one of its references has a saved list */
    char interface[];
};

enum node_state { NODE_NONE, NODE_QUEUED, NODE_WRITING, NODE_STANDING, NODE_RETRY };

/* What this kind keeps for a reference. */
struct zk_ref {
    struct reference *ref;
    struct zk_path *path;
    struct list link;  /* path->refs */
    struct list queue; /* one of the session's three */
    enum node_state node;
    struct ACL_vector acl; /* of the next node to be created; none: open to all */
    unsigned tries;
    uint64_t due_ms; /* of a retry or a check */
};

/* ---- operations ---- */
struct zk_op;

/* Why it failed, in words. */
const char *zk_why(const struct zk_op *op) NONNULL MUST_CHECK;
/* A storm of changes is read at this pace, the first change at once: 100 ms, of 10,000 nodes 250 ms, and up to a quarter
 * more, so that many gateways do not ask in the same moment (docs/REGISTRY.md section 9). */
uint64_t zk_read_apart_ms(size_t n_nodes, uint64_t now_ms);

struct zk_op {
    struct registry_post post; /* first member */
    struct list link;          /* handle->ops */
    struct zk_handle *handle;
    bool answered;  /* the mail is under way */
    bool too_large; /* ours to refuse: rc is then ZMARSHALLINGERROR */
    void (*done)(struct zk_session *s, struct zk_op *op);
    int step;
    bool watch;
    size_t max_names; /* more children are refused; 0 = STORE_URLS_MAX */
    char *key;        /* interface or reference: looked up again, it may be gone */
    char *path;       /* the node */
    void *memory;     /* that the library uses meanwhile */
    int rc;
    struct Stat stat;
    char **names; /* children */
    size_t n_names;
    char *data; /* of the node, NUL-terminated */
    size_t n_data;
    struct ACL_vector acl;
};
/* `key` and `path` are copied.  The session must have a handle. */
struct zk_op *zk_op_new(struct zk_session *s, const char *key, const char *path,
                        void (*done)(struct zk_session *s, struct zk_op *op)) MUST_CHECK;
/* With the result of the zoo_a… call: other than ZOK = it never left and is answered with that. */
void zk_op_sent(struct zk_op *op, int rc);
void zk_op_free(struct zk_op *op);
void zk_on_strings(int rc, const struct String_vector *v, const struct Stat *stat,
                   const void *data);
void zk_on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data);
void zk_on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data);
void zk_on_stat(int rc, const struct Stat *stat, const void *data);
void zk_on_string(int rc, const char *value, const void *data);
void zk_on_void(int rc, const void *data);
/* The connection or the session went: says nothing about the node. */
bool zk_is_lost(int rc);

/* ---- sessions ---- */
/* The one watcher of every watch; `ctx` is the zk_handle. */
void zk_watcher(zhandle_t *h, int type, int state, const char *path, void *ctx);
struct zk_session *zk_session_new(struct zk *z);
/* An answer that shows a working connection. */
void zk_session_works(struct zk_session *s);
bool zk_session_tick(struct zk_session *s, uint64_t now_ms);
/* Waits for the calls in flight, closes and frees all of them. */
void zk_sessions_close(struct zk *z);
static inline bool zk_can_send(const struct zk_session *s)
{
    return s->handle != NULL && s->connected;
}
void zk_on_log(const char *line);

/* ---- hosts ---- */
/* zookeeper://USER:PASSWORD@h1:2181?backup=h2:2181,h3:2181, in parts, in the arena */
struct zk_address {
    struct str hosts; /* h1:2181,h2:2181,h3:2181 */
    struct str auth;  /* USER:PASSWORD, or nothing */
};
bool zk_address_of(const char *address, struct arena *a, struct zk_address *out,
                   struct err *e) NONNULL MUST_CHECK;
/* What zk_connect needs beside the servers. */
struct zk_target {
    struct str chroot; /* "/prod", or nothing */
    struct str auth;
    int session_timeout_ms;
    log_callback_fn on_log;
};
/* A handle of the library for a list from zk_resolve_hosts; NULL: no memory, no thread. */
zhandle_t *zk_connect(struct str hosts, const struct zk_target *t, watcher_fn watcher, void *ctx)
    __attribute__((nonnull(2, 3)));
/* Numeric HOST:PORT list for the library; empty when nothing resolves.  The last reason why
 * one is left out stays in `e`. */
void zk_resolve_hosts(struct str hosts, struct resolver *r, struct buf *out, struct err *e)
    __attribute__((nonnull(2, 3, 4)));
/* host:port */
void zk_print_address(const union address *a, char *out, size_t cap);
/* Once: the address that others see us under, on the way to `server` (AF_UNSPEC = not known). */
void zk_find_consumer_ip(struct zk *z, const union address *server);
/* Our own address, before the first session that of the last run; empty = unknown. */
struct str zk_own_ip(const struct zk *z) NONNULL MUST_CHECK;

/* ---- paths ---- */
void zk_watch(void *kind, struct reference *ref);
void zk_unwatch(void *kind, struct reference *ref);
void zk_refresh(void *kind, struct reference *ref);
bool zk_paths_tick(struct zk_session *s, uint64_t now_ms);
void zk_paths_event(struct zk_session *s, const char *path);
/* The handle and its watches are gone: everything is read again, at the pace of the tick. */
void zk_paths_lost(struct zk_session *s);

struct zk_path *zk_path_of(struct zk *z, struct str interface);
bool zk_wants_watch(const struct zk_path *p);
/* Reads what is not current, and the providers, again: now, or at the pace of changes. */
void zk_path_read(struct zk_path *p);
/* Sets `flag` and counts. */
void zk_count_watch(struct zk_session *s, bool *flag, bool on);
/* The first session that has room for so many bytes of watched paths. */
struct zk_session *zk_session_for(struct zk *z, size_t bytes);
void zk_remove_watch(struct zk_session *s, const char *path);

/* ---- rules ---- */
/* The children of a category of rules, answered by `op`, are in force from now on. */
void zk_rules_take(struct zk_path *p, enum zk_category c, const struct zk_op *op);
void zk_rules_none(struct zk_path *p, enum zk_category c);
/* They could not be read: the former ones stay. */
void zk_rules_unread(struct zk_path *p, enum zk_category c, const struct zk_op *op);
/* Those of the last run, until they are read. */
void zk_rules_start(struct zk_path *p);
/* Nobody needs them any more: back to the saved ones, if the list that they are about is still there. */
void zk_rules_end(struct zk_path *p);
bool zk_save_rules(const void *kind, struct store_writer *w);
/* registry_kind.rules */
void zk_rules_of(void *kind, struct reference *ref, const struct provider *v, size_t n,
                 struct ruleset *out, struct str *own_ip);

/* ---- configuration nodes ---- */
/* Applications of providers. */
struct zk_apps {
    struct str v[RULESET_APPS_MAX];
    size_t n;
    bool more; /* than fit */
};
void zk_config_init(struct zk *z);
void zk_config_free(struct zk *z);
bool zk_config_tick(struct zk_session *s, uint64_t now_ms);
/* False: the path is not of a configuration node. */
bool zk_config_event(struct zk_session *s, struct str path);
void zk_config_lost(struct zk_session *s);
/* All rules for a reference of `p` whose providers are of `apps`, those of the interface's own nodes among them.
 * False: some are not read yet. */
bool zk_config_rules(struct zk *z, const struct zk_path *p, const struct refkey *k,
                     const struct zk_apps *apps, struct ruleset *out);
/* Such a list is not handed on; `p` is read again when its rules are there. */
void zk_config_hold(struct zk_path *p);
bool zk_config_save(const struct zk *z, struct store_writer *w);

/* ---- rules that are not obeyed (kind_zookeeper_badrules.c) ---- */
/* Keeps a copy of `why` in `at` and counts; NULL: they are.  True: it was not so before. */
bool zk_bad_note(const struct zk *z, char **at, const char *why) __attribute__((nonnull(1, 2)));
/* Members of an array: all of the registry, for its report. */
void zk_report_rules(const struct zk *z, json_t *into);
/* registry_kind.bad_rules */
void zk_bad_rules(const void *kind, const struct reference *ref, json_t *list);

/* ---- ACLs ---- */
/* Deep copies. */
void zk_acl_copy(const struct ACL_vector *from, struct ACL_vector *to);
void zk_acl_free(struct ACL_vector *acl);
/* What a node is created with whose parent's ACL is `parent` (NULL = it cannot be read). */
void zk_acl_inherit(const struct ACL_vector *parent, struct ACL_vector *out);
const struct ACL_vector *zk_acl_of(const struct zk_ref *zr);

/* ---- metadata ---- */
bool zk_describe(void *kind, struct reference *ref, const struct provider *p);
/* The node of what the provider's application published; false: its names are no levels of a path. */
bool zk_metadata_path(const char *root, const struct provider *p, struct buf *path);
/* ---- applications ---- */
/* Above the instances: with a root of its own they are there too (docs/REGISTRY.md section 0.8). */
const char *zk_services_root(const char *root) NONNULL MUST_CHECK;
void zk_mapping_init(struct zk_path *p);
/* A reference came: it may want applications that the others do not. */
void zk_mapping_on_reference(struct zk_path *p, const struct reference *ref);
void zk_mapping_before_providers(struct zk_path *p);
/* True: the list has come before what its applications say, and is read again when they have said it. */
bool zk_mapping_holds(struct zk_path *p);
/* How many URLs the applications add at most, and these. */
size_t zk_mapping_count(const struct zk_path *p);
void zk_mapping_report(const struct zk_path *p, struct arena *a, struct str *urls,
                       struct list_report *l);
void zk_mapping_event(struct zk_path *p);
void zk_mapping_lost(struct zk_path *p);
void zk_mapping_free(struct zk_path *p);
/* Of the watched path. */
size_t zk_mapping_bytes(const struct zk *z, struct str interface);
/* True: the path was one of applications. */
bool zk_apps_event(struct zk_session *s, const char *path);
bool zk_apps_tick(struct zk_session *s, uint64_t now_ms);
void zk_apps_lost(struct zk_session *s);
void zk_apps_free(struct zk *z);
/* What an instance said when it was asked; p == NULL: nothing. */
void zk_on_metadata(void *kind, const char *app, const char *revision, struct str json);
/* Of all applications, for the saved lists; false: not all fit. */
bool zk_save_revisions(const void *kind, struct store_writer *w);
/* The names of the interface's applications, with commas, for the saved lists. */
void zk_print_apps(const struct reference *ref, struct buf *out);

/* ---- consumer nodes ---- */
void zk_publish(void *kind, struct reference *ref);
void zk_unpublish(void *kind, struct reference *ref);
void zk_node_name(const struct reference *ref, struct buf *out);
bool zk_consumer_tick(struct zk_session *s, uint64_t now_ms);
/* The session is over and its nodes with it. */
void zk_consumer_lost(struct zk_session *s);
