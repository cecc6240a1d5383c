/*
 * A provider's answer: response frame -> JSON text and what kind of answer it was (docs/PROTOCOL.md
 * sections 3, 6 and 10, docs/JSON.md part B).  One pass, no tree; shared objects are written again
 * where they are referred to, cycles become null.
 *
 * A decoder belongs to one thread and is used again for every answer: its tables keep their memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "codec/frame.h"

enum reply_date { REPLY_DATE_RFC3339, REPLY_DATE_EPOCH_MS };
enum reply_longs { REPLY_LONG_NUMBER, REPLY_LONG_UNSAFE_AS_STRING, REPLY_LONG_AS_STRING };

struct reply_opts {
    bool keep_class; /* false: `class` members that hold a Java class name are left out */
    bool omit_nulls;
    bool decimal_as_string;  /* BigDecimal, BigInteger */
    bool bytes_as_array;     /* else Base64 */
    bool non_finite_as_null; /* else "NaN", "Infinity", "-Infinity" */
    bool cycle_is_error;     /* else null */
    bool no_rebuild;         /* do not turn UUID, Instant … getter maps back into text */
    bool result_is_float;    /* declared result float: shortest float text (2.6 widens it) */
    enum reply_date date;
    enum reply_longs longs;
    unsigned max_depth; /* 128 in the product */
};

enum reply_kind {
    REPLY_VALUE,     /* status 20, kinds 1 and 4: `json` holds the value */
    REPLY_NULL,      /* status 20, kinds 2 and 5: null or void; `json` is untouched */
    REPLY_EXCEPTION, /* status 20, kinds 0 and 3 */
    REPLY_STATUS,    /* any other status: `text` holds what the provider says, possibly empty */
};

enum reply_result {
    REPLY_OK = 0,
    REPLY_MALFORMED,   /* the body does not decode, or is nested too deep */
    REPLY_TOO_LARGE,   /* the limit of the output buffer was reached */
    REPLY_UNSUPPORTED, /* status 20 in a serialization other than Hessian2 */
};

/* Texts are valid until the decoder is used again. */
struct reply {
    enum reply_kind kind;
    uint8_t status; /* byte 3 of the frame */
    uint8_t serial; /* serialization id of the frame */
    struct str
        exception_class; /* REPLY_EXCEPTION: of the innermost named class (GenericException unwrapped) */
    struct str exception_message; /* whole message, valid UTF-8 */
    struct str text;              /* REPLY_STATUS: valid UTF-8, at most 4 KiB */
    unsigned cycles;              /* how often null stands for a cycle */
    unsigned stripped;            /* class members left out */
};

/* Called for each attachment of the answer whose value is a string; texts as in struct reply. */
typedef void (*reply_attachment_fn)(void *ctx, struct str name, struct str value);

struct reply_decoder;

struct reply_decoder *reply_decoder_new(void) MUST_CHECK;
void reply_decoder_free(struct reply_decoder *d);

/*
 * Decodes `body` (f->body_len bytes) of a response frame.  JSON goes to the end of `json`, whose limit
 * bounds it; after anything but REPLY_OK `json` is as before.  `attachment` may be NULL.  `r` is filled
 * as far as possible whatever the result (status and serial always).
 */
enum reply_result reply_decode(struct reply_decoder *d, const struct frame *f, const uint8_t *body,
                               const struct reply_opts *opts, struct buf *json, struct reply *r,
                               reply_attachment_fn attachment, void *ctx)
    __attribute__((nonnull(1, 2, 4, 5, 6))) MUST_CHECK;

/* Event frames (docs/PROTOCOL.md section 7). */
enum reply_event { EVENT_HEARTBEAT, EVENT_READONLY, EVENT_UNKNOWN };
enum reply_event reply_event_decode(const struct frame *f, const uint8_t *body) NONNULL;
