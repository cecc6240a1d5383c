/*
 * Host names to addresses, with a cache.  A lookup blocks, so only the registry thread calls this.
 *
 * A name that resolved once keeps its last address while its server does not answer: a failing name
 * server must not take providers away.  After a lookup that failed slowly, further names that are not in
 * the cache fail at once for RESOLVE_NEGATIVE_MS, so that a dead name server costs the thread one wait,
 * not one per provider.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "registry/provider.h"

enum {
    RESOLVE_POSITIVE_MS = 30000,
    RESOLVE_NEGATIVE_MS = 5000,
    RESOLVE_SLOW_MS = 1000,
    RESOLVE_ENTRIES_MAX = 4096,
};

struct resolver;

/* Looks a name up, without port.  False with a sentence. */
typedef bool resolve_lookup_fn(const char *name, union address *out, struct err *e);

/* `lookup` NULL: the system's resolver, IPv4 first. */
struct resolver *resolver_new(resolve_lookup_fn *lookup) MUST_CHECK;
void resolver_free(struct resolver *r); /* NULL is fine */

/* A numeric host never asks and is never cached. */
bool resolve(struct resolver *r, struct str host, uint16_t port, union address *out, struct err *e)
    __attribute__((nonnull(1, 4, 5))) MUST_CHECK;
