#include "gateway/balance.h"

#include "base/fatal.h"

enum {
    CANDIDATES_MAX = 64, /* of a long list a random stretch of so many is looked at */
    STRETCH_MAX = 512,
};

static const struct balancer *const balancers[] = {&balance_p2c, &balance_random};

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

/* What keeps providers from being candidates, for the answer when there are none. */
struct found {
    struct endpoint *list[CANDIDATES_MAX];
    size_t n;
    struct endpoint *tried[CANDIDATES_MAX]; /* usable, but asked before: only when nobody else is */
    size_t n_tried;
    bool too_small;
    bool down;
};

static void look_at(struct found *f, struct endpoint *ep, const struct balance_call *c)
{
    if (c->body_len > ep->provider->payload) {
        f->too_small = true;
        return;
    }
    if (!peer_usable(ep->peer, ep->provider->unlisted)) {
        /* an unlisted one without a connection is gone, not down */
        f->down = f->down || !ep->provider->unlisted;
        return;
    }
    if (!was_tried(c, ep))
        f->list[f->n++] = ep;
    else if (f->n_tried < CANDIDATES_MAX)
        f->tried[f->n_tried++] = ep;
}

/* All of a short list; of a long one a stretch that begins anywhere, further only while it is empty. */
static void collect(struct wctx *w, const struct ref *r, const struct balance_call *c,
                    struct found *f)
{
    size_t from = r->n_usable > CANDIDATES_MAX ? wctx_random(w) % r->n_usable : 0;

    for (size_t i = 0; i < r->n_usable && f->n < CANDIDATES_MAX; i++) {
        if (i >= STRETCH_MAX && f->n != 0)
            return;
        look_at(f, r->usable[(from + i) % r->n_usable], c);
    }
}

/* docs/REGISTRY.md section 2.4: Dubbo takes the wish of the first provider. */
static const struct balancer *wanted(const struct ref *r, const struct balancer *configured)
{
    const struct balancer *b = configured;

    if (b == NULL && r->n_usable != 0)
        b = balance_find(r->usable[0]->provider->loadbalance);
    return b != NULL ? b : &balance_p2c;
}

enum balance_result balance_pick(struct wctx *w, struct ref *r, const struct balancer *configured,
                                 const struct balance_call *call, struct endpoint **out)
{
    struct found f;

    f.n = f.n_tried = 0;
    f.too_small = f.down = false;
    collect(w, r, call, &f);
    if (f.n != 0) {
        *out = f.n == 1 ? f.list[0] : wanted(r, configured)->pick(w, f.list, f.n, call);
        return BALANCE_OK;
    }
    if (f.n_tried != 0) {
        *out = f.tried[wctx_random(w) % f.n_tried];
        return BALANCE_OK;
    }
    if (f.too_small)
        return BALANCE_TOO_LARGE;
    return f.down ? BALANCE_DOWN : BALANCE_NONE;
}
