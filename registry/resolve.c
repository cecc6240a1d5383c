#include "registry/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/hash.h"
#include "registry/network.h"
#include "registry/url.h"

/* Entries stand in the table in the order of their last look-up: the first one is the oldest. */
struct entry {
    UT_hash_handle hh;
    union address addr; /* AF_UNSPEC: never resolved */
    uint64_t due_ms;    /* asked again from then on */
    struct err why;     /* of the last look-up; empty = it worked */
    size_t name_len;
    char name[];
};

struct resolver {
    resolve_lookup_fn *lookup;
    struct entry *entries;
    uint64_t quiet_until_ms; /* the name server does not answer */
};

static bool copy_address(const struct addrinfo *from, union address *out)
{
    if ((from->ai_family != AF_INET && from->ai_family != AF_INET6) ||
        from->ai_addrlen > sizeof(*out))
        return false;
    memcpy(out, from->ai_addr, from->ai_addrlen);
    return true;
}

/* IPv4 first: Dubbo providers listen there unless told otherwise. */
static bool pick_address(const struct addrinfo *all, union address *out)
{
    for (const struct addrinfo *i = all; i != NULL; i = i->ai_next) {
        if (i->ai_family == AF_INET)
            return copy_address(i, out);
    }
    for (const struct addrinfo *i = all; i != NULL; i = i->ai_next) {
        if (copy_address(i, out))
            return true;
    }
    return false;
}

static bool system_lookup(const char *name, union address *out, struct err *e)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(name, NULL, &hints, &found);
    bool ok = false;

    if (rc != 0) {
        err_set(e, "%s: %s", name, gai_strerror(rc));
        return false;
    }
    ok = pick_address(found, out);
    if (!ok)
        err_set(e, "%s: no IP address", name);
    freeaddrinfo(found);
    return ok;
}

struct resolver *resolver_new(resolve_lookup_fn *lookup)
{
    struct resolver *r = xcalloc(1, sizeof(*r));

    r->lookup = lookup != NULL ? lookup : system_lookup;
    return r;
}

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): the macros of uthash */
static struct entry *table_find(struct resolver *r, struct str host)
{
    struct entry *x = NULL;

    HASH_FIND(hh, r->entries, host.p, host.n, x);
    return x;
}

static void table_add(struct resolver *r, struct entry *x)
{
    HASH_ADD_KEYPTR(hh, r->entries, x->name, x->name_len, x);
}

static void table_remove(struct resolver *r, struct entry *x)
{
    HASH_DEL(r->entries, x);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

static void forget(struct resolver *r, struct entry *x)
{
    table_remove(r, x);
    free(x);
}

void resolver_free(struct resolver *r)
{
    if (r == NULL)
        return;
    while (r->entries != NULL)
        forget(r, r->entries);
    free(r);
}

static struct entry *entry_of(struct resolver *r, struct str host)
{
    struct entry *x = table_find(r, host);

    if (x != NULL)
        return x;
    if (HASH_COUNT(r->entries) >= RESOLVE_ENTRIES_MAX)
        forget(r, r->entries);
    x = xcalloc(1, sizeof(*x) + host.n + 1);
    x->addr.sa.sa_family = AF_UNSPEC;
    x->name_len = host.n;
    memcpy(x->name, host.p, host.n);
    table_add(r, x);
    return x;
}

/* A failure leaves the address that was known. */
static void look_up(struct resolver *r, struct entry *x)
{
    union address found = {.sa.sa_family = AF_UNSPEC};
    uint64_t started = clock_ms();

    if (started < r->quiet_until_ms) {
        err_set(&x->why, "%s: not asked, the name server does not answer", x->name);
        x->due_ms = r->quiet_until_ms;
        return;
    }
    x->why.text[0] = '\0';
    if (r->lookup(x->name, &found, &x->why)) {
        x->addr = found;
        x->due_ms = clock_ms() + RESOLVE_POSITIVE_MS;
        return;
    }

    uint64_t now = clock_ms();

    x->due_ms = now + RESOLVE_NEGATIVE_MS;
    if (now - started >= RESOLVE_SLOW_MS)
        r->quiet_until_ms = x->due_ms;
}

static void set_port(union address *addr, uint16_t port)
{
    if (addr->sa.sa_family == AF_INET)
        addr->v4.sin_port = htons(port);
    else
        addr->v6.sin6_port = htons(port);
}

bool resolve(struct resolver *r, struct str host, uint16_t port, union address *out, struct err *e)
{
    struct entry *x = NULL;

    if (address_from_text(host, port, out))
        return true;
    if (!url_host_ok(host)) {
        err_set(e, "host is neither an address nor a name");
        return false;
    }
    x = entry_of(r, host);
    if (x->due_ms <= clock_ms()) {
        table_remove(r, x);
        table_add(r, x);
        look_up(r, x);
    }
    if (x->addr.sa.sa_family == AF_UNSPEC) {
        *e = x->why;
        return false;
    }
    *out = x->addr;
    set_port(out, port);
    return true;
}
