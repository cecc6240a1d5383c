/*
 * JSON -> Hessian2, and back.
 *
 * The first two bytes pick a declared type, options and an output limit; the rest is the JSON text.
 *  - The reader accepts what jansson accepts.  They cannot agree on numbers beyond int64 and double (jansson
 *    keeps no raw numbers), on \u0000 in keys, on nesting over 256, and on a NUL byte (jansson takes it for
 *    the end of the text; the reader refuses it everywhere).
 *  - The slices of a container are whole values, as many as jansson counts.
 *  - What was encoded reads back: for natural values the same document, else any one JSON value.
 *  - An error leaves the output as it was and says something.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fatal.h"
#include "codec/decimal.h"
#include "codec/hs2_json.h"
#include "codec/json_args.h"
#include "codec/json_read.h"
#include "codec/utf.h"

enum { DEPTH = 256, OUT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = {
    "boolean",
    "byte",
    "int",
    "long",
    "java.lang.Long",
    "float",
    "double",
    "char",
    "java.lang.String",
    "java.lang.Number",
    "java.math.BigDecimal",
    "java.math.BigInteger",
    "java.util.Date",
    "java.sql.Timestamp",
    "java.util.Calendar",
    "java.util.UUID",
    "java.util.Locale",
    "java.util.concurrent.atomic.AtomicLong",
    "java.util.concurrent.atomic.AtomicBoolean",
    "java.time.LocalDate",
    "java.time.LocalTime",
    "java.time.LocalDateTime",
    "java.time.Instant",
    "java.time.Duration",
    "java.time.Period",
    "java.time.Year",
    "java.time.YearMonth",
    "java.time.MonthDay",
    "java.time.ZoneId",
    "java.time.ZoneOffset",
    "java.time.OffsetDateTime",
    "java.time.OffsetTime",
    "java.time.ZonedDateTime",
    "java.lang.Object",
    "java.util.List",
    "java.util.Map",
    "java.util.LinkedHashMap",
    "java.util.concurrent.ConcurrentHashMap",
    "java.util.Queue",
    "demo.Person",
    "byte[]",
    "char[]",
    "int[][]",
    "java.lang.String[]",
    "java.math.BigDecimal[]",
    "java.time.LocalDateTime[]",
    "demo.Person[]",
};

/* ---------------------------------------------------------------- against jansson */

static bool cannot_agree(const json_error_t *e)
{
    enum json_error_code code = json_error_code(e);

    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
           code == json_error_stack_overflow;
}

static void check_slices(struct str text, const json_t *root)
{
    struct json_each e = {0};
    struct json_token key;
    struct str v = STR_NONE;
    size_t n = 0;

    if (json_is_array(root)) {
        for (; json_array_next(&e, text, &v); n++)
            ASSERT(json_is_valid(v, DEPTH, NULL, NULL));
        ASSERT(n == json_array_size(root));
        return;
    }
    while (json_object_next(&e, text, &key, &v)) {
        struct buf name;
        struct str last = STR_NONE;

        ASSERT(json_is_valid(v, DEPTH, NULL, NULL));
        buf_init(&name, OUT_MAX);
        json_unescape(&key, &name);
        ASSERT(utf_valid(buf_str(&name)) && json_string_is(&key, buf_str(&name)));
        ASSERT(json_member(text, buf_str(&name), &last) && last.p >= v.p);
        buf_free(&name);
        if (++n > 16)
            return; /* looking each up is quadratic */
    }
    ASSERT(!json_is_object(root) || (n == 0) == (json_object_size(root) == 0));
}

static void against_jansson(struct str text)
{
    const char *why = NULL;
    size_t at = 0;
    bool ours = json_is_valid(text, DEPTH, &at, &why);
    json_error_t e;
    json_t *root = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);

    ASSERT(at <= text.n);
    if (memchr(text.p, '\0', text.n) != NULL) {
        ASSERT(!ours);
        json_decref(root);
        return;
    }
    if (!ours)
        ASSERT(why != NULL);
    if (root != NULL && !ours)
        ASSERT(strcmp(why, "nested too deep") == 0);
    if (root == NULL && ours)
        ASSERT(cannot_agree(&e));
    if (root != NULL && ours)
        check_slices(text, root);
    json_decref(root);
}

/* ---------------------------------------------------------------- there and back */

static bool same_text(const struct json_token *a, const struct json_token *b)
{
    struct buf x;
    struct buf y;
    bool same = false;

    buf_init(&x, OUT_MAX);
    buf_init(&y, OUT_MAX);
    json_unescape(a, &x);
    json_unescape(b, &y);
    same = str_eq(buf_str(&x), buf_str(&y));
    buf_free(&x);
    buf_free(&y);
    return same;
}

/* Equal as decimal numbers, to the last digit. */
static bool same_number(struct str a, struct str b)
{
    struct decimal x;
    struct decimal y;

    return decimal_read(a, &x) && decimal_read(b, &y) && decimal_equal(&x, &y);
}

static void same_document(struct str sent, struct str back)
{
    struct json_reader a;
    struct json_reader b;

    json_begin(&a, sent, DEPTH);
    json_begin(&b, back, DEPTH);
    for (;;) {
        struct json_token x = json_next(&a);
        struct json_token y = json_next(&b);

        ASSERT(x.kind != JSON_TOKEN_ERROR);
        if (x.kind == JSON_TOKEN_END) {
            ASSERT(y.kind == JSON_TOKEN_END);
            return;
        }
        if (x.kind == JSON_TOKEN_NUMBER && y.kind == JSON_TOKEN_NUMBER)
            ASSERT(same_number(x.text, y.text));
        else if (x.kind == JSON_TOKEN_NUMBER)
            ASSERT(y.kind == JSON_TOKEN_STRING && str_eq(x.text, y.text)); /* too wide: as text */
        else
            ASSERT(x.kind == y.kind);
        if (x.kind == JSON_TOKEN_STRING || x.kind == JSON_TOKEN_KEY)
            ASSERT(same_text(&x, &y));
    }
}

static void read_back(const struct buf *bytes, struct str sent, bool natural)
{
    static const struct reply_opts raw = {
        .keep_class = true, .no_rebuild = true, .max_depth = DEPTH};
    struct hs2_reader r;
    struct buf text;
    struct hs2_json j = {.r = &r, .opts = &raw, .out = &text};
    enum hs2_json_result rc = HS2_JSON_OK;

    hs2_init(&r);
    buf_init(&j.scratch, OUT_MAX);
    buf_init(&text, (size_t)8 * OUT_MAX);
    hs2_begin(&r, bytes->data, bytes->len, DEPTH);
    rc = hs2_json(&j);
    ASSERT(rc == HS2_JSON_OK && r.p == r.end);
    ASSERT(json_is_valid(buf_str(&text), DEPTH, NULL, NULL));
    if (natural)
        same_document(sent, buf_str(&text));
    hs2_free(&r);
    buf_free(&j.scratch);
    buf_free(&text);
}

static void check_error(const struct args_error *e, enum args_result r, struct str text)
{
    ASSERT(e->result == r && r != ARGS_UNKNOWN_TYPE);
    ASSERT(e->offset <= text.n && e->line >= 1 && e->column >= 1);
    ASSERT(e->detail[0] != '\0' && strlen(e->pointer) < sizeof(e->pointer));
    ASSERT(utf_valid(str_from(e->pointer)));
    ASSERT(e->pointer[0] == '\0' || e->pointer[0] == '/');
}

static void encode(struct str text, const char *type_name, unsigned options)
{
    const struct args_opts opts = {
        .class_key = options & 1 ? ARGS_CLASS_STRIP : ARGS_CLASS_REJECT,
        .duplicate_keys_last = (options & 2) != 0,
        .decimals_as_string = (options & 4) != 0,
        .preserve_order = (options & 8) != 0,
        .utc_offset_s = options & 16 ? 28800 : 0,
        .max_depth = options & 32 ? 128 : 8,
    };
    struct arena a;
    struct jtype type;
    struct arg arg = {.json = text, .type = NULL};
    struct args_error e;
    struct err why;
    struct buf out;
    enum args_result r = ARGS_OK;

    arena_init(&a);
    if (type_name != NULL) {
        ASSERT(jtype_parse(str_from(type_name), &a, &type, &why));
        arg.type = &type;
    }
    buf_init(&out, options & 64 ? options & 63 : OUT_MAX);
    r = arg_encode(&arg, &opts, &out, &e);
    if (r != ARGS_OK) {
        ASSERT(out.len == 0);
        check_error(&e, r, text);
    } else {
        ASSERT(out.len != 0 && out.len <= out.limit && !out.failed);
        ASSERT(json_is_valid(text, DEPTH, NULL, NULL));
        read_back(&out, text, type_name == NULL && !(options & 1));
    }
    buf_free(&out);
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = NULL;
    struct str text;

    if (size < 2 || size > 65536)
        return 0;
    copy = malloc(
        size -
        1); /* its end is the end of the text, so that the sanitizer sees every step over it */
    if (copy == NULL)
        return 0;
    memcpy(copy, data + 2, size - 2);
    text = (struct str){copy, size - 2};
    against_jansson(text);
    encode(text, NULL, 32);
    encode(text, data[0] % 8 == 0 ? NULL : types[data[0] % ARRAY_LEN(types)], data[1]);
    free(copy);
    return 0;
}
