/*
 * The registry thread: all references of the process, their subscriptions, and the rule that a request
 * never causes a registry write (docs/ARCHITECTURE.md, docs/REGISTRY.md).
 *
 * One thread owns everything.  Others talk to it by the functions below, which only post mail, and hear
 * from it by mail in their own mailbox.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mailbox.h"
#include "registry/definition.h"
#include "registry/directory.h"
#include "registry/network.h"
#include "registry/refkey.h"
#include "registry/url.h"

struct registry;
struct source;

/* Where providers are looked for (docs/REGISTRY.md section 6). */
enum discovery {
    DISCOVERY_INHERIT = 0, /* of a service: as its registry; of a registry: both places */
    DISCOVERY_AUTO,        /* both places, one provider per identity */
    DISCOVERY_INTERFACE,   /* ROOT/IFACE/providers */
    DISCOVERY_APPLICATION, /* the instances of applications */
};

/* One registry of the configuration; texts must live as long as the registry. */
struct registry_conf {
    const char *name;
    const char *address;     /* zookeeper://h1:2181?backup=h2:2181,h3:2181 */
    const char *root;        /* "/dubbo" */
    const char *config_root; /* "/dubbo/config/dubbo": where rules of 2.7 and 3.x are */
    const char *chroot;      /* "/prod": everything is below it; NULL or "" = nothing */
    uint32_t session_timeout_ms;
    uint32_t connect_timeout_ms;
    bool register_consumer;
    bool telnet_methods; /* ask providers of 2.6 for the methods that nobody published */
    enum discovery discovery;
    uint64_t snapshot_max_age_ms; /* 0 = never too old */
    const struct network
        *provider_networks; /* none: everything but link-local, metadata, 0.0.0.0, multicast */
    size_t n_provider_networks;
};

struct registry_opts {
    const struct registry_conf *registries;
    size_t n_registries;
    const char *state_dir; /* NULL or "": nothing is saved */
    const char *application;
    const char *consumer_address; /* "auto" or an IP address */
    const char *consumer_instance;
    const struct url_param *consumer_parameters;
    size_t n_consumer_parameters;
    size_t max_references;      /* limits.references */
    uint32_t reference_idle_ms; /* limits.reference_idle */
    size_t watch_bytes;         /* of watched paths per session; 0 = what a server takes for sure */
    struct mailbox *control;    /* gets REGISTRY_MAIL_STATUS; may be NULL */
};

/* Can registry_start take this address?  False with a sentence; asks nobody. */
bool registry_check_address(const char *address, struct err *e) NONNULL MUST_CHECK;

/* A reference that the configuration names: pinned, watched even when empty. */
struct wanted_service {
    struct refkey key;
    const char *registry;   /* name; NULL with fixed providers */
    const struct str *urls; /* fixed providers (dubbo://…) */
    size_t n_urls;
    enum discovery discovery;
    struct str provided_by; /* applications that have it whatever the mapping says, with commas */
};

enum reference_state {
    REFERENCE_WANTED,   /* asked for, nothing read yet */
    REFERENCE_READING,  /* first read is under way */
    REFERENCE_READY,    /* list read, at least one provider (may be unlisted ones) */
    REFERENCE_EMPTY,    /* the registry says: none */
    REFERENCE_SNAPSHOT, /* serves the saved list, registry not heard yet */
    REFERENCE_FAILED,   /* the registry refused; tried again with back-off */
    REFERENCE_LEAVING,  /* evicted: unsubscribes */
    REFERENCE_STATES,   /* must stay last */
};

/* Mail to a worker's box.  The receiver frees it with registry_mail_free (which puts `directory`). */
enum registry_mail_kind {
    REGISTRY_MAIL_DIRECTORY, /* new list for `key`; directory may have n == 0 */
    REGISTRY_MAIL_DEFINITIONS, /* what is known of the methods of `key`; `definitions` NULL = nothing.  Behind the
                                  first list whose mail said that they follow, and after each change */
    REGISTRY_MAIL_REFUSED, /* no reference for `key`: `refusal` says why; valid for this request only */
    REGISTRY_MAIL_EVICT,  /* is `key` idle with you?  answer with registry_evict_answer */
    REGISTRY_MAIL_GONE,   /* `key` was evicted: drop what you hold of it */
    REGISTRY_MAIL_REPORT, /* answer to registry_report: `report` holds JSON */
    REGISTRY_MAIL_STATUS, /* readiness changed: look at registry_numbers */
    REGISTRY_MAIL_ASK,    /* `ask` wants to know what an instance exports */
    REGISTRY_MAIL_TELNET, /* `telnet` wants to know the methods of a provider of 2.6 */
};

enum registry_refusal {
    REFUSAL_NONE = 0,
    REFUSAL_UNKNOWN,  /* the registry has no such interface: 503 NO_PROVIDER */
    REFUSAL_LIMIT,    /* all references busy, or too many look-ups: 503 REFERENCE_LIMIT */
    REFUSAL_STARTING, /* no list yet from anywhere and the registry does not answer: 503 STARTING */
};

/* What does the instance at `addr` export?  Answered with registry_metadata. */
struct metadata_ask {
    union address addr;
    const struct source *source; /* the registry thread's */
    const char *app;
    const char *revision;
};

/* What methods has the interface at `addr`, which is of 2.6?  Answered with registry_telnet. */
struct telnet_ask {
    union address addr;
    const char *key; /* refkey_print form of the reference that wants to know */
    const char *application;
    const char *interface; /* a Java name, which can be a part of a command */
    struct err why;        /* of no answer */
};

struct registry_mail {
    struct mail mail; /* first member */
    enum registry_mail_kind kind;
    enum registry_refusal refusal;
    char *key_text; /* refkey_print form, NUL-terminated, owned by the mail */
    struct directory *directory;
    bool definitions_follow; /* with a directory: they are being read */
    struct definitions *definitions;
    void *cookie; /* of registry_report */
    struct buf report;
    struct metadata_ask *ask; /* owned by the mail until it is taken out; `telnet` too */
    struct telnet_ask *telnet;
};
void registry_mail_free(struct registry_mail *m) NONNULL;

/* Starts the thread.  Never fails because a registry is down or a name does not resolve. */
struct registry *registry_start(const struct registry_opts *opts, struct err *e) NONNULL MUST_CHECK;
/* Ends the sessions (ephemeral nodes vanish), saves the lists, joins the thread, frees all. */
void registry_stop(struct registry *r) NONNULL;

/* Every box gets every directory mail; call for each worker before the first want. */
void registry_add_worker(struct registry *r, struct mailbox *box) NONNULL;

/* The configured services, whole list; again after a reload: kept ones are not touched, new ones are
 * subscribed, missing ones become ordinary (evictable) references. */
void registry_configure(struct registry *r, const struct wanted_service *services, size_t n)
    __attribute__((nonnull(1)));

/*
 * A worker asks for a reference on behalf of a request (direct form or a service without preload).  The
 * answer is one REGISTRY_MAIL_DIRECTORY or REGISTRY_MAIL_REFUSED to `box`.  `registry` names one, NULL =
 * the only one.  Single flight: any number of wants for a key make one subscription.
 */
void registry_want(struct registry *r, const struct refkey *k, const char *registry,
                   struct mailbox *box) __attribute__((nonnull(1, 2, 4)));

/* Which keys were used since the last report of this box (once a second; for the least recently used
 * order).  `keys` = refkey_print texts separated by '\n'. */
void registry_touch(struct registry *r, struct mailbox *box, struct str keys)
    __attribute__((nonnull(1, 2)));
void registry_evict_answer(struct registry *r, struct mailbox *box, struct str key_text, bool idle)
    __attribute__((nonnull(1, 2)));

/* `d` is a directory that the worker got for `key_text`: it has no connection to those of its unlisted
 * providers whose index is in `lost`, so it does not use them.  Who is lost to every worker leaves the list. */
void registry_unlisted_lost(struct registry *r, struct mailbox *box, struct str key_text,
                            struct directory *d, const size_t *lost, size_t n) NONNULL;

/* A provider does not know a method as the definitions have it: they are read again, if that was not just done. */
void registry_describe(struct registry *r, struct str key_text) __attribute__((nonnull(1)));
/* The answer to REGISTRY_MAIL_ASK, which takes `ask` over: the JSON text of the provider's MetadataInfo; p == NULL: it did
 * not answer. */
void registry_metadata(struct registry *r, struct metadata_ask *ask, struct str json)
    __attribute__((nonnull(1, 2)));

/* The answer to REGISTRY_MAIL_TELNET, which takes `ask` over: the text up to and with its prompt; p == NULL: there was
 * none, and ask->why is the reason. */
void registry_telnet(struct registry *r, struct telnet_ask *ask, struct str text)
    __attribute__((nonnull(1, 2)));

/* Reads the list of one reference again. */
void registry_refresh(struct registry *r, struct str key_text) __attribute__((nonnull(1)));

/* What the admin interface shows; the answer comes as REGISTRY_MAIL_REPORT.  A reference has the members of
 * docs/OPERATIONS.md section 4.1, providers.list (address, state: listed, unlisted or why it is not usable,
 * weight, release, application) and events (the last 20: time, text). */
enum registry_report_kind {
    REGISTRY_REPORT_REFERENCES, /* {"count":…,"limit":…,"references":[…]}, docs/OPERATIONS.md section 4.1,
                                   without the worker's numbers (in_flight, calls, errors) */
    REGISTRY_REPORT_REGISTRIES, /* [{…}] */
};
void registry_report(struct registry *r, enum registry_report_kind kind, struct mailbox *box,
                     void *cookie) __attribute__((nonnull(1, 3)));
/* REGISTRY_REPORT_REFERENCES with at most the one of this key, and all that is known of its methods and their types. */
void registry_report_reference(struct registry *r, struct str key_text, struct mailbox *box,
                               void *cookie) __attribute__((nonnull(1, 3)));

/* Counters for metrics; any thread. */
struct registry_numbers {
    uint64_t references[REFERENCE_STATES];
    uint64_t subscriptions_total;
    uint64_t evictions_total;
    uint64_t writes_create_total;
    uint64_t writes_delete_total;
    uint64_t events_total;
    uint64_t reconnects_total;
    uint64_t sessions_expired_total;
    uint64_t watches;
    uint64_t consumer_nodes;
    uint64_t snapshot_saved_wall_ms; /* 0 = never */
    bool snapshot_writable;
    uint32_t connected;    /* registries with a session now */
    uint32_t disconnected; /* registries without */
    uint32_t waiting;      /* pinned references without any list */
    uint32_t bad_rules;    /* published rules that are not obeyed as they stand */
};
void registry_numbers(const struct registry *r, struct registry_numbers *out) NONNULL;
