/*
 * The bytes of a request that are the same for every call of a reference at a provider: what is before the method
 * (prefix) and the attachments that let the provider find the service (docs/PROTOCOL.md section 5).
 *
 * Counted, of one worker; providers of a reference mostly need the same bytes and share them.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"
#include "registry/provider.h"
#include "registry/refkey.h"

struct envelope {
    unsigned users;
    uint32_t n_prefix;
    uint32_t n_attachments;
    char bytes[];
};

/* The envelope of `p` with one more user: `like` (NULL = none) when the bytes are the same, else a new one.
 * A version of "*" selects providers; each of them gets its own. */
struct envelope *envelope_get(const struct refkey *k, const struct provider *p,
                              struct str application, struct envelope *like)
    __attribute__((nonnull(1, 2))) MUST_CHECK;
void envelope_put(struct envelope *e); /* NULL is fine */

/* Bytes of invoke_prefix(). */
static inline struct str envelope_prefix(const struct envelope *e)
{
    return (struct str){e->bytes, e->n_prefix};
}

/* Begin and fixed entries, no end: the call adds its own. */
static inline struct str envelope_attachments(const struct envelope *e)
{
    return (struct str){e->bytes + e->n_prefix, e->n_attachments};
}
