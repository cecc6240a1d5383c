/*
 * Hessian2 -> JSON text in one pass, without a tree (docs/JSON.md parts B and D2).
 *
 * Containers recurse at most max_depth deep; a frame of this recursion is under 300 bytes.  References to
 * finished containers print them again, references to open ones print null.  The limit of `out` bounds the
 * work: every printed value adds output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/hs2_read.h"
#include "codec/reply.h"
#include "codec/value_read.h"

enum hs2_json_result { HS2_JSON_OK = 0, HS2_JSON_MALFORMED, HS2_JSON_TOO_LARGE };

struct hs2_json {
    struct hs2_reader *r;
    const struct reply_opts *opts;
    struct buf *out;
    struct buf scratch; /* for class names and the texts of value classes; kept between messages */
    unsigned key_nesting; /* containers used as map keys */
    unsigned cycles;
    unsigned stripped;
    bool failed_cycle; /* opts->cycle_is_error and there was one */
};

/* Fields of a value class: where each begins. */
struct value_slots {
    struct hs2_mark mark[VALUE_SLOTS];
    bool present[VALUE_SLOTS];
};

/* Appends the value at the reader's position; on failure `out` is as before. */
enum hs2_json_result hs2_json(struct hs2_json *j) NONNULL MUST_CHECK;

/* For the rows of value_read.c: the slot's value; false when it is absent or of another kind. */
bool slot_int(struct hs2_json *j, const struct value_slots *s, unsigned slot, int64_t *out) NONNULL;
/* Appends its JSON text without quotes when it is a string. */
bool slot_text(struct hs2_json *j, const struct value_slots *s, unsigned slot,
               struct buf *out) NONNULL;
/* Is the slot there and not null? */
bool slot_is_set(const struct hs2_json *j, const struct value_slots *s, unsigned slot) NONNULL;
