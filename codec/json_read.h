/*
 * JSON text as a stream of tokens: strict RFC 8259, strict UTF-8, numbers raw, no tree (docs/JSON.md part C).
 *
 * A token is a slice of the text; strings are checked but not decoded.  Nesting is counted, not recursed, up
 * to the depth given.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum json_kind {
    JSON_TOKEN_NULL,
    JSON_TOKEN_TRUE,
    JSON_TOKEN_FALSE,
    JSON_TOKEN_NUMBER, /* text = the token */
    JSON_TOKEN_STRING, /* text = between the quotes; `plain`: nothing to unescape */
    JSON_TOKEN_BEGIN_ARRAY,
    JSON_TOKEN_END_ARRAY,
    JSON_TOKEN_BEGIN_OBJECT,
    JSON_TOKEN_END_OBJECT,
    JSON_TOKEN_KEY, /* like a string; its colon is passed */
    JSON_TOKEN_END, /* the text ends, after one whole value */
    JSON_TOKEN_ERROR,
};

struct json_token {
    enum json_kind kind;
    struct str text;
    bool plain; /* no escapes */
    bool ascii; /* no bytes over 0x7f */
};

enum { JSON_DEPTH_MAX = 256 };

struct json_reader {
    const char *base;
    const char *p;
    const char *end;
    const char *error; /* why the last token is JSON_TOKEN_ERROR; static text */
    unsigned depth;
    unsigned max_depth;
    enum { JSON_WANT_VALUE, JSON_WANT_FIRST, JSON_WANT_NEXT, JSON_DONE } want;
    uint64_t in_object[JSON_DEPTH_MAX / 64]; /* one bit per level */
};

void json_begin(struct json_reader *j, struct str text, unsigned max_depth)
    __attribute__((nonnull(1)));
struct json_token json_next(struct json_reader *j) NONNULL;
/* Passes the rest of the container or the value whose first token was `t`; false on an error. */
bool json_skip(struct json_reader *j, const struct json_token *t) NONNULL MUST_CHECK;
/* Byte offset of the reader. */
size_t json_offset(const struct json_reader *j) NONNULL;
/* Line and column (in characters) of a byte offset, both from 1. */
void json_position(struct str text, size_t offset, unsigned *line, unsigned *column)
    __attribute__((nonnull(3, 4)));

/* Appends the string of a token, unescaped, as UTF-8. */
void json_unescape(const struct json_token *t, struct buf *out) NONNULL;
/* Is the token's string this text? */
bool json_string_is(const struct json_token *t, struct str text) __attribute__((nonnull(1)));
/* `text` is one JSON string in quotes; false when it is not. */
bool json_string_decode(struct str text, struct buf *out) __attribute__((nonnull(2))) MUST_CHECK;

/* Is the text one whole JSON value?  `error_at` (may be NULL) gets the offset of the fault. */
bool json_is_valid(struct str text, unsigned max_depth, size_t *error_at, const char **error);

/* The raw slices of a container's content, for callers that want parts of a document they have checked
 * before (json_is_valid).  Start with a zeroed iterator. */
struct json_each {
    struct json_reader reader;
    bool started;
};
/* The next element of the array `text`. */
bool json_array_next(struct json_each *e, struct str text, struct str *element)
    __attribute__((nonnull(1, 3)));
/* The next member of the object `text`; the key is a token, to be compared with json_string_is. */
bool json_object_next(struct json_each *e, struct str text, struct json_token *key,
                      struct str *value) __attribute__((nonnull(1, 3, 4)));
/* The member of that name (the last one if it is there twice). */
bool json_member(struct str object, struct str key, struct str *value)
    __attribute__((nonnull(3))) MUST_CHECK;
/* The kind of the value that the text begins with. */
enum json_kind json_kind_of(struct str text);
