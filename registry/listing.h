/*
 * Reading a registry once, for the command line: blocks, never writes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct listing {
    struct str *names;
    size_t n;
};

/* Interfaces under the root.  `address` as in the configuration. */
bool listing_interfaces(const char *address, const char *root, struct arena *a, struct listing *out,
                        struct err *e) NONNULL MUST_CHECK;
/* Decoded provider URLs of one interface; none is no error. */
bool listing_providers(const char *address, const char *root, struct str interface, struct arena *a,
                       struct listing *out, struct err *e)
    __attribute__((nonnull(1, 2, 4, 5, 6))) MUST_CHECK;
/* The same over one connection: opened at the first use, closed by listing_end. */
void listing_end(void);
