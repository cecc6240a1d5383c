#include <stdio.h>
#include <string.h>

#include "codec/base64.h"
#include "codec/invoke.h"
#include "codec/json_args.h"
#include "codec/json_read.h"
#include "codec/json_write.h"

#include "tests/vectors/vectors.h"

enum { OUTPUT = 64 * 1024 * 1024, SHOWN = 40 };

static void show(struct str bytes, char *out, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes.n && i < SHOWN && n + 3 < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%02x", (unsigned char)bytes.p[i]);
}

bool vectors_encode(const char *declared, struct str json, struct str want, struct err *why)
{
    const struct args_opts opts = {.max_depth = 256, .class_key = ARGS_CLASS_STRIP};
    struct args_error e;
    struct arena a;
    struct jtype type;
    struct buf out;
    char got[2 * SHOWN + 4] = "";
    char wanted[2 * SHOWN + 4] = "";
    bool ok = false;

    arena_init(&a);
    buf_init(&out, OUTPUT);
    if (jtype_parse(str_from(declared), &a, &type, why)) {
        const struct arg arg = {.json = json, .type = &type};

        if (arg_encode(&arg, &opts, &out, &e) != ARGS_OK)
            err_set(why, "%s: %s", declared, e.detail);
        else
            ok = str_eq(buf_str(&out), want);
        if (!ok && why->text[0] == '\0') {
            show(buf_str(&out), got, sizeof(got));
            show(want, wanted, sizeof(wanted));
            err_set(why, "%s: got %s, want %s", declared, got, wanted);
        }
    }
    buf_free(&out);
    arena_free(&a);
    return ok;
}

void vectors_add_bytes(const json_t *gen, struct buf *out)
{
    json_int_t n = json_integer_value(json_object_get(gen, "bytes"));

    for (json_int_t i = 0; i < n; i++)
        buf_add_u8(out, (uint8_t)(7 * i + 3)); /* the recipe's byte_i */
}

void vectors_add_json(const struct buf *value, bool text, struct buf *out)
{
    if (text) {
        json_add_string(out, buf_str(value));
        return;
    }
    buf_add_u8(out, '"');
    base64_add(out, value->data, value->len);
    buf_add_u8(out, '"');
}

/* ---------------------------------------------------------------- whole requests */

enum { ARGS_MAX = 8 };

static const char *value_at(const json_t *values, size_t i)
{
    const char *text = json_string_value(json_array_get(values, i));

    return text != NULL ? text : "";
}

static struct str text_at(const json_t *values, size_t i, struct arena *a)
{
    struct buf b;
    struct str copy = STR_NONE;

    buf_init(&b, OUTPUT);
    if (json_string_decode(str_from(value_at(values, i)), &b))
        copy = arena_str(a, buf_str(&b));
    buf_free(&b);
    return copy;
}

static size_t read_args(const json_t *values, struct arena *a, struct arg *args)
{
    struct json_each types = {0};
    struct json_each each = {0};
    struct str type = STR_NONE;
    size_t n = 0;
    struct err e;

    while (n < ARGS_MAX && json_array_next(&each, str_from(value_at(values, 7)), &args[n].json)) {
        struct jtype *t = arena_alloc(a, sizeof(*t));

        args[n].type = NULL;
        if (json_array_next(&types, str_from(value_at(values, 6)), &type) && type.n > 2 &&
            jtype_parse(str_sub(type, 1, type.n - 1), a, t, &e))
            args[n].type = t;
        n++;
    }
    return n;
}

static bool add_attachments(const json_t *values, struct buf *out)
{
    struct json_each each = {0};
    struct json_token key;
    struct str value = STR_NONE;
    bool ok = true;

    invoke_attachments_begin(out);
    while (json_object_next(&each, str_from(value_at(values, 8)), &key, &value))
        ok = invoke_attachment(key.text, str_sub(value, 1, value.n - 1), out) && ok;
    invoke_attachments_end(out);
    return ok;
}

/* A generic call as the gateway makes them: version 2.0.2, $invoke, as many types as arguments. */
static bool is_plain_call(const json_t *values)
{
    struct json_each types = {0};
    struct json_each args = {0};
    struct str generic = STR_NONE;
    struct str s = STR_NONE;
    int surplus = 0;

    while (json_array_next(&types, str_from(value_at(values, 6)), &s))
        surplus++;
    while (json_array_next(&args, str_from(value_at(values, 7)), &s))
        surplus--;
    return strcmp(value_at(values, 0), "\"2.0.2\"") == 0 &&
           strcmp(value_at(values, 3), "\"$invoke\"") == 0 &&
           json_kind_of(str_from(value_at(values, 6))) == JSON_TOKEN_BEGIN_ARRAY && surplus == 0 &&
           json_member(str_from(value_at(values, 8)), STR("generic"), &generic) &&
           str_is(generic, "\"true\"");
}

enum vectors_call vectors_request(const json_t *values, struct buf *out, struct err *why)
{
    const struct args_opts opts = {.max_depth = 256, .class_key = ARGS_CLASS_REJECT};
    struct args_error e;
    struct arg args[ARGS_MAX];
    struct arena a;
    size_t n = 0;
    enum vectors_call result = VECTORS_CALL_OK;

    if (!is_plain_call(values))
        return VECTORS_CALL_OTHER;
    arena_init(&a);
    n = read_args(values, &a, args);
    invoke_prefix(text_at(values, 1, &a), text_at(values, 2, &a), out);
    if (invoke_middle(text_at(values, 5, &a), args, n, &opts, out, &e) != ARGS_OK ||
        !add_attachments(values, out)) {
        err_set(why, "argument %zu: %s", e.arg, e.detail);
        result = VECTORS_CALL_REFUSED;
    }
    arena_free(&a);
    return result;
}
