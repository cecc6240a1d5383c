/*
 * What a provider published of its service: methods with their parameter types, classes with the types of their
 * properties (docs/REGISTRY.md section 7).
 *
 * The nodes of 2.7 (nested types with references) and 3.x (flat types) are read into the same form and kept as
 * one block of JSON in the flat form: a tenth of the node, the same text in the saved list, and nothing to free but
 * the block.  Whoever encodes calls by it makes its own tables of it, once for all threads.
 *
 * Pure functions; any thread.  The count and `tables` may be used by any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/ref.h"
#include "base/str.h"

enum {
    DEFINITION_NODE_MAX = 1 << 20,   /* bytes of a node: what a ZooKeeper server takes */
    DEFINITION_MAX = 256 << 10,      /* bytes that are kept */
    DEFINITION_METHODS_MAX = 2048,   /* overloads count each */
    DEFINITION_PARAMS_MAX = 64,      /* of a method */
    DEFINITION_TYPES_MAX = 4096,     /* classes with properties, and enums */
    DEFINITION_PROPERTIES_MAX = 512, /* of a class; constants of an enum: the same */
    DEFINITION_NAME_MAX = 512,       /* of a type, its arguments included */
    DEFINITION_NESTING_MAX = 64,     /* of 2.7's types */
};

/* Types are written as Java sources have them, inner classes with '$': java.util.Map<java.lang.String,a.Outer$In[]>.
 * Type variables and wildcards are their bound, else java.lang.Object. */
struct definition_method {
    struct str name;
    struct str returns;
    const struct str *params;
    size_t n_params;
};

struct definition_property {
    struct str name;
    struct str type;
};

struct definition_type {
    struct str name;
    const struct definition_property *properties; /* sorted by name */
    size_t n_properties;
    const struct str *enums; /* its constants; none: no enum */
    size_t n_enums;
};

struct definition_view {
    const struct definition_method *methods; /* sorted by name, then parameters; no two the same */
    size_t n_methods;
    const struct definition_type *types; /* sorted by name */
    size_t n_types;
};

/* Reads a node of either form, or what definition_print wrote.  What is no Java name is left out; false with a
 * sentence when the text is no definition or over a limit.  Everything in `out` lives in `a`. */
bool definition_parse(struct str json, struct arena *a, struct definition_view *out, struct err *e)
    __attribute__((nonnull(2, 3, 4))) MUST_CHECK;

/* What a service port of 2.6 answers to `ls -l INTERFACE`: lines "reg.api.Order get(java.lang.Long,boolean)", then the
 * prompt.  What is no Java name is left out; false with a sentence when no method is left (which quotes the refusal),
 * when the prompt is missing, or over a limit.  Everything in `out` lives in `a`. */
bool definition_parse_telnet(struct str text, struct arena *a, struct definition_view *out,
                             struct err *e) __attribute__((nonnull(2, 3, 4))) MUST_CHECK;
/* Has the answer come as far as its prompt? */
bool definition_telnet_is_whole(struct str text) MUST_CHECK;

/* JSON in the flat form; definition_parse reads the same view out of it. */
void definition_print(const struct definition_view *v, struct buf *out) NONNULL;

/* "reg.api.Order get(java.lang.Long,boolean)" */
void definition_print_method(const struct definition_method *m, struct buf *out) NONNULL;

/* A type as metadata has it in the form above, in `a`.  False: it is none. */
bool definition_type_name(struct str text, struct arena *a, struct str *out)
    __attribute__((nonnull(2, 3))) MUST_CHECK;

/* What a user of a definition made of it: the first member of that. */
struct definition_tables {
    void (*free)(struct definition_tables *t);
};

/* Immutable and counted. */
struct definition {
    struct ref_count refs;
    struct ref_late tables; /* struct definition_tables */
    size_t n;
    char text[]; /* definition_print's */
};

/* Count 1.  NULL with a sentence: over DEFINITION_MAX. */
struct definition *definition_new(const struct definition_view *v,
                                  struct err *e) NONNULL MUST_CHECK;
/* The same from a node, saved text, or what telnet answered. */
struct definition *definition_read(struct str json, struct err *e)
    __attribute__((nonnull(2))) MUST_CHECK;
struct definition *definition_read_telnet(struct str text, struct err *e)
    __attribute__((nonnull(2))) MUST_CHECK;
struct definition *definition_get(struct definition *d) NONNULL;
void definition_put(struct definition *d); /* NULL is fine */
bool definition_equal(const struct definition *a, const struct definition *b) NONNULL;

enum { DEFINITIONS_MAX = 4 }; /* applications of one reference that may differ */

/* What the applications behind one reference published, that with most providers first.  Immutable, counted. */
struct definitions {
    struct ref_count refs;
    size_t n;
    struct definition *v[DEFINITIONS_MAX];
};
/* Takes counts of its own. */
struct definitions *definitions_new(struct definition *const *v, size_t n)
    __attribute__((nonnull(1))) MUST_CHECK;
struct definitions *definitions_get(struct definitions *d) NONNULL;
void definitions_put(struct definitions *d); /* NULL is fine */
