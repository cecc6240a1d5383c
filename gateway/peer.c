#include "gateway/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/hash.h"

enum {
    CONNECTIONS_MAX = 16,
    BACKOFF_FIRST_MS = 100,
    /* one second and no more: a provider that comes back on its port is used again within it, also while
     * the registry is down and cannot tell (docs/REGISTRY.md section 9.4) */
    BACKOFF_MAX_MS = 700, /* and a fifth of it for chance */
    /* an attempt that nobody answered took its time already; what is lost next must go out soon after the network heals */
    BACKOFF_SILENT_MAX_MS = 250,
    STABLE_MS = 1000,
};

/* What a peer is known by: the bytes of the address that matter. */
struct peer_key {
    uint16_t family;
    uint16_t port;
    uint8_t ip[16];
    uint32_t scope;
};

struct peer {
    struct peer_key key;
    UT_hash_handle hh;
    struct peers *home;
    union address addr;
    struct peer_opts opts;
    unsigned users;
    struct conn *conns[CONNECTIONS_MAX];
    unsigned n_conns;
    unsigned turn; /* which connection is next */
    uint64_t backoff_until_ms;
    uint32_t backoff_ms; /* 0 = none */
    uint64_t ready_since_ms;
    bool gone;     /* peer_gone() */
    bool readonly; /* the provider is stopping; until a new connection is allowed */
    char last_error[64];
};

struct peers {
    struct wctx *w;
    struct peer *by_key;
};

static void make_key(const union address *a, struct peer_key *k)
{
    memset(k, 0, sizeof(*k)); /* padding is hashed too */
    k->family = a->sa.sa_family;
    if (a->sa.sa_family == AF_INET6) {
        k->port = a->v6.sin6_port;
        k->scope = a->v6.sin6_scope_id;
        memcpy(k->ip, &a->v6.sin6_addr, sizeof(k->ip));
    } else {
        k->port = a->v4.sin_port;
        memcpy(k->ip, &a->v4.sin_addr, sizeof(a->v4.sin_addr));
    }
}

struct peers *peers_new(struct wctx *w)
{
    struct peers *ps = xcalloc(1, sizeof(*ps));

    ps->w = w;
    return ps;
}

static void free_peer(struct peer *p)
{
    HASH_DEL(p->home->by_key, p);
    free(p);
}

void peers_free(struct peers *ps)
{
    while (ps->by_key != NULL) {
        struct peer *p = ps->by_key;

        ASSERT(p->users == 0);
        if (p->n_conns == 0)
            free_peer(p);
        else
            conn_close(p->conns[0]); /* the last one takes the peer along */
    }
    conn_flush_all(ps->w); /* frees the connections */
    free(ps);
}

static void merge_opts(struct peer *p, const struct peer_opts *o)
{
    if (o->connections > p->opts.connections)
        p->opts.connections = o->connections < CONNECTIONS_MAX ? o->connections : CONNECTIONS_MAX;
    if (o->conn.heartbeat_ms < p->opts.conn.heartbeat_ms)
        p->opts.conn.heartbeat_ms = o->conn.heartbeat_ms;
    for (unsigned i = 0; i < p->n_conns; i++)
        conn_hurry_heartbeats(p->conns[i], p->opts.conn.heartbeat_ms);
    if (o->conn.connect_timeout_ms > p->opts.conn.connect_timeout_ms)
        p->opts.conn.connect_timeout_ms = o->conn.connect_timeout_ms;
    if (o->conn.max_in_flight > p->opts.conn.max_in_flight)
        p->opts.conn.max_in_flight = o->conn.max_in_flight;
}

struct peer *peer_get(struct peers *ps, const union address *addr, const struct peer_opts *opts)
{
    struct peer_key k;
    struct peer *p = NULL;

    make_key(addr, &k);
    HASH_FIND(hh, ps->by_key, &k, sizeof(k), p);
    if (p == NULL) {
        p = xcalloc(1, sizeof(*p));
        p->key = k;
        p->home = ps;
        p->addr = *addr;
        p->opts = *opts;
        if (p->opts.connections == 0)
            p->opts.connections = 1;
        HASH_ADD(hh, ps->by_key, key, sizeof(k), p);
    }
    merge_opts(p, opts);
    p->users++;
    return p;
}

void peer_put(struct peer *p)
{
    ASSERT(p->users > 0);

    if (p->users > 1) {
        p->users--;
        return;
    }
    /* The use is held over the loop: an idle connection closes inside conn_drain(). */
    for (unsigned i = p->n_conns; i > 0; i--)
        conn_drain(p->conns[i - 1]);
    p->users = 0;
    if (p->n_conns == 0)
        free_peer(p);
}

/* ---------------------------------------------------------------- connections */

static void remember(struct peer *p, const char *what)
{
    snprintf(p->last_error, sizeof(p->last_error), "%s", what);
}

/* Doubles up to the maximum, with ±20 % so that workers and gateways do not come in step. */
static void back_off(struct peer *p, uint32_t max_ms)
{
    struct wctx *w = p->home->w;
    uint32_t next = p->backoff_ms == 0 ? BACKOFF_FIRST_MS : p->backoff_ms * 2;

    p->backoff_ms = next < max_ms ? next : max_ms;
    p->backoff_until_ms = clock_ms() + p->backoff_ms * 4 / 5 +
                          wctx_random(w) % (p->backoff_ms * 2 / 5 + 1);
}

static void forget_conn(struct peer *p, const struct conn *c)
{
    for (unsigned i = 0; i < p->n_conns; i++) {
        if (p->conns[i] == c) {
            p->conns[i] = p->conns[--p->n_conns];
            return;
        }
    }
}

static void on_closed(struct peer *p, struct conn *c, enum conn_state from)
{
    struct conn_info info;

    conn_info(c, &info);
    p->gone = p->gone || info.by_peer;
    forget_conn(p, c);
    if (from == CONN_CONNECTING) {
        remember(p, "connect failed");
        back_off(p, info.by_peer ? BACKOFF_MAX_MS : BACKOFF_SILENT_MAX_MS);
    } else if (from == CONN_READY) {
        remember(p, "connection lost");
        if (clock_ms() - p->ready_since_ms < STABLE_MS)
            back_off(p, BACKOFF_MAX_MS); /* accepted and closed at once: not ready for us */
        else
            p->backoff_ms = 0;
    } else if (p->readonly) {
        /* it said goodbye; the next process on this port gets a new chance, not at once */
        back_off(p, BACKOFF_MAX_MS);
        p->readonly = false;
    }
    if (p->users == 0 && p->n_conns == 0)
        free_peer(p);
}

static void on_state(struct conn *c, void *ctx, enum conn_state from, enum conn_state to)
{
    struct peer *p = ctx;
    struct conn_info info;

    switch (to) {
    case CONN_READY:
        p->ready_since_ms = clock_ms();
        p->gone = false;
        p->backoff_until_ms = 0;
        p->last_error[0] = '\0';
        return;
    case CONN_DRAINING:
        conn_info(c, &info);
        if (info.readonly) {
            p->readonly = p->gone = true;
            remember(p, "the provider is stopping");
        }
        return;
    case CONN_CLOSED:
        on_closed(p, c, from);
        return;
    case CONN_CONNECTING:
    case CONN_STATES:
        return;
    }
}

static bool in_back_off(const struct peer *p)
{
    return p->backoff_until_ms != 0 && clock_ms() < p->backoff_until_ms;
}

static unsigned count(const struct peer *p, enum conn_state s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_conns; i++)
        n += conn_state(p->conns[i]) == s ? 1U : 0U;
    return n;
}

enum peer_use peer_use(const struct peer *p, bool live_only)
{
    enum peer_use use = PEER_DOWN;

    for (unsigned i = 0; i < p->n_conns; i++) {
        if (conn_state(p->conns[i]) == CONN_READY)
            return PEER_READY;
        if (conn_state(p->conns[i]) == CONN_CONNECTING)
            use = conn_is_slow(p->conns[i]) ? PEER_SLOW : PEER_OPENS;
    }
    if (live_only)
        return PEER_DOWN;
    if (use != PEER_DOWN || p->readonly || in_back_off(p))
        return use;
    return p->backoff_ms != 0 ? PEER_FAILED : PEER_OPENS;
}

bool peer_gone(const struct peer *p)
{
    return p->gone;
}

static struct conn *next_in(struct peer *p, enum conn_state s)
{
    for (unsigned i = 0; i < p->n_conns; i++) {
        struct conn *c = p->conns[(p->turn + i) % p->n_conns];

        if (conn_state(c) == s) {
            p->turn = (p->turn + i + 1) % p->n_conns;
            return c;
        }
    }
    return NULL;
}

static bool may_open(const struct peer *p)
{
    return !p->readonly && !in_back_off(p) && p->n_conns < CONNECTIONS_MAX &&
           count(p, CONN_CONNECTING) == 0 && count(p, CONN_READY) < p->opts.connections;
}

struct conn *peer_conn(struct peer *p)
{
    struct conn *c = NULL;

    if (may_open(p)) {
        c = conn_open(p->home->w, &p->addr, &p->opts.conn, on_state, p);
        if (c != NULL)
            p->conns[p->n_conns++] = c;
        else
            back_off(p, BACKOFF_MAX_MS);
    }
    c = next_in(p, CONN_READY);
    return c != NULL ? c : next_in(p, CONN_CONNECTING);
}

bool peer_dial(struct peer *p)
{
    if (count(p, CONN_READY) != 0)
        return true;
    if (may_open(p) && wctx_may_dial(p->home->w, WCTX_DIALS_PER_S))
        (void)(peer_conn(p) == NULL);
    return false;
}

uint64_t peer_ready_since(const struct peer *p)
{
    return p->ready_since_ms;
}

void peer_probe(struct peer *p)
{
    for (unsigned i = 0; i < p->n_conns; i++)
        conn_probe(p->conns[i]);
}

unsigned peer_in_flight(const struct peer *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_conns; i++)
        n += conn_in_flight(p->conns[i]);
    return n;
}

void peer_info(const struct peer *p, struct peer_info *out)
{
    uint64_t now = clock_ms();

    *out = (struct peer_info){
        .state = "idle",
        .connections = p->n_conns,
        .in_flight = peer_in_flight(p),
        .backoff_ms = p->backoff_until_ms > now ? p->backoff_until_ms - now : 0,
        .last_error = p->last_error,
    };
    if (count(p, CONN_READY) != 0)
        out->state = "up";
    else if (p->readonly)
        out->state = "readonly";
    else if (out->backoff_ms != 0)
        out->state = "backoff";
    else if (count(p, CONN_CONNECTING) != 0)
        out->state = "connecting";
}

void peers_each_conn(struct peers *ps,
                     void (*f)(const union address *a, const struct conn *c, void *ctx), void *ctx)
{
    for (const struct peer *p = ps->by_key; p != NULL; p = p->hh.next) {
        for (unsigned i = 0; i < p->n_conns; i++)
            f(&p->addr, p->conns[i], ctx);
    }
}
