/*
 * Reading a registry once, for the command line: blocks, never writes.
 *
 * One thread, one registry at a time: the connection is opened at the first use, kept for the next call with
 * any address, and closed by listing_end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "registry/definition.h"
#include "registry/provider.h"

struct listing {
    struct str *names; /* in the caller's arena, sorted */
    size_t n;
};

/* Interfaces under the root, without what else lives there.  `address` as in the configuration. */
bool listing_interfaces(const char *address, const char *root, struct arena *a, struct listing *out,
                        struct err *e) NONNULL MUST_CHECK;
/* Decoded provider URLs of one interface; none is no error. */
bool listing_providers(const char *address, const char *root, struct str interface, struct arena *a,
                       struct listing *out, struct err *e)
    __attribute__((nonnull(1, 2, 4, 5, 6))) MUST_CHECK;
/* What the application of `p` published of the methods of its service.  Nothing published is an empty view. */
bool listing_methods(const char *address, const char *root, const struct provider *p,
                     struct arena *a, struct definition_view *out,
                     struct err *e) NONNULL MUST_CHECK;
/* Interfaces that ROOT/mapping knows; none is no error. */
bool listing_mapped(const char *address, const char *root, struct arena *a, struct listing *out,
                    struct err *e) NONNULL MUST_CHECK;
/* The applications that have a mapped interface; `n_instances` of each, in the same order, in `a`. */
bool listing_applications(const char *address, const char *root, struct str interface,
                          struct arena *a, struct listing *out, size_t **n_instances, struct err *e)
    __attribute__((nonnull(1, 2, 4, 5, 6, 7))) MUST_CHECK;
void listing_end(void);
