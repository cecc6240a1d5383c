/*
 * Addresses in texts of providers (docs/OPERATIONS.md section 2.4).  A provider that calls others puts theirs into its
 * messages ("Tried 3 times of the providers [10.0.0.5:20880] from the registry …"); they are nobody's business
 * outside.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"

/* `text` with [address] instead of IPv4 and IPv6 addresses and of HOST:PORT; in `a`. */
struct str without_addresses(struct str text, struct arena *a) __attribute__((nonnull(2)));
