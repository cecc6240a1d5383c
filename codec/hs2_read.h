/*
 * Reading Hessian2 (docs/HESSIAN2.md): tokens, and the three tables that run through a message.
 *
 * A reader works on one contiguous message.  References point backwards to containers, so the reader
 * remembers where each container began; to print one again it jumps there and reads on in replay: the
 * counters go back to what they were, the tables stay as they are.
 *
 * Every length is checked against the bytes that are left before it is used, and the tables grow only by
 * what was really read.  Containers nest at most max_depth deep (at most HS2_DEPTH_MAX), which also bounds
 * the stack of the functions that walk them.
 *
 * A reader belongs to one thread; its tables keep their memory from message to message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum {
    HS2_DEPTH_MAX = 256,
    HS2_CLASSES_MAX = 65536,
    HS2_TYPES_MAX = 65536,
    HS2_REFS_MAX = 1 << 20,
    HS2_FIELDS_MAX = 1 << 20,
    HS2_NAMES_MAX = 16 << 20, /* bytes of field and class names kept per message */
};

enum hs2_kind {
    HS2_NULL,
    HS2_TRUE,
    HS2_FALSE,
    HS2_INT,    /* number */
    HS2_LONG,   /* number */
    HS2_DOUBLE, /* real */
    HS2_DATE,   /* number: milliseconds since 1970 UTC */
    HS2_STRING, /* position is at its opcode: hs2_text or hs2_skip_text reads it */
    HS2_BINARY, /* the same with hs2_binary */
    HS2_LIST,   /* count elements, or until the end mark when count < 0 */
    HS2_MAP,    /* keys and values until the end mark */
    HS2_OBJECT, /* class_index; its fields follow */
    HS2_REF,    /* ref */
    HS2_BAD,    /* malformed: the reader is at the bad byte and stays there */
};

struct hs2_token {
    enum hs2_kind kind;
    int64_t number;
    double real;
    int64_t count;
    uint32_t class_index;
    uint32_t ref; /* LIST, MAP, OBJECT: its own number; REF: the one meant */
};

/* Where a value begins and what the tables held there: enough to read it again. */
struct hs2_mark {
    uint32_t at;
    uint32_t n_refs;
    uint32_t n_types;
    uint32_t n_classes;
};

struct hs2_ref {
    struct hs2_mark mark; /* before the container's opcode */
    uint32_t open;        /* how many times it is being read now */
};

struct hs2_field {
    uint32_t name; /* offset in names: JSON-escaped, without quotes */
    uint32_t len;
    bool hidden; /* a later field of the same name counts */
    int8_t slot; /* of the value class; -1 = none */
};

struct hs2_class {
    uint32_t name; /* offset in names: plain UTF-8 */
    uint32_t name_len;
    uint32_t first_field;
    uint32_t n_fields;
    const struct value_class *value; /* NULL: an ordinary object */
};

struct hs2_reader {
    const uint8_t *base;
    const uint8_t *p;
    const uint8_t *end;
    unsigned depth;
    unsigned max_depth;
    uint32_t n_refs; /* as of the current position; the table may hold more during replay */
    uint32_t n_types;
    uint32_t n_classes;
    struct hs2_ref *refs;
    struct hs2_class *classes;
    struct hs2_field *fields;
    uint32_t refs_len, refs_cap;
    uint32_t classes_len, classes_cap;
    uint32_t fields_len, fields_cap;
    uint32_t types_len;
    struct buf names;
};

void hs2_init(struct hs2_reader *r) NONNULL;
void hs2_free(struct hs2_reader *r) NONNULL;
/* A new message; its bytes must stay until the last use. */
void hs2_begin(struct hs2_reader *r, const uint8_t *p, size_t n, unsigned max_depth)
    __attribute__((nonnull(1)));

/* Reads one opcode with its header.  Class definitions on the way are taken in. */
struct hs2_token hs2_next(struct hs2_reader *r) NONNULL;
/* At the end mark of a map or list of unknown length?  Then it is passed. */
bool hs2_at_end(struct hs2_reader *r) NONNULL;

/* Containers are opened after their token and closed after their content; false: nested too deep. */
bool hs2_open(struct hs2_reader *r, uint32_t ref) NONNULL MUST_CHECK;
void hs2_close(struct hs2_reader *r, uint32_t ref) NONNULL;

enum hs2_text_form { HS2_TEXT_PLAIN, HS2_TEXT_JSON };
/* The string that begins here, appended as UTF-8; HS2_TEXT_JSON escapes it (no quotes).  `out` may be NULL. */
bool hs2_text(struct hs2_reader *r, struct buf *out, enum hs2_text_form form)
    __attribute__((nonnull(1))) MUST_CHECK;
/* The bytes that begin here; `out` may be NULL. */
bool hs2_binary(struct hs2_reader *r, struct buf *out) __attribute__((nonnull(1))) MUST_CHECK;
/* Passes one whole value, keeping the tables right. */
bool hs2_skip(struct hs2_reader *r) NONNULL MUST_CHECK;

struct hs2_mark hs2_mark(const struct hs2_reader *r) NONNULL;
void hs2_jump(struct hs2_reader *r, struct hs2_mark m) NONNULL;

/* Bytes behind the position. */
static inline size_t hs2_left(const struct hs2_reader *r)
{
    return (size_t)(r->end - r->p);
}

static inline struct str hs2_name(const struct hs2_reader *r, uint32_t at, uint32_t len)
{
    return (struct str){(const char *)r->names.data + at, len};
}
