#include "registry/directory.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "base/hash.h"
#include "registry/rules.h"

/*
 * All texts of a directory lie in one pool, each of them once: the providers of a reference differ in
 * host and timestamp and in little else.  The first pass finds out how long the pool is, the second one
 * copies, so that a directory is one block without slack.
 */
struct pool {
    struct str *slots; /* open addressing; p == NULL: free */
    size_t n_slots;    /* a power of two, more than twice the number of texts */
    size_t len;        /* bytes of all different texts */
    char *bytes;       /* NULL during the first pass */
    size_t used;
};

enum { TEXTS_PER_PROVIDER = 11, TEXTS_OF_PARAMS = 1, TEXTS_PER_METHOD = 3, TEXTS_OF_KEY = 3 };

static void pool_init(struct pool *p, size_t max_texts)
{
    *p = (struct pool){.n_slots = 64};
    while (p->n_slots < max_texts * 2)
        p->n_slots *= 2;
    p->slots = xcalloc(p->n_slots, sizeof(*p->slots));
}

static struct str *pool_slot(struct pool *p, struct str s)
{
    size_t i = (size_t)hash_bytes(s.p, s.n) & (p->n_slots - 1);

    while (p->slots[i].p != NULL && !str_eq(p->slots[i], s))
        i = (i + 1) & (p->n_slots - 1);
    return &p->slots[i];
}

/* First pass: counts `s`.  Second pass: points it into the pool. */
static void pool_text(struct pool *p, struct str *s)
{
    struct str *slot = NULL;

    if (s->n == 0) {
        if (p->bytes != NULL)
            *s = STR_NONE;
        return;
    }
    slot = pool_slot(p, *s);
    if (p->bytes == NULL) {
        if (slot->p == NULL)
            p->len += s->n;
        *slot = *s;
        return;
    }
    ASSERT(slot->p != NULL);
    if (slot->p < p->bytes || slot->p >= p->bytes + p->len) {
        ASSERT(s->n <= p->len - p->used);
        memcpy(p->bytes + p->used, s->p, s->n);
        slot->p = p->bytes + p->used;
        p->used += s->n;
    }
    *s = *slot;
}

static void pool_key(struct pool *p, struct refkey *k)
{
    pool_text(p, &k->interface);
    pool_text(p, &k->version);
    pool_text(p, &k->group);
}

static void pool_provider(struct pool *pool, struct provider *p)
{
    struct str *const texts[] = {&p->host,        &p->interface, &p->path,        &p->version,
                                 &p->group,       &p->release,   &p->application, &p->token,
                                 &p->loadbalance, &p->tag,       &p->methods};

    _Static_assert(ARRAY_LEN(texts) == TEXTS_PER_PROVIDER, "pool size");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        pool_text(pool, texts[i]);
}

static void pool_method_param(struct pool *pool, struct method_param *m)
{
    struct str *const texts[] = {&m->method, &m->hash_arguments, &m->loadbalance};

    _Static_assert(ARRAY_LEN(texts) == TEXTS_PER_METHOD, "pool size");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        pool_text(pool, texts[i]);
}

/*
 * Which of two nodes of one identity counts?  The one that can be called (one port may be listed for
 * dubbo and for tri), then the one that is listed, then the younger; the rest only makes the choice
 * independent of the order in which the registry names them.
 */
static int by_preference(const struct provider *a, const struct provider *b)
{
    int order = (a->unusable == UNUSABLE_PROTOCOL) - (b->unusable == UNUSABLE_PROTOCOL);

    if (order == 0)
        order = a->unlisted - b->unlisted;
    if (order == 0)
        order = (a->timestamp_ms < b->timestamp_ms) - (a->timestamp_ms > b->timestamp_ms);
    if (order == 0)
        order = (int)a->unusable - (int)b->unusable;
    if (order == 0)
        order = (a->weight > b->weight) - (a->weight < b->weight);
    if (order == 0)
        order = str_cmp(a->release, b->release);
    if (order == 0)
        order = str_cmp(a->application, b->application);
    if (order == 0)
        order = str_cmp(a->token, b->token);
    return order != 0 ? order : str_cmp(a->methods, b->methods);
}

static int by_identity_and_preference(const void *a, const void *b)
{
    int order = provider_compare(a, b);

    return order != 0 ? order : by_preference(a, b);
}

/* A sorted copy without duplicates, texts still those of `from`; the caller frees it. */
static struct provider *sorted(const struct provider *from, size_t n, size_t *n_out)
{
    struct provider *all = xcalloc(n + 1, sizeof(*all));
    size_t used = 0;

    if (n != 0)
        memcpy(all, from, n * sizeof(*all));
    qsort(all, n, sizeof(*all), by_identity_and_preference);
    for (size_t i = 0; i < n; i++) {
        if (used == 0 || !provider_same(&all[used - 1], &all[i]))
            all[used++] = all[i];
        else if (!all[i].unlisted)
            all[used - 1].found |= all[i].found;
    }
    *n_out = used;
    return all;
}

static struct str others_of(const struct provider *p)
{
    return p->params != NULL ? p->params->others : STR_NONE;
}

static bool params_equal(const struct provider *a, const struct provider *b)
{
    if (a->n_method_params != b->n_method_params || !str_eq(others_of(a), others_of(b)))
        return false;
    for (size_t i = 0; i < a->n_method_params; i++) {
        const struct method_param *x = &a->params->methods[i];
        const struct method_param *y = &b->params->methods[i];

        if (x->timeout_ms != y->timeout_ms || x->weight != y->weight ||
            x->timeout_written != y->timeout_written || x->hash_nodes != y->hash_nodes ||
            !str_eq(x->hash_arguments, y->hash_arguments) ||
            !str_eq(x->loadbalance, y->loadbalance) || !str_eq(x->method, y->method))
            return false;
    }
    return true;
}

/* Providers beside each other mostly have the same ones: they share them. */
static bool shares_params(const struct provider *p, size_t i)
{
    return i != 0 && params_equal(&p[i], &p[i - 1]);
}

static size_t params_size(const struct provider *p)
{
    return p->params != NULL ? sizeof(*p->params) + p->n_method_params * sizeof(*p->params->methods)
                             : 0;
}

static size_t measure_params(const struct provider *p, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += shares_params(p, i) ? 0 : params_size(&p[i]);
    return total;
}

/* `p` is the copy in the directory, its parameters still those of the caller. */
static void place_params(struct pool *pool, struct provider *p, size_t n, char *at)
{
    for (size_t i = 0; i < n; i++) {
        struct provider_params *to = (struct provider_params *)(void *)at;
        size_t size = params_size(&p[i]);

        if (shares_params(p, i)) {
            p[i].params = p[i - 1].params;
            continue;
        }
        if (size == 0)
            continue;
        memcpy(to, p[i].params, size);
        pool_text(pool, &to->others);
        for (size_t j = 0; j < p[i].n_method_params; j++)
            pool_method_param(pool, &to->methods[j]);
        p[i].params = to;
        at += size;
    }
}

static void measure(struct pool *pool, struct refkey k, struct provider *p, size_t n)
{
    pool_key(pool, &k);
    for (size_t i = 0; i < n; i++) {
        struct str others = others_of(&p[i]);

        pool_provider(pool, &p[i]);
        pool_text(pool, &others);
        for (size_t j = 0; j < p[i].n_method_params; j++) {
            struct method_param m = p[i].params->methods[j];

            pool_method_param(pool, &m);
        }
    }
}

/* Providers, then their parameters, then texts. */
static void place(struct directory *d, struct pool *pool, const struct provider *p, size_t n,
                  size_t params)
{
    size_t params_at = n * sizeof(*p);
    size_t texts_at = params_at + params;
    char *block = arena_alloc(&d->arena, texts_at + pool->len + 1);

    pool->bytes = block + texts_at;
    d->providers = (struct provider *)(void *)block;
    d->n = n;
    if (n != 0)
        memcpy(d->providers, p, params_at);
    pool_key(pool, &d->key);
    for (size_t i = 0; i < n; i++)
        pool_provider(pool, &d->providers[i]);
    place_params(pool, d->providers, n, block + params_at);
    ASSERT(pool->used == pool->len);
}

static void count(struct directory *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->providers[i].unusable == USABLE)
            d->n_usable++;
        else
            d->n_ignored[d->providers[i].unusable]++;
    }
}

struct directory *directory_build(const struct refkey *k, const struct provider *providers,
                                  size_t n, enum directory_source source)
{
    static uint64_t last_generation; /* registry thread only */
    struct directory *d = xcalloc(1, sizeof(*d));
    struct provider *p = sorted(providers, n, &n);
    size_t params = measure_params(p, n);
    size_t n_all_params = 0;
    struct pool pool;

    for (size_t i = 0; i < n; i++)
        n_all_params += p[i].n_method_params;
    ref_init(&d->refs);
    arena_init(&d->arena);
    d->key = *k;
    d->source = source;
    d->generation = ++last_generation;
    pool_init(&pool, n * (TEXTS_PER_PROVIDER + TEXTS_OF_PARAMS) + n_all_params * TEXTS_PER_METHOD +
                         TEXTS_OF_KEY);
    measure(&pool, *k, p, n);
    place(d, &pool, p, n, params);
    count(d);
    free(pool.slots);
    free(p);
    return d;
}

static bool address_equal(const union address *a, const union address *b)
{
    if (a->sa.sa_family != b->sa.sa_family)
        return false;
    if (a->sa.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr && a->v4.sin_port == b->v4.sin_port;
    if (a->sa.sa_family == AF_INET6)
        return a->v6.sin6_port == b->v6.sin6_port && a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
               memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) == 0;
    return true;
}

static bool texts_equal(const struct provider *a, const struct provider *b)
{
    return provider_same(a, b) && str_eq(a->interface, b->interface) &&
           str_eq(a->release, b->release) && str_eq(a->application, b->application) &&
           str_eq(a->token, b->token) && str_eq(a->loadbalance, b->loadbalance) &&
           str_eq(a->tag, b->tag) && str_eq(a->methods, b->methods);
}

static bool provider_equal(const struct provider *a, const struct provider *b)
{
    return a->unlisted == b->unlisted && a->unusable == b->unusable &&
           a->timeout_ms == b->timeout_ms && a->timeout_written == b->timeout_written &&
           a->weight == b->weight && a->warmup_ms == b->warmup_ms &&
           a->timestamp_ms == b->timestamp_ms && a->payload == b->payload &&
           a->heartbeat_ms == b->heartbeat_ms && a->connections == b->connections &&
           a->dynamic == b->dynamic && a->deprecated == b->deprecated &&
           address_equal(&a->addr, &b->addr) && texts_equal(a, b) && params_equal(a, b);
}

static uint64_t rules_hash(const struct directory *d)
{
    return d->rules != NULL ? d->rules->hash : 0;
}

bool directory_equal(const struct directory *a, const struct directory *b)
{
    if (a->n != b->n || !refkey_eq(&a->key, &b->key) || rules_hash(a) != rules_hash(b))
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (!provider_equal(&a->providers[i], &b->providers[i]))
            return false;
    }
    return true;
}

bool directory_told_alike(const struct directory *a, const struct directory *b)
{
    bool alike = a->n == b->n && a->source == b->source;

    for (size_t i = 0; alike && i < a->n; i++)
        alike = a->providers[i].found == b->providers[i].found;
    return alike;
}

static int compare_provider(const void *a, const void *b)
{
    return provider_compare(a, b);
}

const struct provider *directory_find(const struct directory *d, const struct provider *p)
{
    return bsearch(p, d->providers, d->n, sizeof(*p), compare_provider);
}

struct directory *directory_get(struct directory *d)
{
    ref_get(&d->refs);
    return d;
}

void directory_put(struct directory *d)
{
    if (d == NULL || !ref_put(&d->refs))
        return;
    for (size_t i = 0; d->rules != NULL && i < d->rules->n; i++)
        rules_put(d->rules->v[i].rules);
    arena_free(&d->arena);
    free(d);
}
