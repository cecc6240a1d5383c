/*
 * Java type names as operators and clients write them: parsed once, refused with a sentence that says
 * how to write them (docs/PROTOCOL.md section 5, docs/JSON.md part A1).
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* What JSON has to become for a parameter of this type. */
enum jtype_kind {
    JTYPE_BOOLEAN,
    JTYPE_BYTE,
    JTYPE_SHORT,
    JTYPE_INT,
    JTYPE_LONG,
    JTYPE_FLOAT,
    JTYPE_DOUBLE,
    JTYPE_CHAR, /* all of the above: primitive when `primitive`, else the boxed class */
    JTYPE_STRING,
    JTYPE_NUMBER, /* java.lang.Number: any number, no text */
    JTYPE_BIG_DECIMAL,
    JTYPE_BIG_INTEGER,
    JTYPE_DATE,   /* java.util.Date */
    JTYPE_VALUE,  /* a row of value_write.c: java.sql dates, java.time, UUID, … */
    JTYPE_OBJECT, /* java.lang.Object: natural value */
    JTYPE_LIST,   /* collections */
    JTYPE_MAP,
    JTYPE_ARRAY,
    JTYPE_UNSUPPORTED, /* Dubbo converts nothing to it: SortedSet, Queue, Optional */
    JTYPE_OTHER,       /* enums and POJOs: string or object */
};

struct jtype {
    enum jtype_kind kind;
    bool primitive;
    unsigned dims;               /* 0 = no array */
    struct str name;             /* as it goes on the wire, e.g. "java.lang.String[]" */
    const struct jtype *element; /* JTYPE_ARRAY: its element type.  JTYPE_LIST, JTYPE_MAP: of the
                                        elements or values; NULL = not known */
    const struct jtype_class *class; /* JTYPE_OTHER: what is known of it; NULL = nothing */
};

struct jtype_property {
    struct str name;
    const struct jtype *type;
};

/* A class of somebody's own, as its provider described it. */
struct jtype_class {
    const struct jtype_property *properties; /* sorted by name */
    size_t n_properties;
    const struct str *enums; /* constants; none: no enum */
    size_t n_enums;
};

/* The type of a property; NULL when the class does not declare it. */
const struct jtype *jtype_property(const struct jtype_class *c, struct str name)
    __attribute__((nonnull(1)));
bool jtype_has_constant(const struct jtype_class *c, struct str name) __attribute__((nonnull(1)));

/* `e` gets e.g. `"Long" is not a full Java type; did you mean "java.lang.Long"?` (docs/OPERATIONS.md
 * section 1.4, E-type).  The result points into `a`. */
bool jtype_parse(struct str text, struct arena *a, struct jtype *out, struct err *e)
    __attribute__((nonnull(2, 3, 4))) MUST_CHECK;
