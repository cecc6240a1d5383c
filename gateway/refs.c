#include "gateway/refs.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "base/log.h"
#include "codec/invoke.h"
#include "gateway/balance.h"

enum {
    PREFIX_LIMIT = 4096,
    REFUSED_MAX = 256,
    SILENT_MS = 180000, /* three heartbeats of the default interval */
    PROBES_PER_SECOND = 64,
    HEARTBEAT_MIN_MS = 200, /* a provider URL with heartbeat=1 would keep every worker busy */
};

struct refs {
    struct wctx *w;
    struct peers *peers;
    struct refs_opts opts;
    struct ref *by_key;
    unsigned n_refused; /* since the last sweep */
    unsigned n_probes;  /* in this second */
};

struct refs *refs_new(struct wctx *w, struct peers *peers, const struct refs_opts *opts)
{
    struct refs *rs = xcalloc(1, sizeof(*rs));

    rs->w = w;
    rs->peers = peers;
    rs->opts = *opts;
    return rs;
}

/* ---------------------------------------------------------------- endpoints */

void endpoint_begin(struct endpoint *ep)
{
    ep->in_flight++;
    ep->calls++;
}

static void free_endpoint(struct endpoint *ep)
{
    if (ep->peer != NULL)
        peer_put(ep->peer);
    if (ep->retired)
        directory_put(ep->directory);
    envelope_put(ep->envelope);
    free(ep->loads);
    free(ep->outlier);
    free(ep);
}

static void free_if_unused(struct endpoint *ep)
{
    if (ep->retired && ep->in_flight == 0 && ep->holds == 0)
        free_endpoint(ep);
}

void endpoint_end(struct endpoint *ep)
{
    ASSERT(ep->in_flight > 0);

    ep->in_flight--;
    free_if_unused(ep);
}

void endpoint_hold(struct endpoint *ep)
{
    ASSERT(ep->holds < ENDPOINT_HOLDS_MAX);

    ep->holds++;
}

void endpoint_release(struct endpoint *ep)
{
    ASSERT(ep->holds > 0);

    ep->holds--;
    free_if_unused(ep);
}

/* Before the reference gets its next directory. */
static void retire(const struct ref *r, struct endpoint *ep)
{
    ep->retired = true;
    ep->directory = directory_get(r->directory);
    free_if_unused(ep);
}

/* `like`: an endpoint of the same reference, NULL = none. */
static void set_envelope(const struct ref *r, struct endpoint *ep, const struct endpoint *like)
{
    struct envelope *old = ep->envelope;

    ep->envelope = envelope_get(&r->key, ep->provider, str_from(r->home->opts.application),
                                like != NULL ? like->envelope : old);
    envelope_put(old);
}

static struct peer *peer_of(const struct ref *r, const struct provider *p)
{
    struct peer_opts o = r->peer_opts;

    if (p->unusable != USABLE || p->addr.sa.sa_family == AF_UNSPEC)
        return NULL;
    if (p->heartbeat_ms != 0)
        o.conn.heartbeat_ms = p->heartbeat_ms > HEARTBEAT_MIN_MS ? p->heartbeat_ms
                                                                 : HEARTBEAT_MIN_MS;
    if (p->connections > o.connections)
        o.connections = p->connections;
    return peer_get(r->home->peers, &p->addr, &o);
}

/* The provider of the new list in an endpoint of the old one: calls, latency and connection stay. */
static void update_endpoint(struct ref *r, struct endpoint *ep, const struct provider *p,
                            const struct endpoint *like)
{
    struct peer *peer = peer_of(r, p);

    r->set_version += (peer != NULL) != (ep->peer != NULL) ? 1U : 0U;
    if (ep->peer != NULL)
        peer_put(ep->peer);
    ep->peer = peer;
    ep->provider = p;
    set_envelope(r, ep, like);
}

static struct endpoint *new_endpoint(struct ref *r, const struct provider *p,
                                     const struct endpoint *like)
{
    struct endpoint *ep = xcalloc(1, sizeof(*ep));

    ep->provider = p;
    ep->peer = peer_of(r, p);
    set_envelope(r, ep, like);
    r->set_version++;
    return ep;
}

/* ---------------------------------------------------------------- lists */

/* Both lists are sorted the same way, so one pass finds who stayed. */
static struct endpoint *take_old(struct ref *r, size_t *at, const struct provider *p)
{
    while (*at < r->n_endpoints) {
        struct endpoint *ep = r->endpoints[*at];
        int order = provider_compare(ep->provider, p);

        if (order > 0)
            return NULL;
        (*at)++;
        if (order == 0 && provider_same(ep->provider, p))
            return ep;
        r->set_version++;
        retire(r, ep);
    }
    return NULL;
}

static void free_lists(struct ref *r)
{
    if (r->usable != r->endpoints)
        free(r->usable);
    free(r->endpoints);
}

static void index_wishes(struct ref *r)
{
    const struct provider *p = r->n_usable != 0 ? r->usable[0]->provider : NULL;

    r->wish = p != NULL ? balance_find(p->loadbalance) : NULL;
    r->methods_wish = false;
    for (size_t i = 0; p != NULL && i < p->n_method_params; i++)
        r->methods_wish = r->methods_wish || p->params->methods[i].loadbalance.n != 0;
    r->wish_per_method = r->methods_wish || (r->wish != NULL && r->wish->per_method);
}

static void index_usable(struct ref *r)
{
    r->n_usable = r->n_unlisted = r->n_lost_told = 0;
    for (size_t i = 0; i < r->n_endpoints; i++)
        r->n_usable += r->endpoints[i]->peer != NULL ? 1U : 0U;
    r->usable = r->endpoints;
    if (r->n_usable != r->n_endpoints)
        r->usable = xcalloc(r->n_usable + 1, sizeof(struct endpoint *));
    for (size_t i = 0, n = 0; i < r->n_endpoints; i++) {
        struct endpoint *ep = r->endpoints[i];

        if (ep->peer == NULL)
            continue;
        r->usable[n++] = ep;
        r->n_unlisted += ep->provider->unlisted ? 1U : 0U;
    }
    index_wishes(r);
    outlier_recount(r);
}

static void set_directory(struct ref *r, struct directory *d)
{
    struct endpoint **fresh = xcalloc(d->n + 1, sizeof(struct endpoint *));
    size_t at = 0;

    for (size_t i = 0; i < d->n; i++) {
        struct endpoint *ep = take_old(r, &at, &d->providers[i]);
        const struct endpoint *like = i != 0 ? fresh[i - 1] : NULL;

        if (ep != NULL)
            update_endpoint(r, ep, &d->providers[i], like);
        fresh[i] = ep != NULL ? ep : new_endpoint(r, &d->providers[i], like);
    }
    r->set_version += r->n_endpoints - at;
    while (at < r->n_endpoints)
        retire(r, r->endpoints[at++]);
    free_lists(r);
    r->endpoints = fresh;
    r->n_endpoints = (uint32_t)d->n;
    directory_get(d);
    directory_put(r->directory);
    r->directory = d;
    index_usable(r);
}

/* ---------------------------------------------------------------- references */

static struct ref *find(struct refs *rs, const char *key_text)
{
    struct ref *r = NULL;

    HASH_FIND_STR(rs->by_key, key_text, r);
    return r;
}

static struct ref *new_ref(struct refs *rs, const char *key_text)
{
    struct ref *r = xcalloc(1, sizeof(*r));
    struct buf prefix;
    struct err e = {0};

    r->home = rs;
    r->key_text = strdup(key_text);
    if (r->key_text == NULL || !refkey_parse(str_from(r->key_text), &r->key, &e))
        fatal("reference %s: %s", key_text, e.text); /* keys are printed from checked ones */
    r->peer_opts = rs->opts.peer;
    list_init(&r->waiting);
    buf_init(&prefix, PREFIX_LIMIT);
    invoke_prefix(r->key.interface, r->key.version, &prefix);
    r->n_prefix = (uint32_t)prefix.len;
    buf_free(&prefix);
    HASH_ADD_KEYPTR(hh, rs->by_key, r->key_text, strlen(r->key_text), r);
    return r;
}

/* One that was woken may wait on, for the definitions. */
static void wake_waiters(struct ref *r)
{
    struct list todo;
    struct list *l = NULL;

    list_init(&todo);
    while ((l = list_take(&r->waiting)) != NULL)
        list_add(&todo, l);
    while ((l = list_take(&todo)) != NULL) {
        struct ref_waiter *w = container_of(l, struct ref_waiter, link);

        w->on_list(w);
    }
}

static void free_ref(struct ref *r)
{
    ASSERT(list_empty(&r->waiting));

    HASH_DEL(r->home->by_key, r);
    for (size_t i = 0; i < r->n_endpoints; i++)
        retire(r, r->endpoints[i]);
    definitions_put(r->definitions);
    directory_put(r->directory);
    free_lists(r);
    balance_state_free(r->balance);
    free(r->key_text);
    free(r);
}

void refs_free(struct refs *rs)
{
    struct ref *r = NULL;
    struct ref *next = NULL;

    HASH_ITER(hh, rs->by_key, r, next)
    {
        free_ref(r);
    }
    free(rs);
}

static bool is_unused(const struct ref *r)
{
    return r->pins == 0 && r->in_flight == 0 && list_empty(&r->waiting);
}

/* Names that the registry does not know must not pile up here, however fast they come. */
static void sweep_refused(struct refs *rs)
{
    struct ref *r = NULL;
    struct ref *next = NULL;

    rs->n_refused = 0;
    HASH_ITER(hh, rs->by_key, r, next)
    {
        if (r->state == REF_REFUSED && is_unused(r))
            free_ref(r);
    }
}

static struct ref *find_or_new(struct refs *rs, const struct refkey *k, bool *is_new)
{
    char text[REFKEY_TEXT_MAX + 1];
    struct buf b = {.data = (uint8_t *)text, .cap = sizeof(text), .limit = sizeof(text)};
    struct ref *r = NULL;

    if (rs->n_refused >= REFUSED_MAX)
        sweep_refused(rs);
    refkey_print(k, &b);
    buf_add_u8(&b, '\0');
    r = find(rs, text);
    *is_new = r == NULL;
    return r != NULL ? r : new_ref(rs, text);
}

struct ref *refs_get(struct refs *rs, const struct refkey *k, const char *registry_name)
{
    bool ask = false;
    struct ref *r = find_or_new(rs, k, &ask);

    /* a refusal is valid for the calls that waited for it: the registry remembers its own */
    ask = ask || (r->state == REF_REFUSED && is_unused(r));
    if (!ask)
        return r;
    r->state = REF_WAITING;
    r->refusal = REFUSAL_NONE;
    if (rs->opts.registry != NULL)
        registry_want(rs->opts.registry, &r->key, registry_name, rs->opts.box);
    return r;
}

struct ref *refs_known(struct refs *rs, const struct refkey *k)
{
    char text[REFKEY_TEXT_MAX + 1];
    struct buf b = {.data = (uint8_t *)text, .cap = sizeof(text), .limit = sizeof(text)};
    struct ref *r = NULL;

    refkey_print(k, &b);
    buf_add_u8(&b, '\0');
    r = find(rs, text);
    return r != NULL && r->state == REF_KNOWN ? r : NULL;
}

enum { DESCRIBE_APART_MS = 2000 };

void refs_describe_again(struct ref *r)
{
    uint64_t now = r->home->w->now_ms;

    if (r->home->opts.registry == NULL || now - r->described_ms < DESCRIBE_APART_MS)
        return;
    r->described_ms = now;
    registry_describe(r->home->opts.registry, str_from(r->key_text));
}

struct ref *refs_pin(struct refs *rs, const struct refkey *k)
{
    bool is_new = false;
    struct ref *r = find_or_new(rs, k, &is_new);

    if (r->state == REF_REFUSED && is_unused(r))
        r->state = REF_WAITING;
    r->pins++;
    return r;
}

/* The registry has no such reference any more: nothing here may be taken for its list. */
static void give_up(struct ref *r)
{
    r->gone = true;
    if (is_unused(r))
        free_ref(r);
    else if (r->pins == 0)
        r->state = REF_REFUSED; /* in use after all: the next call asks the registry again */
}

void refs_unpin(struct ref *r)
{
    ASSERT(r->pins > 0);

    if (--r->pins == 0 && r->gone)
        give_up(r);
}

void refs_park(struct ref *r, struct ref_waiter *w)
{
    list_add(&r->waiting, &w->link);
}

void refs_unpark(struct ref_waiter *w)
{
    list_remove(&w->link);
}

void refs_touch(struct ref *r, uint64_t now_ms)
{
    r->touched_ms = now_ms;
    r->touched = true;
}

void refs_set_peer_opts(struct ref *r, const struct peer_opts *opts)
{
    if (memcmp(&r->peer_opts, opts, sizeof(*opts)) == 0)
        return;
    r->peer_opts = *opts;
    for (size_t i = 0; i < r->n_endpoints; i++)
        update_endpoint(r, r->endpoints[i], r->endpoints[i]->provider, NULL);
    if (r->directory != NULL)
        index_usable(r);
}

/* ---------------------------------------------------------------- mail */

static bool is_idle(const struct ref *r)
{
    return r->in_flight == 0 && list_empty(&r->waiting) && !r->touched;
}

static void on_directory(struct refs *rs, struct ref *r, struct registry_mail *m)
{
    if (r ==
        NULL) /* another worker asked, or the configuration names it: known before it is used */
        r = new_ref(rs, m->key_text);
    set_directory(r, m->directory);
    r->definitions_follow = m->definitions_follow;
    r->state = REF_KNOWN;
    r->refusal = REFUSAL_NONE;
    r->gone = false;
    wake_waiters(r);
}

static void on_definitions(struct ref *r, struct registry_mail *m)
{
    definitions_put(r->definitions);
    r->definitions = m->definitions;
    m->definitions = NULL;
    r->definitions_follow = false;
    wake_waiters(r);
}

void refs_apply(struct refs *rs, struct registry_mail *m)
{
    struct ref *r = m->key_text != NULL ? find(rs, m->key_text) : NULL;

    switch (m->kind) {
    case REGISTRY_MAIL_DIRECTORY:
        on_directory(rs, r, m);
        break;
    case REGISTRY_MAIL_DEFINITIONS:
        if (r != NULL)
            on_definitions(r, m);
        break;
    case REGISTRY_MAIL_REFUSED:
        if (r != NULL && r->state == REF_WAITING) {
            r->state = REF_REFUSED;
            r->refusal = m->refusal;
            rs->n_refused++;
            wake_waiters(r);
        }
        break;
    case REGISTRY_MAIL_EVICT:
        registry_evict_answer(rs->opts.registry, rs->opts.box, str_from(m->key_text),
                              r == NULL || is_idle(r));
        break;
    case REGISTRY_MAIL_GONE:
        if (r != NULL)
            give_up(r);
        break;
    case REGISTRY_MAIL_REPORT:
    case REGISTRY_MAIL_STATUS:
    case REGISTRY_MAIL_ASK:
    case REGISTRY_MAIL_TELNET:
        break;
    }
    registry_mail_free(m);
}

enum { REFUSED_KEEP_MS = 5000 };

static bool may_probe(const struct peer *p)
{
    enum peer_use use = peer_use(p, false);

    return use == PEER_OPENS || use == PEER_FAILED;
}

/*
 * docs/REGISTRY.md section 9.4: an unlisted provider is as good as its connections.  One that refuses, closes or
 * says goodbye is lost; one that is silent (paused, or never asked by this worker) is tried until SILENT_MS.
 */
static bool is_lost(struct refs *rs, struct endpoint *ep)
{
    uint64_t now = rs->w->now_ms;

    if (peer_use(ep->peer, true) == PEER_READY) {
        ep->silent_since_ms = 0;
        return false;
    }
    if (ep->silent_since_ms == 0)
        ep->silent_since_ms = now;
    if (peer_gone(ep->peer) || now - ep->silent_since_ms > SILENT_MS)
        return true;
    if (rs->n_probes < PROBES_PER_SECOND && may_probe(ep->peer)) {
        rs->n_probes++;
        (void)(peer_conn(ep->peer) == NULL); /* whatever comes of it shows the next time */
    }
    return false;
}

static void report_lost(struct refs *rs, struct ref *r)
{
    size_t *lost = xcalloc(r->n_unlisted, sizeof(*lost));
    size_t n = 0;

    for (size_t i = 0; i < r->n_endpoints; i++) {
        struct endpoint *ep = r->endpoints[i];

        if (ep->peer != NULL && ep->provider->unlisted && is_lost(rs, ep))
            lost[n++] = i;
    }
    if (n != r->n_lost_told) {
        r->n_lost_told = (uint32_t)n;
        registry_unlisted_lost(rs->opts.registry, rs->opts.box, str_from(r->key_text), r->directory,
                               lost, n);
    }
    free(lost);
}

void refs_report(struct refs *rs)
{
    struct ref *r = NULL;
    struct ref *next = NULL;
    struct buf keys;

    rs->n_probes = 0;
    buf_init(&keys, 64 * 1024 * 1024);
    HASH_ITER(hh, rs->by_key, r, next)
    {
        if (r->state == REF_REFUSED && is_unused(r) &&
            rs->w->now_ms - r->touched_ms > REFUSED_KEEP_MS) {
            free_ref(r);
            continue;
        }
        if (r->n_unlisted != 0 && rs->opts.registry != NULL)
            report_lost(rs, r);
        if (!r->touched || r->state != REF_KNOWN)
            continue;
        r->touched = false;
        buf_add(&keys, r->key_text, strlen(r->key_text));
        buf_add_u8(&keys, '\n');
    }
    if (keys.len != 0 && rs->opts.registry != NULL)
        registry_touch(rs->opts.registry, rs->opts.box, buf_str(&keys));
    buf_free(&keys);
}

void refs_each(struct refs *rs, void (*f)(struct ref *r, void *ctx), void *ctx)
{
    struct ref *r = NULL;
    struct ref *next = NULL;

    HASH_ITER(hh, rs->by_key, r, next)
    {
        f(r, ctx);
    }
}
