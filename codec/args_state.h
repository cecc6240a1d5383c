/*
 * What the files that encode arguments share: the reader, the output, and what has to run through one whole
 * message (class definitions).  Not for callers of codec/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/json_args.h"
#include "codec/json_read.h"

enum { ARGS_CLASSES = 32, ARGS_KEYS_INLINE = 64 };

/* Kilobytes that are written before they are read: not cleared for every argument. */
#define NO_AUTO_INIT __attribute__((uninitialized))

/* A key of an object: enough to find it again in the text. */
struct args_key {
    uint32_t object; /* number of the object in this argument, from 1; 0 = free slot */
    uint32_t hash;
    uint32_t at; /* offset of the raw text */
    uint32_t len;
    bool plain;
};

struct args_state {
    const struct args_opts *opts;
    struct buf *out;
    struct args_error *e;
    struct json_reader j;
    struct buf scratch;                /* decoded texts */
    const char *classes[ARGS_CLASSES]; /* definitions written so far, by number */
    unsigned n_classes;
    /* duplicate keys: open addressing over all objects of one argument */
    struct args_key keys_inline[ARGS_KEYS_INLINE];
    struct args_key *keys;
    size_t keys_cap;
    size_t n_keys;
    uint32_t n_objects;
};

void args_begin(struct args_state *s, const struct args_opts *opts, struct buf *out,
                struct args_error *e) NONNULL;
void args_end(struct args_state *s) NONNULL;
/* One argument; the definitions of earlier ones count on. */
enum args_result args_one(struct args_state *s, const struct arg *arg) NONNULL;

/* All of these return false after filling `e`. */
bool args_natural(struct args_state *s, struct json_token t) NONNULL __attribute__((noinline));
bool args_typed(struct args_state *s, struct json_token t, const struct jtype *type) NONNULL;
/* A row of value_write.c for type->name. */
bool args_value(struct args_state *s, struct json_token t, const struct jtype *type) NONNULL;
/* `"abc" is not a java.lang.Long` */
bool args_mismatch(struct args_state *s, const struct json_token *t, struct str type) NONNULL;
bool args_fail(struct args_state *s, enum args_result r, const char *fmt, ...) PRINTF_LIKE(3, 4)
    __attribute__((nonnull(1, 3)));
/* The reader's error as a BAD_JSON. */
bool args_syntax(struct args_state *s) NONNULL;

/* Begins an object of this class, defining it when this message has not yet. */
void args_object(struct args_state *s, const char *class, const char *const *fields,
                 size_t n) NONNULL;
/* A number token or a string that holds one, as a whole number in [lo, hi]. */
bool args_integer(const struct json_token *t, int64_t lo, int64_t hi, int64_t *out) NONNULL;
/* The decoded text of a string token, valid until the scratch buffer is used again. */
struct str args_text(struct args_state *s, const struct json_token *t) NONNULL;

/* json_args_number.c: numbers by declared type, and one without. */
bool args_put_whole(struct args_state *s, const struct json_token *t,
                    const struct jtype *type) NONNULL;
bool args_put_double(struct args_state *s, const struct json_token *t,
                     const struct jtype *type) NONNULL;
bool args_put_big(struct args_state *s, const struct json_token *t,
                  const struct jtype *type) NONNULL;
bool args_put_number(struct args_state *s, const struct json_token *t,
                     const struct jtype *type) NONNULL;
void args_put_natural_number(struct args_state *s, struct str token) __attribute__((nonnull(1)));

/* json_args.c */
bool args_natural_scalar(struct args_state *s, const struct json_token *t) NONNULL;
/* json_args_nested.c: the length of an open list is known; a map by its declared type; the place of an
 * error in the text. */
void args_close_list(struct args_state *s, size_t place, size_t n) NONNULL;
bool args_map(struct args_state *s, struct json_token t, const struct jtype *type) NONNULL;
/* An array and an object by what is known of their elements and members.  Recursive: the reader bounds the depth,
 * and only the natural values at the leaves need large frames. */
bool args_list(struct args_state *s, struct json_token t, const struct jtype *type) NONNULL;
bool args_pojo(struct args_state *s, struct json_token t, const struct jtype *type) NONNULL;
void args_point_at(struct args_error *e, struct str json) __attribute__((nonnull(1)));
