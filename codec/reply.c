#include "codec/reply.h"

#include <stdlib.h>

#include "base/fatal.h"
#include "codec/hs2_json.h"
#include "codec/serial.h"
#include "codec/utf.h"

enum {
    STATUS_OK = 20,
    STATUS_TEXT_MAX = 4096,
    ATTACHMENTS_MAX = 4096,
    EVENT_BODY_MAX = 15,
    KEEP_SCRATCH = 65536,
    TEXT_LIMIT = 16 * 1024 * 1024,
};

enum kind {
    KIND_EXCEPTION = 0,
    KIND_VALUE = 1,
    KIND_NULL = 2,
    KIND_WITH_ATTACHMENTS = 3, /* added to the above */
};

struct reply_decoder {
    struct hs2_reader reader;
    struct buf scratch; /* of the JSON writer */
    struct buf text;    /* what struct reply points at */
};

struct reply_decoder *reply_decoder_new(void)
{
    struct reply_decoder *d = xcalloc(1, sizeof(*d));

    hs2_init(&d->reader);
    buf_init(&d->scratch, TEXT_LIMIT);
    buf_init(&d->text, TEXT_LIMIT);
    return d;
}

void reply_decoder_free(struct reply_decoder *d)
{
    if (d == NULL)
        return;
    hs2_free(&d->reader);
    buf_free(&d->scratch);
    buf_free(&d->text);
    free(d);
}

/* ---------------------------------------------------------------- statuses other than 20 */

static void decode_text(struct reply_decoder *d, const struct frame *f, const uint8_t *body,
                        struct reply *r)
{
    const struct serial *s = serial_find(r->serial);

    r->kind = REPLY_STATUS;
    /* the status decides; a text that cannot be read is an empty one */
    if (s == NULL || !s->decode_text(body, f->body_len, &d->text)) {
        buf_truncate(&d->text, 0);
        return;
    }
    r->text = utf_cut(buf_str(&d->text), STATUS_TEXT_MAX);
}

/* ---------------------------------------------------------------- exceptions */

/* A text field of the exception object as UTF-8 behind d->text; null and others give an empty one.  Only
 * the place is kept: the buffer may still move. */
struct place {
    size_t from;
    size_t len;
};

static bool take_text_field(struct reply_decoder *d, struct place *out)
{
    struct hs2_reader *r = &d->reader;
    struct hs2_mark at = hs2_mark(r);

    out->from = d->text.len;
    out->len = 0;
    if (hs2_next(r).kind != HS2_STRING) {
        hs2_jump(r, at);
        return hs2_skip(r);
    }
    if (!hs2_text(r, &d->text, HS2_TEXT_PLAIN))
        return false;
    out->len = d->text.len - out->from;
    return true;
}

struct exception {
    struct place class;   /* exceptionClass */
    struct place message; /* exceptionMessage */
    struct place detail;  /* detailMessage */
    bool wrapped;
};

static bool take_fields(struct reply_decoder *d, const struct hs2_class *c, struct exception *e)
{
    for (uint32_t i = 0; i < c->n_fields; i++) {
        struct hs2_field f = d->reader.fields[c->first_field + i];
        struct str name = hs2_name(&d->reader, f.name, f.len);
        bool ok = false;

        if (str_is(name, "exceptionClass")) {
            ok = take_text_field(d, &e->class);
            e->wrapped = true;
        } else if (str_is(name, "exceptionMessage")) {
            ok = take_text_field(d, &e->message);
        } else if (str_is(name, "detailMessage")) {
            ok = take_text_field(d, &e->detail);
        } else {
            ok = hs2_skip(&d->reader);
        }
        if (!ok)
            return false;
    }
    return true;
}

static struct str at_place(const struct reply_decoder *d, struct place p)
{
    return p.len != 0 ? (struct str){(const char *)d->text.data + p.from, p.len} : STR_NONE;
}

/* docs/PROTOCOL.md section 10: a GenericException names the real one in its fields; any other object is
 * the exception itself. */
static bool decode_exception(struct reply_decoder *d, struct reply *out)
{
    struct hs2_reader *r = &d->reader;
    struct hs2_token t = hs2_next(r);
    struct exception e = {0};
    struct hs2_class c;
    bool ok = false;

    out->kind = REPLY_EXCEPTION;
    if (t.kind != HS2_OBJECT || !hs2_open(r, t.ref))
        return false;
    c = r->classes[t.class_index];
    ok = take_fields(d, &c, &e);
    hs2_close(r, t.ref);
    if (!ok)
        return false;
    struct str own = hs2_name(r, c.name, c.name_len);

    if (e.wrapped && str_contains(own, STR("GenericException"))) {
        out->exception_class = at_place(d, e.class);
        out->exception_message = at_place(d, e.message);
    } else {
        out->exception_class = own;
        out->exception_message = at_place(d, e.detail);
    }
    return true;
}

/* ---------------------------------------------------------------- attachments */

static bool take_attachment(struct reply_decoder *d, reply_attachment_fn f, void *ctx)
{
    struct hs2_reader *r = &d->reader;
    struct place name = {.from = d->text.len};
    struct place value = {0};
    struct hs2_mark at;

    if (hs2_next(r).kind != HS2_STRING || !hs2_text(r, &d->text, HS2_TEXT_PLAIN))
        return false;
    name.len = d->text.len - name.from;
    at = hs2_mark(r);
    if (hs2_next(r).kind != HS2_STRING) {
        hs2_jump(r, at);
        return hs2_skip(r); /* 3.x may send values that are no texts */
    }
    value.from = d->text.len;
    if (!hs2_text(r, &d->text, HS2_TEXT_PLAIN))
        return false;
    value.len = d->text.len - value.from;
    f(ctx, at_place(d, name), at_place(d, value));
    return true;
}

static bool decode_attachments(struct reply_decoder *d, reply_attachment_fn f, void *ctx)
{
    struct hs2_reader *r = &d->reader;
    struct hs2_mark at = hs2_mark(r);
    struct hs2_token t = {.kind = HS2_BAD};

    if (r->p == r->end)
        return true; /* the map may be left out */
    if (f == NULL)
        return hs2_skip(r);
    t = hs2_next(r);
    if (t.kind == HS2_NULL)
        return true;
    if (t.kind != HS2_MAP) {
        hs2_jump(r, at);
        return hs2_skip(r);
    }
    if (!hs2_open(r, t.ref))
        return false;
    for (int n = 0; !hs2_at_end(r); n++) {
        if (n >= ATTACHMENTS_MAX || !take_attachment(d, f, ctx))
            return false;
    }
    hs2_close(r, t.ref);
    return true;
}

/* ---------------------------------------------------------------- status 20 */

static enum reply_result decode_value(struct reply_decoder *d, const struct reply_opts *opts,
                                      struct buf *json, struct reply *r)
{
    struct hs2_json j = {.r = &d->reader, .opts = opts, .out = json, .scratch = d->scratch};
    enum hs2_json_result result = hs2_json(&j);

    d->scratch = j.scratch; /* it may have grown */
    buf_truncate(&d->scratch, 0);
    buf_shrink(&d->scratch, KEEP_SCRATCH);
    r->kind = REPLY_VALUE;
    r->cycles = j.cycles;
    r->stripped = j.stripped;
    switch (result) {
    case HS2_JSON_OK:
        return REPLY_OK;
    case HS2_JSON_TOO_LARGE:
        return REPLY_TOO_LARGE;
    case HS2_JSON_MALFORMED:
        break;
    }
    return REPLY_MALFORMED;
}

static enum reply_result decode_result(struct reply_decoder *d, const struct reply_opts *opts,
                                       struct buf *json, struct reply *r, bool *attachments)
{
    struct hs2_token t = hs2_next(&d->reader);
    int64_t kind = t.number;

    if (t.kind != HS2_INT || kind < 0 || kind > KIND_NULL + KIND_WITH_ATTACHMENTS)
        return REPLY_MALFORMED;
    *attachments = kind >= KIND_WITH_ATTACHMENTS;
    switch (kind % KIND_WITH_ATTACHMENTS) {
    case KIND_VALUE:
        return decode_value(d, opts, json, r);
    case KIND_NULL:
        r->kind = REPLY_NULL;
        return REPLY_OK;
    default:
        return decode_exception(d, r) ? REPLY_OK : REPLY_MALFORMED;
    }
}

enum reply_result reply_decode(struct reply_decoder *d, const struct frame *f, const uint8_t *body,
                               const struct reply_opts *opts, struct buf *json, struct reply *r,
                               reply_attachment_fn attachment, void *ctx)
{
    size_t before = json->len;
    enum reply_result result = REPLY_OK;
    bool attachments = false;

    *r = (struct reply){.status = f->status, .serial = f->flags & FRAME_SERIAL_MASK};
    buf_truncate(&d->text, 0);
    buf_shrink(&d->text, KEEP_SCRATCH);
    if (f->status != STATUS_OK) {
        decode_text(d, f, body, r);
        return REPLY_OK;
    }
    if (r->serial != SERIAL_HESSIAN2)
        return REPLY_UNSUPPORTED;
    hs2_begin(&d->reader, body, f->body_len,
              opts->max_depth < HS2_DEPTH_MAX ? opts->max_depth : HS2_DEPTH_MAX);
    result = decode_result(d, opts, json, r, &attachments);
    if (result == REPLY_OK && attachments && !decode_attachments(d, attachment, ctx))
        result = REPLY_MALFORMED;
    if (result == REPLY_OK && d->reader.p != d->reader.end)
        result = REPLY_MALFORMED; /* bytes that nobody announced */
    if (result != REPLY_OK)
        buf_truncate(json, before);
    /* names may lie in the reader's buffer, which the next answer reuses: as struct reply says */
    return result;
}

enum reply_event reply_event_decode(const struct frame *f, const uint8_t *body)
{
    bool one_way = (f->flags & FRAME_TWO_WAY) == 0;

    if (f->body_len > EVENT_BODY_MAX)
        return EVENT_UNKNOWN;
    /* "R" is the last byte in Hessian2 and in JSONB alike */
    if (f->body_len >= 2 && body[f->body_len - 1] == 'R' && one_way)
        return EVENT_READONLY;
    return EVENT_HEARTBEAT;
}
