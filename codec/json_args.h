/*
 * JSON values as arguments of a generic call: JSON text -> Hessian2 in one pass, by declared Java
 * type or, without one, by natural value (docs/JSON.md part A).  No tree is built and numbers keep
 * exactly the digits of the text.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "codec/jtype.h"

enum args_class_key { ARGS_CLASS_REJECT, ARGS_CLASS_STRIP, ARGS_CLASS_PASS };

struct args_opts {
    enum args_class_key class_key;
    const struct str *allow_classes; /* with ARGS_CLASS_PASS: the only class names that may pass */
    size_t n_allow_classes;
    bool duplicate_keys_last; /* false: a repeated key is refused */
    bool decimals_as_string;  /* untyped decimals: always text */
    bool preserve_order;      /* Map parameters as LinkedHashMap */
    int32_t utc_offset_s;     /* zone of date texts that name none; seconds east of UTC */
    unsigned max_depth;       /* nesting of arrays and objects; 128 in the product */
};

enum args_result {
    ARGS_OK = 0,
    ARGS_BAD_JSON,     /* 400 BAD_REQUEST: syntax, depth, lone surrogate, duplicate key */
    ARGS_BAD_ARGUMENT, /* 400 BAD_ARGUMENT: value does not fit the type, class key */
    ARGS_UNKNOWN_TYPE, /* 400 UNKNOWN_TYPE */
    ARGS_TOO_LARGE,    /* 413: the output limit of `out` was reached */
};

/* What the client has to mend.  `detail` starts lower case and quotes at most 64 bytes of input. */
struct args_error {
    enum args_result result;
    size_t arg;        /* index of the argument */
    size_t offset;     /* byte offset into that argument's text */
    unsigned line;     /* of the text handed in, from 1; 0 when it makes no sense */
    unsigned column;   /* in characters, from 1 */
    char pointer[128]; /* JSON pointer inside the argument, "" = the argument itself */
    char detail[256];
};

struct arg {
    struct str json;          /* one JSON value; blanks around it are allowed */
    const struct jtype *type; /* NULL: natural value */
};

/* Appends one value to `out`.  `out->limit` bounds the output. */
enum args_result arg_encode(const struct arg *arg, const struct args_opts *opts, struct buf *out,
                            struct args_error *e) NONNULL MUST_CHECK;
