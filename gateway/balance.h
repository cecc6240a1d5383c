/*
 * Load balancing: one row per algorithm (docs/REGISTRY.md section 8, decision R16).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/json_args.h"
#include "gateway/hash_ring.h"
#include "gateway/outlier.h"
#include "gateway/refs.h"
#include "gateway/wctx.h"

enum { ENDPOINT_SET_MAX = 64 };

/* For comparing only: who is in it may be gone. */
struct endpoint_set {
    const struct endpoint *v[ENDPOINT_SET_MAX];
    unsigned n;
};

/* What only some calls ask for; all empty = nothing. */
struct balance_wish {
    /* for consistenthash */
    struct str hash_key; /* p == NULL: made of the arguments … */
    const struct arg *args;
    size_t n_args;
    struct str hash_arguments; /* … with these indexes; empty: as the provider wishes, else "0" */
    unsigned hash_nodes;       /* 0: as the first provider wishes, else 160 */
    /* for cluster modes */
    struct endpoint *only; /* this one or none */
    struct str group;      /* p != NULL: only providers of this group */
    struct endpoint_set
        *others; /* whom the calls beside this one have tried: not to be picked either */
};

/* What a balancer may look at for one call. */
struct balance_call {
    struct str method;
    struct endpoint *const *tried; /* not to be picked again */
    size_t n_tried;
    bool tried_too;                  /* unless nobody else is usable */
    bool connected_first;            /* one that must be connected only when nobody else is there */
    const uint64_t *allowed;         /* bit i: provider i of the directory may take it; NULL: all */
    size_t body_len;                 /* providers whose payload limit is smaller are left out */
    const struct balance_wish *wish; /* NULL = none */
    const struct outlier_policy *outlier; /* NULL: ejected providers are all used */
};

enum { BALANCE_CANDIDATES_MAX = 64 }; /* of a long list a random stretch of so many is looked at */

/* Whom one call may go to: usable endpoints only, at least two, each with its weight of this moment. */
struct balance_choice {
    struct ref *ref;
    struct endpoint *list[BALANCE_CANDIDATES_MAX];
    uint32_t weight[BALANCE_CANDIDATES_MAX];
    uint64_t total; /* of the weights */
    size_t n;
};

struct balancer {
    const char *name; /* as in the configuration and in Dubbo's loadbalance= */
    /* Returns an index into `choice`. */
    size_t (*pick)(struct wctx *w, const struct balance_choice *choice,
                   const struct balance_call *call);
    bool by_key;     /* there is no choice: the ring of the reference decides */
    bool per_method; /* wants to know of every try: balance_begin(), balance_end() */
};

/* One file each. */
extern const struct balancer balance_random;
extern const struct balancer balance_p2c;
extern const struct balancer balance_roundrobin;
extern const struct balancer balance_leastactive;
extern const struct balancer balance_adaptive;
extern const struct balancer balance_shortestresponse;
extern const struct balancer balance_consistenthash;

/* Of all rows, in their order; NULL ends. */
extern const char *const balance_names[];
/* NULL when there is none of that name. */
const struct balancer *balance_find(struct str name);

/* From the call's key on; there must be a usable endpoint. */
struct ring_walk balance_ring_walk(struct ref *r, const struct balance_call *call) NONNULL;

/* One of `among` (indexes into `c`, n of them, at least one) by weight. */
size_t balance_random_among(struct wctx *w, const struct balance_choice *c, const size_t *among,
                            size_t n) NONNULL MUST_CHECK;

enum balance_result {
    BALANCE_OK = 0,
    BALANCE_NONE,      /* no usable provider */
    BALANCE_TOO_LARGE, /* usable ones only with a smaller payload limit: 413 */
    BALANCE_RULED_OUT, /* rules leave none of the usable ones */
    BALANCE_EJECTED,   /* all that could be reached failed too often, and are not connected */
    BALANCE_DOWN,      /* providers are listed, but none can be reached now (back-off, readonly) */
};

/* `configured` = the operator's choice, NULL: the provider URL's loadbalance, else p2c. */
enum balance_result balance_pick(struct wctx *w, struct ref *r, const struct balancer *configured,
                                 const struct balance_call *call, struct endpoint **out)
    __attribute__((nonnull(1, 2, 4, 5))) MUST_CHECK;

/* The calls beside this one are to avoid it. */
static inline void balance_note(struct endpoint_set *others, const struct endpoint *ep)
{
    if (others != NULL && others->n < ENDPOINT_SET_MAX)
        others->v[others->n++] = ep;
}

unsigned balance_begin_told(struct ref *r, const struct balancer *configured, struct str method,
                            struct endpoint *ep) __attribute__((nonnull(1, 4))) MUST_CHECK;
void balance_end_told(struct endpoint *ep, unsigned slot, uint64_t now_ms, uint64_t us) NONNULL;

/* A try begins at an endpoint.  Returns what balance_end() wants. */
static inline MUST_CHECK unsigned balance_begin(struct ref *r, const struct balancer *configured,
                                                struct str method, struct endpoint *ep)
{
    bool tell = configured != NULL ? configured->per_method : r->wish_per_method;

    return tell ? balance_begin_told(r, configured, method, ep) : BALANCE_NO_SLOT;
}

/* It ended.  `us`: how long a good answer took, 0 = there was none. */
static inline void balance_end(struct endpoint *ep, unsigned slot, uint64_t now_ms, uint64_t us)
{
    if (slot != BALANCE_NO_SLOT)
        balance_end_told(ep, slot, now_ms, us);
}
