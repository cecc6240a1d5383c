/*
 * This worker's references: the directory of each, its endpoints with their peers, the bytes of a
 * request that do not change from call to call, and the calls that wait for the first list.
 *
 * Finding one is an array index for configured services and one map look-up for the direct form.
 * Nothing here talks to the registry except refs_want and the mail handlers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/stats.h"
#include "registry/registry.h"
#include "gateway/balance_state.h"
#include "gateway/envelope.h"
#include "gateway/peer.h"
#include "gateway/wctx.h"

enum { ENDPOINT_HOLDS_MAX = (1 << 20) - 1, ENDPOINT_FAILURES_MAX = (1 << 14) - 1 };

/* A provider of a reference, with its peer and its part of the attachments.  While calls are in flight it outlives
 * its place in the list. */
struct endpoint {
    const struct provider *provider; /* in the directory of its reference */
    struct peer *peer;               /* NULL when the provider is unusable; counted */
    struct envelope *envelope;       /* counted */
    union {
        uint64_t silent_since_ms;    /* unlisted and not connected; 0 = not */
        struct directory *directory; /* of a retired one: where the provider is; counted */
    };
    uint64_t calls             : 44;
    uint64_t holds             : 20; /* endpoint_hold() */
    uint64_t errors            : 34;
    uint64_t failures_in_a_row : 14;
    uint64_t last_failure      : 8; /* enum outcome; 0 = none yet */
    uint64_t n_loads           : 7;
    uint64_t retired           : 1; /* in no list any more: freed with its last call */
    unsigned in_flight;             /* calls of this reference */
    uint32_t latency_us;            /* moving average, 0 = none yet */
    struct method_load *loads;      /* balance_state.h */
    struct outlier *outlier;        /* outlier.h; NULL = never ejected */
};
/* There are twenty for a reference with ten providers and two workers: eight bytes more are sixteen of malloc's. */
_Static_assert(sizeof(struct endpoint) <= 72, "an endpoint");

struct balancer;

enum ref_state { REF_WAITING, REF_KNOWN, REF_REFUSED };

struct ref {
    char *key_text; /* INTERFACE[:VERSION][@GROUP] */
    struct refkey key;
    enum ref_state state;
    enum registry_refusal refusal; /* in REF_REFUSED */
    unsigned pins;                 /* configurations in use that name it */
    bool gone;                     /* the registry gave it up while it was pinned or in use */
    bool touched;                  /* since the last report to the registry */
    bool methods_wish;             /* the first usable provider has METHOD.loadbalance */
    bool wish_per_method;          /* a balancer that it wishes wants to know of tries */
    unsigned in_flight;
    uint32_t n_prefix; /* bytes of invoke_prefix() */
    struct refs *home;
    struct peer_opts peer_opts;
    struct directory *directory;     /* NULL until the first list */
    struct definitions *definitions; /* what its methods take; NULL = not known */
    uint64_t described_ms;           /* when a call had them read again last */
    struct endpoint **endpoints;     /* one per provider of the directory, same order */
    struct endpoint **usable;        /* those that may be called at all; `endpoints` when all may */
    uint32_t n_endpoints;
    uint32_t n_usable;
    uint32_t n_unlisted;  /* of these */
    uint32_t n_ejected;   /* of these */
    uint32_t n_lost_told; /* unlisted ones that the registry was told to be lost to this worker */
    bool definitions_follow; /* they are being read for the first time */
    uint64_t ejections;
    uint64_t set_version;        /* rises when another endpoint is usable, or one not any more */
    const struct balancer *wish; /* loadbalance of the first usable provider; NULL = none */
    struct balance_state *balance;
    struct list waiting; /* ref_waiter: wait for the first list */
    uint64_t touched_ms; /* last use */
    uint64_t calls;
    uint64_t errors;
    UT_hash_handle hh;
};

/* Embedded in the call while it waits. */
struct ref_waiter {
    struct list link;
    void (*on_list)(struct ref_waiter
                        *w); /* the ref is KNOWN or REFUSED now, its definitions may still follow */
};

static inline struct endpoint *ref_endpoint(const struct ref *r, size_t i)
{
    return r->endpoints[i];
}

/* A call begins and ends at an endpoint. */
void endpoint_begin(struct endpoint *ep) NONNULL;
void endpoint_end(struct endpoint *ep) NONNULL;

/* It stays, whatever leaves the list, until it is released. */
void endpoint_hold(struct endpoint *ep) NONNULL;
void endpoint_release(struct endpoint *ep) NONNULL;

struct refs; /* all of one worker */

struct refs_opts {
    struct registry *registry; /* NULL in tests and for fixed lists handed in by refs_apply */
    struct mailbox *box;       /* the worker's, for registry_want */
    const char *application;   /* attachment remote.application */
    struct peer_opts peer;     /* for references without settings of their own */
};

struct refs *refs_new(struct wctx *w, struct peers *peers,
                      const struct refs_opts *opts) NONNULL MUST_CHECK;
void refs_free(struct refs *rs) NONNULL;

/* The worker's view of `k`; made when it is new.  The registry is asked for it, once per key however many
 * calls wait, unless the reference is configured.  `registry_name` NULL = the only one. */
struct ref *refs_get(struct refs *rs, const struct refkey *k, const char *registry_name)
    __attribute__((nonnull(1, 2))) MUST_CHECK;
/* The same for a configured service: it stays until refs_unpin(), and its list comes unasked. */
struct ref *refs_pin(struct refs *rs, const struct refkey *k) NONNULL MUST_CHECK;
void refs_unpin(struct ref *r) NONNULL;
/* Parks the waiter until the first list; refs_unpark takes it out (deadline). */
void refs_park(struct ref *r, struct ref_waiter *w) NONNULL;
void refs_unpark(struct ref_waiter *w) NONNULL;
/* A call that can use definitions waits for them as for the list. */
static inline bool ref_is_awaited(const struct ref *r, bool definitions)
{
    return r->state == REF_WAITING || (definitions && r->definitions_follow);
}

/* The worker's view of `k` when it has a list; asks nobody.  NULL: none yet. */
struct ref *refs_known(struct refs *rs, const struct refkey *k) NONNULL;
/* A provider did not know a method as the definitions have it. */
void refs_describe_again(struct ref *r) NONNULL;

/* A call begins to use the reference. */
void refs_touch(struct ref *r, uint64_t now_ms) NONNULL;

/* Mail from the registry: DIRECTORY, DEFINITIONS, REFUSED, EVICT, GONE.  Frees the mail. */
void refs_apply(struct refs *rs, struct registry_mail *m) NONNULL;
/* Once a second: tells the registry which references were used, and which providers that it does not list
 * any more are of no use to this worker. */
void refs_report(struct refs *rs) NONNULL;

/* Connection settings of a service; call at start and reload before lists arrive. */
void refs_set_peer_opts(struct ref *r, const struct peer_opts *opts) NONNULL;

void refs_each(struct refs *rs, void (*f)(struct ref *r, void *ctx), void *ctx)
    __attribute__((nonnull(1, 2)));
