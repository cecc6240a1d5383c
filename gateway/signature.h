/*
 * The methods of a service as its provider described them, ready for encoding (docs/REGISTRY.md section 7): made from
 * a definition by the first worker that needs it, then shared by all of them.
 *
 * Threads: any; immutable once made.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "codec/jtype.h"
#include "registry/definition.h"

struct signature {
    struct str name;
    const struct jtype *types; /* as `$invoke` takes them: without type arguments */
    size_t n;
    bool returns_float; /* float or Float: 2.6 widens it on its way */
    struct str text;    /* "get(java.lang.Long,boolean)" */
};

struct signatures {
    struct definition_tables tables; /* first member */
    struct arena arena;
    struct signature *v; /* sorted by name; overloads stand together */
    size_t n;
};

/* They live as long as the definition. */
const struct signatures *signatures_of(struct definition *d) NONNULL MUST_CHECK;
/* The overloads of a method; returns their number. */
size_t signatures_named(const struct signatures *s, struct str method,
                        const struct signature **first) __attribute__((nonnull(1, 3)));
