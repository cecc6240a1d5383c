/*
 * What a provider sends: frames cut out of a stream, events, and answers of every serialization.  Byte 0 chooses
 * the options.  Whatever comes, an answer is JSON that jansson reads (or nothing), texts are UTF-8, and the output
 * stays within its limit.
 */
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/fatal.h"
#include "codec/frame.h"
#include "codec/reply.h"
#include "codec/utf.h"

enum { OUT_LIMIT = 256 * 1024, BODY_MAX = 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_attachment(void *ctx, struct str name, struct str value)
{
    unsigned *n = ctx;

    (*n)++;
    ASSERT(utf_valid(name) && utf_valid(value));
}

static void check_json(struct str text)
{
    json_error_t e;
    json_t *v = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);

    /* numbers may be longer than jansson's, and it takes no key with \u0000: both are JSON */
    ASSERT(v != NULL || json_error_code(&e) == json_error_numeric_overflow ||
           json_error_code(&e) == json_error_null_byte_in_key);
    json_decref(v);
}

static void check_answer(struct reply_decoder *d, const struct frame *f, const uint8_t *body,
                         uint8_t choice)
{
    const struct reply_opts opts = {
        .keep_class = choice & 1,
        .omit_nulls = choice & 2,
        .decimal_as_string = choice & 4,
        .bytes_as_array = choice & 8,
        .cycle_is_error = choice & 16,
        .no_rebuild = choice & 32,
        .max_depth = choice & 64 ? 8 : 128,
    };
    struct buf json;
    struct reply r;
    unsigned n = 0;
    enum reply_result result = REPLY_OK;

    buf_init(&json, OUT_LIMIT);
    result = reply_decode(d, f, body, &opts, &json, &r, on_attachment, &n);
    ASSERT(json.len <= OUT_LIMIT);
    ASSERT(r.status == f->status);
    if (result == REPLY_OK && r.kind == REPLY_VALUE)
        check_json(buf_str(&json));
    else
        ASSERT(json.len == 0);
    if (result == REPLY_OK)
        ASSERT(utf_valid(r.text) && utf_valid(r.exception_class) && utf_valid(r.exception_message));
    buf_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reply_decoder *d;
    struct frame f;
    uint8_t choice = size != 0 ? data[0] : 0;
    size_t at = size != 0 ? 1 : 0;

    if (d == NULL)
        d = reply_decoder_new();
    while (frame_decode(data + at, size - at, BODY_MAX, &f) == FRAME_OK) {
        at += FRAME_HEADER_LEN;
        ASSERT(f.body_len <= BODY_MAX);
        if (f.body_len > size - at)
            break;
        if (f.flags & FRAME_EVENT)
            (void)reply_event_decode(&f, data + at);
        else
            check_answer(d, &f, data + at, choice);
        at += f.body_len;
    }
    return 0;
}
