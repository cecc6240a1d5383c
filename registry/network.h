/*
 * Which addresses a provider may have (registries[].provider_networks).
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "registry/provider.h"

struct network {
    union address addr; /* port 0 */
    unsigned prefix_len;
};

/* "10.0.0.0/8", "fd00::/8", or one address.  Bits behind the prefix must be zero. */
bool network_parse(struct str text, struct network *out, struct err *e)
    __attribute__((nonnull(2, 3))) MUST_CHECK;

/* An IPv4-mapped IPv6 address counts as its IPv4 address. */
bool network_contains(const struct network *net, const union address *addr) NONNULL;

/*
 * May a provider have this address?  With networks: only inside one of them.  Without: everything but
 * link-local and cloud-metadata addresses.  Never: unspecified, multicast, broadcast.
 */
bool network_allows(const struct network *nets, size_t n, const union address *addr)
    __attribute__((nonnull(3)));

/* A numeric address ("127.1" too, IPv6 with an optional %scope), no lookup. */
bool address_from_text(struct str host, uint16_t port, union address *out)
    __attribute__((nonnull(3))) MUST_CHECK;
/* The address without its port; "?" when there is none. */
void address_print(const union address *addr, struct buf *out) NONNULL;
