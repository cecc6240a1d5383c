#include "gateway/balance.h"

#include "base/fatal.h"
#include "gateway/balance_state.h"

enum { STRETCH_MAX = 512, DIALS_MAX = 8 };

static const struct balancer *const balancers[] = {
    &balance_p2c,      &balance_random,           &balance_roundrobin,     &balance_leastactive,
    &balance_adaptive, &balance_shortestresponse, &balance_consistenthash,
};

const char *const balance_names[] = {
    "p2c",      "random",           "roundrobin",     "leastactive",
    "adaptive", "shortestresponse", "consistenthash", NULL};

_Static_assert(ARRAY_LEN(balance_names) == ARRAY_LEN(balancers) + 1, "a name for each row");

const struct balancer *balance_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(balancers); i++) {
        if (str_is(name, balancers[i]->name))
            return balancers[i];
    }
    return NULL;
}

static bool was_tried(const struct balance_call *c, const struct endpoint *ep)
{
    for (size_t i = 0; i < c->n_tried; i++) {
        if (c->tried[i] == ep)
            return true;
    }
    return false;
}

static bool is_asked(const struct endpoint_set *s, const struct endpoint *ep)
{
    for (size_t i = 0; s != NULL && i < s->n; i++) {
        if (s->v[i] == ep)
            return true;
    }
    return false;
}

/* What keeps providers from being candidates, for the answer when there are none. */
struct found {
    struct balance_choice fresh;
    enum peer_use enough;             /* for a fresh one */
    struct endpoint *dial[DIALS_MAX]; /* not good enough to wait for: opened for later calls */
    size_t n_dial;
    /* usable, but slow to connect or asked before: only when nobody else is */
    struct endpoint *slow[BALANCE_CANDIDATES_MAX];
    size_t n_slow;
    struct endpoint *tried[BALANCE_CANDIDATES_MAX];
    size_t n_tried;
    struct endpoint *ejected[BALANCE_CANDIDATES_MAX]; /* connected ones */
    size_t n_ejected;
    struct endpoint *trial; /* an ejected one that is due: goes before all others */
    uint64_t now_ms;
    bool panic;  /* too many are ejected for it to be their fault */
    bool out;    /* ejected, and not connected */
    bool choosy; /* the call's wish has a group or others */
    bool too_small;
    bool down;
    bool ruled_out;
};

static bool is_allowed(const struct ref *r, const struct endpoint *ep, const struct balance_call *c)
{
    size_t i = (size_t)(ep->provider - r->directory->providers);

    return (c->allowed[i / 64] >> i % 64 & 1) != 0;
}

/* An ejected one: true when that is all there is to it. */
static __attribute__((noinline)) bool is_out(struct found *f, struct endpoint *ep,
                                             const struct balance_call *c)
{
    bool tried = was_tried(c, ep) || (f->choosy && is_asked(c->wish->others, ep));

    switch (outlier_judge(ep, f->now_ms)) {
    case OUTLIER_IN:
        return false;
    case OUTLIER_TRIAL:
        f->trial = tried ? f->trial : ep;
        return !tried;
    case OUTLIER_OUT:
        break;
    }
    if (peer_use(ep->peer, true) != PEER_READY) {
        f->out = true;
        return true;
    }
    if (f->panic)
        return false;
    if (!tried && f->n_ejected < BALANCE_CANDIDATES_MAX)
        f->ejected[f->n_ejected++] = ep;
    return !tried;
}

/* Into the loop that every call runs through, whoever else uses it. */
static inline __attribute__((always_inline)) void look_at(struct found *f, const struct ref *r,
                                                          struct endpoint *ep,
                                                          const struct balance_call *c)
{
    if (UNLIKELY(f->choosy) && c->wish->group.p != NULL &&
        !str_eq(c->wish->group, ep->provider->group))
        return;
    if (c->allowed != NULL && !is_allowed(r, ep, c)) {
        f->ruled_out = true;
        return;
    }
    if (c->body_len > ep->provider->payload) {
        f->too_small = true;
        return;
    }
    if (UNLIKELY(ep->outlier != NULL) && is_out(f, ep, c))
        return;
    enum peer_use use = peer_use(ep->peer, ep->provider->unlisted);

    if (use == PEER_DOWN) {
        /* an unlisted one without a connection is gone, not down */
        f->down = f->down || !ep->provider->unlisted;
        return;
    }
    bool tried = was_tried(c, ep) || (UNLIKELY(f->choosy) && is_asked(c->wish->others, ep));

    if (!tried && use >= f->enough) {
        f->fresh.list[f->fresh.n++] = ep;
        return;
    }
    if (use != PEER_READY && f->n_dial < DIALS_MAX)
        f->dial[f->n_dial++] = ep;
    if (!tried && f->n_slow < BALANCE_CANDIDATES_MAX)
        f->slow[f->n_slow++] = ep;
    else if (c->tried_too && f->n_tried < BALANCE_CANDIDATES_MAX)
        f->tried[f->n_tried++] = ep;
}

/* All of a short list; of a long one a stretch that begins anywhere, further only while it is empty. */
static void collect(struct wctx *w, const struct ref *r, const struct balance_call *c,
                    struct found *f)
{
    size_t from = r->n_usable > BALANCE_CANDIDATES_MAX ? wctx_random(w) % r->n_usable : 0;

    for (size_t i = 0; i < r->n_usable && f->fresh.n < BALANCE_CANDIDATES_MAX; i++) {
        if (i >= STRETCH_MAX && f->fresh.n != 0)
            return;
        look_at(f, r, r->usable[(from + i) % r->n_usable], c);
    }
}

/* In the order of the ring, up to the first that may take the call. */
static __attribute__((noinline)) void collect_ring(struct ref *r, const struct balance_call *c,
                                                   struct found *f)
{
    struct ring_walk walk = balance_ring_walk(r, c);
    size_t i = 0;

    /* rules may leave one of thousands */
    size_t most = c->allowed != NULL ? SIZE_MAX : STRETCH_MAX;

    for (size_t n = 0; n < most && f->fresh.n == 0 && ring_walk_next(&walk, &i); n++)
        look_at(f, r, r->usable[i], c);
}

static __attribute__((noinline)) void collect_one(const struct ref *r, const struct balance_call *c,
                                                  struct found *f)
{
    look_at(f, r, c->wish->only, c);
}

/* docs/REGISTRY.md section 2.4: Dubbo takes the wish of the first provider. */
static inline const struct balancer *wanted(const struct ref *r, const struct balancer *configured,
                                            struct str method)
{
    const struct balancer *b = configured != NULL ? configured : r->wish;

    if (UNLIKELY(r->methods_wish) && configured == NULL)
        b = balance_find(provider_loadbalance(r->usable[0]->provider, method));
    return b != NULL ? b : &balance_p2c;
}

/* Once per call, for however many draws. */
static void weigh(struct balance_choice *c, struct str method, uint64_t wall_ms)
{
    c->total = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->weight[i] = provider_weight(c->list[i]->provider, method, wall_ms);
        c->total += c->weight[i];
    }
}

/* Otherwise the call itself opens a connection to one of them. */
static __attribute__((noinline)) void dial_some(const struct found *f)
{
    for (size_t i = 0; i < f->n_dial; i++)
        peer_dial(f->dial[i]->peer);
}

enum balance_result balance_pick(struct wctx *w, struct ref *r, const struct balancer *configured,
                                 const struct balance_call *call, struct endpoint **out)
{
    const struct balancer *b = wanted(r, configured, call->method);
    UNFILLED struct found f;

    f.fresh.ref = r;
    f.fresh.n = f.n_slow = f.n_tried = 0;
    f.too_small = f.down = f.ruled_out = f.out = false;
    f.n_ejected = 0;
    f.n_dial = 0;
    f.trial = NULL;
    f.enough = call->connected_first ? PEER_READY : PEER_OPENS;
    f.now_ms = w->now_ms;
    f.panic = r->n_ejected != 0 && (call->outlier == NULL || outlier_panic(r, call->outlier));
    f.choosy = call->wish != NULL && (call->wish->group.p != NULL || call->wish->others != NULL);
    if (call->wish != NULL && call->wish->only != NULL)
        collect_one(r, call, &f);
    else if (b->by_key && r->n_usable != 0)
        collect_ring(r, call, &f);
    else
        collect(w, r, call, &f);
    if (UNLIKELY(f.trial != NULL)) {
        *out = f.trial;
        return BALANCE_OK;
    }
    if (UNLIKELY(f.n_dial != 0) && (f.fresh.n != 0 || call->connected_first))
        dial_some(&f);
    if (f.fresh.n > 1) {
        weigh(&f.fresh, call->method, w->wall_ms);
        *out = f.fresh.list[b->pick(w, &f.fresh, call)];
        return BALANCE_OK;
    }
    if (f.fresh.n == 1) {
        *out = f.fresh.list[0];
        return BALANCE_OK;
    }
    if (f.n_slow != 0) {
        *out = f.slow[b->by_key ? 0 : wctx_random(w) % f.n_slow];
        return BALANCE_OK;
    }
    if (f.n_ejected != 0) {
        *out = f.ejected[b->by_key ? 0 : wctx_random(w) % f.n_ejected];
        return BALANCE_OK;
    }
    if (f.n_tried != 0) {
        *out = f.tried[b->by_key ? 0 : wctx_random(w) % f.n_tried];
        return BALANCE_OK;
    }
    if (f.too_small)
        return BALANCE_TOO_LARGE;
    if (f.out)
        return BALANCE_EJECTED;
    if (f.down)
        return BALANCE_DOWN;
    return f.ruled_out ? BALANCE_RULED_OUT : BALANCE_NONE;
}

unsigned balance_begin_told(struct ref *r, const struct balancer *configured, struct str method,
                            struct endpoint *ep)
{
    unsigned slot = BALANCE_NO_SLOT;

    if (!wanted(r, configured, method)->per_method)
        return BALANCE_NO_SLOT;
    slot = balance_slot(r, method);
    balance_load(ep, slot)->in_flight++;
    return slot;
}

void balance_end_told(struct endpoint *ep, unsigned slot, uint64_t now_ms, uint64_t us)
{
    struct method_load *l = NULL;

    l = balance_load(ep, slot);
    ASSERT(l->in_flight > 0);
    l->in_flight--;
    if (us != 0)
        load_add_time(l, now_ms, us);
}
