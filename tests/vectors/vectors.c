/*
 * The vector runner: reads any file of the form of tests/vectors, prints each mismatch and ends with
 * one line "N passed, N failed".
 *
 *   {name, hex | gen, json, declared?, direction}     one Hessian2 value (hessian2.json)
 *   {name, hex | gen, must, json?, consumed?}          hostile input (malformed.json)
 *   {name, hex, flag, status, …}                       one whole frame (captures-*.json)
 *
 * JSON is compared member by member in order; numbers by text, or by value where both are doubles.
 */
#include "tests/vectors/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "codec/hs2_json.h"
#include "codec/invoke.h"
#include "codec/json_args.h"
#include "codec/json_read.h"
#include "codec/reply.h"
#include "codec/utf.h"

enum { DEPTH = 256, OUTPUT = 64 * 1024 * 1024 };

static unsigned passed;
static unsigned failed;

static const struct reply_opts raw_mode = {
    .keep_class = true, .no_rebuild = true, .max_depth = DEPTH};

static void result(const char *name, bool ok, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void result(const char *name, bool ok, const char *fmt, ...)
{
    va_list ap;

    if (ok) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL %s: ", name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

static const char *text_of(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

/* ---------------------------------------------------------------- comparing JSON texts */

static bool same_number(struct str a, struct str b)
{
    char x[80];
    char y[80];
    double dx = 0;
    double dy = 0;

    if (str_eq(a, b))
        return true;
    if (a.n >= sizeof(x) || b.n >= sizeof(y))
        return false;
    snprintf(x, sizeof(x), STR_FMT, STR_ARG(a));
    snprintf(y, sizeof(y), STR_FMT, STR_ARG(b));
    if (strpbrk(x, ".eE") == NULL || strpbrk(y, ".eE") == NULL)
        return false;
    dx = strtod(x, NULL);
    dy = strtod(y, NULL);
    return memcmp(&dx, &dy, sizeof(dx)) == 0;
}

static bool same_string(const struct json_token *a, const struct json_token *b)
{
    struct buf x;
    struct buf y;
    bool same = false;

    buf_init(&x, OUTPUT);
    buf_init(&y, OUTPUT);
    json_unescape(a, &x);
    json_unescape(b, &y);
    same = str_eq(buf_str(&x), buf_str(&y));
    buf_free(&x);
    buf_free(&y);
    return same;
}

static bool same_json(struct str got, struct str want)
{
    struct json_reader g;
    struct json_reader w;

    json_begin(&g, got, DEPTH);
    json_begin(&w, want, DEPTH);
    for (;;) {
        struct json_token a = json_next(&g);
        struct json_token b = json_next(&w);

        if (a.kind != b.kind || a.kind == JSON_TOKEN_ERROR)
            return false;
        if (a.kind == JSON_TOKEN_END)
            return true;
        if (a.kind == JSON_TOKEN_NUMBER && !same_number(a.text, b.text))
            return false;
        if ((a.kind == JSON_TOKEN_STRING || a.kind == JSON_TOKEN_KEY) && !same_string(&a, &b))
            return false;
    }
}

/* ---------------------------------------------------------------- inputs */

static bool from_hex(const char *hex, struct buf *out)
{
    for (; hex != NULL && hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        char two[3] = {hex[0], hex[1], '\0'};

        buf_add_u8(out, (uint8_t)strtoul(two, NULL, 16));
    }
    return hex != NULL && !out->failed;
}

static void repeat_hex(const json_t *gen, const char *what, const char *times, struct buf *out)
{
    const char *hex = text_of(gen, what);
    json_int_t n = times != NULL ? json_integer_value(json_object_get(gen, times)) : 1;

    for (json_int_t i = 0; i < n && hex != NULL; i++)
        from_hex(hex, out);
}

/* Hostile input by recipe. */
static void from_recipe(const json_t *gen, struct buf *out)
{
    repeat_hex(gen, "head_hex", NULL, out);
    repeat_hex(gen, "fill_hex", "fill_times", out);
    repeat_hex(gen, "repeat_hex", "times", out);
    repeat_hex(gen, "tail_hex", NULL, out);
    repeat_hex(gen, "tail2_repeat_hex", "tail2_times", out);
    repeat_hex(gen, "tail3_hex", NULL, out);
}

static void add_runs(const json_t *runs, struct buf *out)
{
    size_t i = 0;
    json_t *run = NULL;

    json_array_foreach(runs, i, run)
    {
        const json_t *t = json_array_get(run, 0);
        json_int_t n = json_integer_value(json_array_get(run, 1));

        for (json_int_t k = 0; k < n; k++)
            buf_add(out, json_string_value(t), json_string_length(t));
    }
}

/* Big values: the text or bytes, and the stream as the Java writer cut it. */
static void from_chunks(const json_t *gen, const struct buf *value, bool text, struct buf *out)
{
    size_t at = 0;
    size_t i = 0;
    json_t *chunk = NULL;

    json_array_foreach(json_object_get(gen, "chunks"), i, chunk)
    {
        json_int_t n = json_integer_value(json_array_get(chunk, 1));

        from_hex(json_string_value(json_array_get(chunk, 0)), out);
        if (!text) {
            buf_add(out, value->data + at, (size_t)n);
            at += (size_t)n;
            continue;
        }
        while (n > 0) {
            size_t len = utf_char_len(value->data + at, value->len - at);
            struct str c = {(const char *)value->data + at, len};

            utf_add_cesu(out, c);
            n -= (json_int_t)utf_units(c);
            at += len;
        }
    }
}

/* ---------------------------------------------------------------- one value */

static enum hs2_json_result decode(const uint8_t *p, size_t n, struct buf *out, size_t *consumed)
{
    struct hs2_reader r;
    struct hs2_json j = {.r = &r, .opts = &raw_mode, .out = out};
    enum hs2_json_result rc = HS2_JSON_OK;

    hs2_init(&r);
    buf_init(&j.scratch, OUTPUT);
    hs2_begin(&r, p, n, DEPTH);
    rc = hs2_json(&j);
    *consumed = (size_t)(r.p - r.base);
    hs2_free(&r);
    buf_free(&j.scratch);
    return rc;
}

static void check_decode(const char *name, const struct buf *in, struct str want)
{
    struct buf out;
    size_t consumed = 0;
    enum hs2_json_result rc = HS2_JSON_OK;

    buf_init(&out, OUTPUT);
    rc = decode(in->data, in->len, &out, &consumed);
    result(name, rc == HS2_JSON_OK && consumed == in->len && same_json(buf_str(&out), want),
           "decode: result %d, %zu of %zu bytes, got " STR_FMT ", want " STR_FMT, (int)rc, consumed,
           in->len, STR_ARG(utf_cut(buf_str(&out), 300)), STR_ARG(utf_cut(want, 300)));
    buf_free(&out);
}

static void run_value(const json_t *v)
{
    const char *name = text_of(v, "name");
    const json_t *gen = json_object_get(v, "gen");
    const json_t *jt = json_object_get(v, "json");
    struct buf in;
    struct buf value;
    struct buf want;

    buf_init(&in, OUTPUT);
    buf_init(&value, OUTPUT);
    buf_init(&want, OUTPUT);
    if (gen == NULL) {
        from_hex(text_of(v, "hex"), &in);
        buf_add(&want, json_string_value(jt), json_string_length(jt));
    } else {
        bool text = json_object_get(gen, "string_runs") != NULL;

        if (text)
            add_runs(json_object_get(gen, "string_runs"), &value);
        else
            vectors_add_bytes(gen, &value);
        from_chunks(gen, &value, text, &in);
        vectors_add_json(&value, text, &want);
        result(name, (json_int_t)in.len == json_integer_value(json_object_get(v, "bytes_len")),
               "the recipe gives %zu bytes", in.len);
    }
    check_decode(name, &in, buf_str(&want));
    if (strcmp(text_of(v, "direction"), "both") == 0) {
        struct err why = {0};

        result(name, vectors_encode(text_of(v, "declared"), buf_str(&want), buf_str(&in), &why),
               "encode: %s", why.text);
    }
    buf_free(&in);
    buf_free(&value);
    buf_free(&want);
}

/* ---------------------------------------------------------------- hostile input */

static void run_hostile(const json_t *v)
{
    const char *name = text_of(v, "name");
    const char *must = text_of(v, "must");
    const char *json = text_of(v, "json");
    const json_t *gen = json_object_get(v, "gen");
    struct buf in;
    struct buf out;
    size_t consumed = 0;
    bool whole = false;
    bool ok = false;

    buf_init(&in, OUTPUT);
    buf_init(&out, OUTPUT);
    if (gen != NULL)
        from_recipe(gen, &in);
    else
        from_hex(text_of(v, "hex"), &in);
    ok = decode(in.data, in.len, &out, &consumed) == HS2_JSON_OK;
    whole = ok && consumed == in.len;
    if (strcmp(must, "reject") == 0)
        result(name, !whole, "accepted as " STR_FMT, STR_ARG(utf_cut(buf_str(&out), 200)));
    else if (strcmp(must, "accept") == 0)
        result(name, whole && (json == NULL || same_json(buf_str(&out), str_from(json))),
               "got " STR_FMT ", want %s", STR_ARG(utf_cut(buf_str(&out), 200)), json);
    else if (strcmp(must, "stop-at") == 0)
        result(name,
               ok && (json_int_t)consumed == json_integer_value(json_object_get(v, "consumed")) &&
                   same_json(buf_str(&out), str_from(json)),
               "stopped at %zu with " STR_FMT, consumed, STR_ARG(utf_cut(buf_str(&out), 200)));
    else /* accept-any: it ended, in bounded memory */
        result(name, strcmp(must, "accept-any") == 0, "unknown demand %s", must);
    buf_free(&in);
    buf_free(&out);
}

/* ---------------------------------------------------------------- frames */

/* All values of a Hessian2 body, one after another. */
static void check_values(const char *name, const json_t *values, const uint8_t *p, size_t n)
{
    struct hs2_reader r;
    struct hs2_json j = {.r = &r, .opts = &raw_mode};
    struct buf out;
    size_t i = 0;
    json_t *want = NULL;

    hs2_init(&r);
    buf_init(&j.scratch, OUTPUT);
    buf_init(&out, OUTPUT);
    j.out = &out;
    hs2_begin(&r, p, n, DEPTH);
    json_array_foreach(values, i, want)
    {
        buf_truncate(&out, 0);
        bool ok = hs2_json(&j) == HS2_JSON_OK;

        result(name, ok && same_json(buf_str(&out), str_from(json_string_value(want))),
               "value %zu: got " STR_FMT ", want %.300s", i, STR_ARG(utf_cut(buf_str(&out), 300)),
               json_string_value(want));
    }
    result(name, r.p == r.end, "%zu bytes are left", (size_t)(r.end - r.p));
    hs2_free(&r);
    buf_free(&j.scratch);
    buf_free(&out);
}

/* A recorded request made again from its values: the same bytes, or other bytes of the same values (the
 * recording client did not always choose the shortest form; a date inside an object comes as text). */
static void check_request(const char *name, const json_t *values, struct str body)
{
    static const char *const refused[] = {"err-arg-convert.req", "err-class-key.req"};
    struct err why = {0};
    struct buf out;
    bool refuse = false;
    enum vectors_call call = VECTORS_CALL_OK;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        refuse = refuse || strcmp(name, refused[i]) == 0;
    buf_init(&out, OUTPUT);
    call = vectors_request(values, &out, &why);
    if (call != VECTORS_CALL_OTHER)
        result(name, (call == VECTORS_CALL_REFUSED) == refuse, "encode: %s", why.text);
    if (call == VECTORS_CALL_OK && !str_eq(buf_str(&out), body))
        check_values(name, values, out.data, out.len);
    buf_free(&out);
}

/* The same body as an answer: kinds, exceptions, texts. */
static void check_reply(const char *name, const json_t *v, const struct frame *f,
                        const uint8_t *body)
{
    struct reply_decoder *d = reply_decoder_new();
    struct buf json;
    struct reply r;
    const json_t *values = json_object_get(v, "values");
    const char *kind = json_string_value(json_array_get(values, 0));
    const char *value = json_string_value(json_array_get(values, 1));
    const char *has = text_of(v, "text_has");
    enum reply_result rc = REPLY_OK;

    buf_init(&json, OUTPUT);
    rc = reply_decode(d, f, body, &raw_mode, &json, &r, NULL, NULL);
    if (json_object_get(v, "unsupported") != NULL || (f->flags & FRAME_SERIAL_MASK) != 2) {
        result(name, f->status == 20 ? rc == REPLY_UNSUPPORTED : rc == REPLY_OK, "result %d",
               (int)rc);
        result(name, has == NULL || str_contains(r.text, str_from(has)), "text " STR_FMT,
               STR_ARG(r.text));
        result(name, has == NULL || f->status == 20 || r.text.n != 0, "no text");
    } else if (json_object_get(v, "malformed") != NULL) {
        result(name, rc == REPLY_MALFORMED, "result %d", (int)rc);
    } else if (f->status != 20) {
        struct buf want;

        buf_init(&want, OUTPUT);
        result(name, json_string_decode(str_from(kind), &want), "no text in the vector");
        result(name,
               rc == REPLY_OK && r.kind == REPLY_STATUS && str_starts(buf_str(&want), r.text) &&
                   (r.text.n == want.len || r.text.n > 4000),
               "text " STR_FMT, STR_ARG(r.text));
        buf_free(&want);
    } else if (strcmp(kind, "2") == 0 || strcmp(kind, "5") == 0) {
        result(name, rc == REPLY_OK && r.kind == REPLY_NULL, "result %d", (int)rc);
    } else if (strcmp(kind, "1") == 0 || strcmp(kind, "4") == 0) {
        result(name, rc == REPLY_OK && same_json(buf_str(&json), str_from(value)),
               "result %d " STR_FMT, (int)rc, STR_ARG(utf_cut(buf_str(&json), 200)));
    } else {
        struct str class = STR_NONE;
        struct buf plain;

        buf_init(&plain, OUTPUT);
        if (json_member(str_from(value), STR("exceptionClass"), &class))
            result(name,
                   json_string_decode(class, &plain) && str_eq(buf_str(&plain), r.exception_class),
                   "class " STR_FMT, STR_ARG(r.exception_class));
        result(name, rc == REPLY_OK && r.kind == REPLY_EXCEPTION && r.exception_class.n != 0,
               "result %d", (int)rc);
        buf_free(&plain);
    }
    buf_free(&json);
    reply_decoder_free(d);
}

static void run_frame(const json_t *v)
{
    const char *name = text_of(v, "name");
    const char *event = text_of(v, "event");
    struct buf in;
    struct frame f;
    enum frame_result rc = FRAME_OK;

    buf_init(&in, OUTPUT);
    from_hex(text_of(v, "hex"), &in);
    rc = frame_decode(in.data, in.len, OUTPUT, &f);
    result(name,
           rc == FRAME_OK && f.flags == json_integer_value(json_object_get(v, "flag")) &&
               (f.status == json_integer_value(json_object_get(v, "status")) ||
                (f.flags & FRAME_REQUEST) != 0) &&
               f.id == strtoull(text_of(v, "id"), NULL, 10) &&
               f.body_len == json_integer_value(json_object_get(v, "body_len")),
           "frame: result %d", (int)rc);
    if (rc == FRAME_OK && in.len >= FRAME_HEADER_LEN + f.body_len) {
        const uint8_t *body = in.data + FRAME_HEADER_LEN;

        if (event != NULL)
            result(name,
                   reply_event_decode(&f, body) ==
                       (strcmp(event, "readonly") == 0 ? EVENT_READONLY : EVENT_HEARTBEAT),
                   "event %s", event);
        else if (json_object_get(v, "values") != NULL)
            check_values(name, json_object_get(v, "values"), body, f.body_len);
        if (event == NULL && (f.flags & FRAME_REQUEST) != 0 && json_object_get(v, "values") != NULL)
            check_request(name, json_object_get(v, "values"),
                          (struct str){(const char *)body, f.body_len});
        if (event == NULL && (f.flags & FRAME_REQUEST) == 0)
            check_reply(name, v, &f, body);
    }
    buf_free(&in);
}

static bool run_file(const char *path)
{
    json_error_t e;
    json_t *all = json_load_file(path, JSON_ALLOW_NUL, &e);
    size_t i = 0;
    json_t *v = NULL;

    if (!json_is_array(all) || json_array_size(all) == 0) {
        printf("FAIL %s:%d: %s\n", path, e.line, e.text);
        json_decref(all);
        return false;
    }
    json_array_foreach(all, i, v)
    {
        if (json_object_get(v, "must") != NULL)
            run_hostile(v);
        else if (json_object_get(v, "flag") != NULL)
            run_frame(v);
        else
            run_value(v);
    }
    json_decref(all);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: vectors FILE.json …\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        failed += run_file(argv[i]) ? 0U : 1U;
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
