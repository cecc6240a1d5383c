#include "gateway/hash_ring.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/url.h"
#include "gateway/refs.h"

enum { MD5_LEN = 16, POINTS_PER_MD5 = 4, ADDRESS_MAX = 320, BITS = 64 };

/* MD5 spreads keys here and protects nothing, so FIPS mode need not forbid it. */
static void md5(const void *p, size_t n, uint8_t out[MD5_LEN])
{
    int rc = 0;

    GNUTLS_FIPS140_SET_LAX_MODE();
    rc = gnutls_hash_fast(GNUTLS_DIG_MD5, n != 0 ? p : "", n, out);
    GNUTLS_FIPS140_SET_STRICT_MODE();
    ASSERT(rc == 0);
}

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

uint32_t hash_ring_key(struct str key)
{
    uint8_t digest[MD5_LEN];

    md5(key.p, key.n, digest);
    return word(digest);
}

static unsigned nodes_for(unsigned nodes, size_t n)
{
    if (nodes > RING_POINTS_MAX / n)
        nodes = (unsigned)(RING_POINTS_MAX / n);
    return nodes < RING_NODES_MIN ? RING_NODES_MIN : nodes;
}

static void add_points(struct hash_ring *r, const struct endpoint *ep, size_t index,
                       unsigned rounds)
{
    char bytes[ADDRESS_MAX];
    struct buf text = {.data = (uint8_t *)bytes, .cap = sizeof(bytes), .limit = sizeof(bytes)};
    uint8_t digest[MD5_LEN];
    size_t len = 0;

    url_add_host_port(ep->provider->host, ep->provider->port, &text);
    len = text.len;
    for (unsigned i = 0; i < rounds; i++) {
        buf_truncate(&text, len);
        buf_printf(&text, "%u", i);
        md5(text.data, text.len, digest);
        for (size_t j = 0; j < POINTS_PER_MD5; j++)
            r->points[r->n++] = (struct ring_point){word(digest + 4 * j), (uint32_t)index};
    }
}

/* Of one point the last endpoint of the list has it, as in Dubbo's map. */
static int by_hash(const void *a, const void *b)
{
    const struct ring_point *x = a;
    const struct ring_point *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->index < y->index) - (x->index > y->index);
}

struct hash_ring *hash_ring_new(struct endpoint *const *endpoints, size_t n, unsigned nodes)
{
    unsigned rounds = nodes_for(nodes, n) / POINTS_PER_MD5;
    size_t n_points = n * rounds * POINTS_PER_MD5;
    struct hash_ring *r = xcalloc(1, sizeof(*r) + n_points * sizeof(r->points[0]));

    r->nodes = nodes;
    r->n_endpoints = n;
    r->seen = xcalloc(n / BITS + 1, sizeof(uint64_t));
    for (size_t i = 0; i < n; i++)
        add_points(r, endpoints[i], i, rounds);
    qsort(r->points, r->n, sizeof(r->points[0]), by_hash);
    return r;
}

void hash_ring_free(struct hash_ring *r)
{
    if (r == NULL)
        return;
    free(r->seen);
    free(r);
}

struct ring_walk hash_ring_walk(struct hash_ring *r, uint32_t hash)
{
    size_t from = 0;
    size_t to = r->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (r->points[middle].hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return (struct ring_walk){.ring = r, .at = from < r->n ? from : 0};
}

/* The first one is nearly always taken: only a walk that goes on needs to know whom it has met. */
bool ring_walk_next(struct ring_walk *w, size_t *index)
{
    struct hash_ring *r = w->ring;

    if (w->passed == 1)
        memset(r->seen, 0, (r->n_endpoints / BITS + 1) * sizeof(uint64_t));
    while (w->passed < r->n) {
        size_t i = r->points[w->at].index;
        size_t last = r->points[w->at != 0 ? w->at - 1 : r->n - 1].index;

        w->at = w->at + 1 < r->n ? w->at + 1 : 0;
        if (w->passed++ != 0) {
            if (w->passed == 2)
                r->seen[last / BITS] |= UINT64_C(1) << last % BITS;
            if ((r->seen[i / BITS] >> i % BITS & 1) != 0)
                continue;
            r->seen[i / BITS] |= UINT64_C(1) << i % BITS;
        }
        *index = i;
        return true;
    }
    return false;
}
