#include "codec/json_args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fatal.h"
#include "codec/args_state.h"
#include "codec/base64.h"
#include "codec/hs2_write.h"
#include "codec/utf.h"

enum {
    QUOTED_MAX = 64,
    SCRATCH_LIMIT = 64 * 1024 * 1024,
};

/* ---------------------------------------------------------------- errors */

bool args_fail(struct args_state *s, enum args_result r, const char *fmt, ...)
{
    va_list ap;

    if (s->e->result != ARGS_OK)
        return false; /* the first one counts */
    s->e->result = r;
    s->e->offset = json_offset(&s->j);
    va_start(ap, fmt);
    if (vsnprintf(s->e->detail, sizeof(s->e->detail), fmt, ap) < 0)
        s->e->detail[0] = '\0';
    va_end(ap);
    return false;
}

bool args_syntax(struct args_state *s)
{
    return args_fail(s, ARGS_BAD_JSON, "%s", s->j.error != NULL ? s->j.error : "broken JSON");
}

static const char *kind_text(const struct json_token *t)
{
    switch (t->kind) {
    case JSON_TOKEN_BEGIN_ARRAY:
        return "an array";
    case JSON_TOKEN_BEGIN_OBJECT:
        return "an object";
    case JSON_TOKEN_NULL:
        return "null";
    case JSON_TOKEN_TRUE:
        return "true";
    case JSON_TOKEN_FALSE:
        return "false";
    case JSON_TOKEN_NUMBER:
    case JSON_TOKEN_STRING:
    case JSON_TOKEN_END_ARRAY:
    case JSON_TOKEN_END_OBJECT:
    case JSON_TOKEN_KEY:
    case JSON_TOKEN_END:
    case JSON_TOKEN_ERROR:
        break;
    }
    return "this";
}

bool args_mismatch(struct args_state *s, const struct json_token *t, struct str type)
{
    struct str text = utf_cut(t->text, QUOTED_MAX);
    const char *more = text.n < t->text.n ? "…" : "";

    if (t->kind == JSON_TOKEN_STRING)
        return args_fail(s, ARGS_BAD_ARGUMENT, "\"" STR_FMT "%s\" is not a " STR_FMT, STR_ARG(text),
                         more, STR_ARG(type));
    if (t->kind == JSON_TOKEN_NUMBER)
        return args_fail(s, ARGS_BAD_ARGUMENT, STR_FMT "%s is not a " STR_FMT, STR_ARG(text), more,
                         STR_ARG(type));
    return args_fail(s, ARGS_BAD_ARGUMENT, "%s is not a " STR_FMT, kind_text(t), STR_ARG(type));
}

/* ---------------------------------------------------------------- helpers */

struct str args_text(struct args_state *s, const struct json_token *t)
{
    if (t->plain)
        return t->text;
    buf_truncate(&s->scratch, 0);
    json_unescape(t, &s->scratch);
    if (s->scratch.failed)
        s->out->failed = true; /* never send half a text */
    return buf_str(&s->scratch);
}

void args_object(struct args_state *s, const char *class, const char *const *fields, size_t n)
{
    for (unsigned i = 0; i < s->n_classes && i < ARGS_CLASSES; i++) {
        if (s->classes[i] == class) {
            hs2_put_object_again(s->out, i);
            return;
        }
    }
    if (s->n_classes < ARGS_CLASSES)
        s->classes[s->n_classes] = class;
    hs2_put_object(s->out, str_from(class), fields, n, s->n_classes);
    s->n_classes++;
}

static void put_text(struct args_state *s, const struct json_token *t)
{
    if (t->plain && t->ascii)
        hs2_put_ascii(s->out, t->text);
    else
        hs2_put_string(s->out, args_text(s, t));
}

bool args_natural_scalar(struct args_state *s, const struct json_token *t)
{
    switch (t->kind) {
    case JSON_TOKEN_NULL:
        hs2_put_null(s->out);
        return true;
    case JSON_TOKEN_TRUE:
    case JSON_TOKEN_FALSE:
        hs2_put_bool(s->out, t->kind == JSON_TOKEN_TRUE);
        return true;
    case JSON_TOKEN_NUMBER:
        args_put_natural_number(s, t->text);
        return true;
    case JSON_TOKEN_STRING:
        put_text(s, t);
        return true;
    case JSON_TOKEN_BEGIN_ARRAY:
    case JSON_TOKEN_END_ARRAY:
    case JSON_TOKEN_BEGIN_OBJECT:
    case JSON_TOKEN_END_OBJECT:
    case JSON_TOKEN_KEY:
    case JSON_TOKEN_END:
    case JSON_TOKEN_ERROR:
        break;
    }
    return args_syntax(s);
}

/* ---------------------------------------------------------------- simple declared types */

static bool put_boolean(struct args_state *s, const struct json_token *t, const struct jtype *type)
{
    bool text = t->kind == JSON_TOKEN_STRING;

    if (t->kind == JSON_TOKEN_TRUE || (text && str_is(t->text, "true")))
        hs2_put_bool(s->out, true);
    else if (t->kind == JSON_TOKEN_FALSE || (text && str_is(t->text, "false")))
        hs2_put_bool(s->out, false);
    else
        return args_mismatch(s, t, type->name);
    return true;
}

static bool put_char(struct args_state *s, const struct json_token *t, const struct jtype *type)
{
    if (t->kind != JSON_TOKEN_STRING)
        return args_mismatch(s, t, type->name);
    struct str text = args_text(s, t);

    if (utf_units(text) != 1)
        return args_mismatch(s, t, type->name);
    hs2_put_string(s->out, text);
    return true;
}

/* A number or boolean for a String parameter is its own token text. */
static bool put_string(struct args_state *s, const struct json_token *t, const struct jtype *type)
{
    switch (t->kind) {
    case JSON_TOKEN_STRING:
        put_text(s, t);
        return true;
    case JSON_TOKEN_NUMBER:
    case JSON_TOKEN_TRUE:
    case JSON_TOKEN_FALSE:
        hs2_put_string(s->out, t->text);
        return true;
    case JSON_TOKEN_NULL:
    case JSON_TOKEN_BEGIN_ARRAY:
    case JSON_TOKEN_END_ARRAY:
    case JSON_TOKEN_BEGIN_OBJECT:
    case JSON_TOKEN_END_OBJECT:
    case JSON_TOKEN_KEY:
    case JSON_TOKEN_END:
    case JSON_TOKEN_ERROR:
        break;
    }
    return args_mismatch(s, t, type->name);
}

/* Could the text be the name of an enum constant?  Only those are texts for a class of somebody's own. */
static bool is_constant_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
                      c >= 0x80;

        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.n != 0;
}

/* An enum's name or a POJO.  Which of them it is, is known with the provider's description only. */
static bool put_other(struct args_state *s, struct json_token t, const struct jtype *type)
{
    const struct jtype_class *c = type->class;
    bool is_enum = c == NULL || c->n_enums != 0;
    bool is_pojo = c == NULL || c->n_enums == 0;

    if (is_enum && t.kind == JSON_TOKEN_STRING && is_constant_name(t.text)) {
        hs2_put_string(s->out, t.text);
        return true;
    }
    return is_pojo && t.kind == JSON_TOKEN_BEGIN_OBJECT ? args_pojo(s, t, type)
                                                        : args_mismatch(s, &t, type->name);
}

/* ---------------------------------------------------------------- arrays */

static bool put_base64(struct args_state *s, struct str text)
{
    size_t from = 0;

    if (text.p == (const char *)s->scratch.data) {
        from = text.n; /* it was unescaped there: decode behind it, without moving it */
        if (buf_reserve(&s->scratch, text.n) == NULL)
            return args_fail(s, ARGS_TOO_LARGE, "the Base64 text is too long");
        text.p = (const char *)s->scratch.data;
    } else {
        buf_truncate(&s->scratch, 0);
    }
    if (!base64_decode(text, &s->scratch))
        return args_fail(s, ARGS_BAD_ARGUMENT, "a byte[] is written as Base64 text or as an array");
    if (s->scratch.failed)
        return args_fail(s, ARGS_TOO_LARGE, "the bytes are too many");
    if (s->scratch.len != from)
        hs2_put_binary(s->out, s->scratch.data + from, s->scratch.len - from);
    else
        hs2_put_binary(s->out, NULL, 0);
    return true;
}

static bool put_bytes(struct args_state *s, struct json_token t, const struct jtype *type)
{
    if (t.kind == JSON_TOKEN_STRING)
        return put_base64(s, t.text);
    if (t.kind != JSON_TOKEN_BEGIN_ARRAY)
        return args_mismatch(s, &t, type->name);
    buf_truncate(&s->scratch, 0);
    for (t = json_next(&s->j); t.kind != JSON_TOKEN_END_ARRAY; t = json_next(&s->j)) {
        int64_t v = 0;

        if (t.kind == JSON_TOKEN_ERROR)
            return args_syntax(s);
        if (!args_integer(&t, -128, 255, &v))
            return args_mismatch(s, &t, STR("byte"));
        buf_add_u8(&s->scratch, (uint8_t)v);
    }
    if (s->scratch.failed)
        return args_fail(s, ARGS_TOO_LARGE, "the bytes are too many");
    hs2_put_binary(s->out, s->scratch.data, s->scratch.len);
    return true;
}

static bool put_array(struct args_state *s, struct json_token t, const struct jtype *type)
{
    size_t place = 0;
    size_t n = 0;

    if (type->element->kind == JTYPE_BYTE && type->element->primitive)
        return put_bytes(s, t, type);
    if (type->element->kind == JTYPE_CHAR && type->element->primitive &&
        t.kind == JSON_TOKEN_STRING)
        return put_string(s, &t, type);
    if (t.kind != JSON_TOKEN_BEGIN_ARRAY)
        return args_mismatch(s, &t, type->name);
    place = hs2_put_open_list(s->out);
    for (t = json_next(&s->j); t.kind != JSON_TOKEN_END_ARRAY; t = json_next(&s->j)) {
        if (t.kind == JSON_TOKEN_ERROR)
            return args_syntax(s);
        if (!args_typed(s, t, type->element))
            return false;
        n++;
    }
    args_close_list(s, place, n);
    return true;
}

bool args_typed(struct args_state *s, struct json_token t, const struct jtype *type)
{
    if (t.kind == JSON_TOKEN_ERROR)
        return args_syntax(s);
    if (t.kind == JSON_TOKEN_NULL) {
        if (type->primitive)
            return args_fail(s, ARGS_BAD_ARGUMENT, "null is not a " STR_FMT, STR_ARG(type->name));
        hs2_put_null(s->out);
        return true;
    }
    if (t.kind == JSON_TOKEN_STRING && !t.plain) {
        t.text = args_text(s, &t); /* "\u0031" is "1", and some clients write every '/' as "\/" */
        t.plain = true;
        t.ascii = false;
    }
    switch (type->kind) {
    case JTYPE_BOOLEAN:
        return put_boolean(s, &t, type);
    case JTYPE_BYTE:
    case JTYPE_SHORT:
    case JTYPE_INT:
    case JTYPE_LONG:
        return args_put_whole(s, &t, type);
    case JTYPE_FLOAT:
    case JTYPE_DOUBLE:
        return args_put_double(s, &t, type);
    case JTYPE_CHAR:
        return put_char(s, &t, type);
    case JTYPE_STRING:
        return put_string(s, &t, type);
    case JTYPE_NUMBER:
        return args_put_number(s, &t, type);
    case JTYPE_BIG_DECIMAL:
    case JTYPE_BIG_INTEGER:
        return args_put_big(s, &t, type);
    case JTYPE_DATE:
    case JTYPE_VALUE:
        return args_value(s, t, type);
    case JTYPE_OBJECT:
        return args_natural(s, t);
    case JTYPE_LIST:
        return t.kind == JSON_TOKEN_BEGIN_ARRAY ? args_list(s, t, type)
                                                : args_mismatch(s, &t, type->name);
    case JTYPE_MAP:
        return args_map(s, t, type);
    case JTYPE_ARRAY:
        return put_array(s, t, type);
    case JTYPE_UNSUPPORTED:
        return args_fail(s, ARGS_BAD_ARGUMENT,
                         "Dubbo cannot convert a generic argument to " STR_FMT,
                         STR_ARG(type->name));
    case JTYPE_OTHER:
        return put_other(s, t, type);
    }
    return false;
}

/* ---------------------------------------------------------------- public */

void args_begin(struct args_state *s, const struct args_opts *opts, struct buf *out,
                struct args_error *e)
{
    /* not zeroed as a whole: the key table is large and has its own life */
    s->opts = opts;
    s->out = out;
    s->e = e;
    s->n_classes = 0;
    s->keys = s->keys_inline;
    s->keys_cap = ARGS_KEYS_INLINE;
    s->n_keys = ARGS_KEYS_INLINE; /* dirty: cleaned before the first use */
    buf_init(&s->scratch, SCRATCH_LIMIT);
    *e = (struct args_error){0};
}

void args_end(struct args_state *s)
{
    buf_free(&s->scratch);
    if (s->keys != s->keys_inline)
        free(s->keys);
}

enum args_result args_one(struct args_state *s, const struct arg *arg)
{
    struct json_token t;
    bool ok = false;

    s->n_objects = 0;
    json_begin(&s->j, arg->json, s->opts->max_depth);
    t = json_next(&s->j);
    if (t.kind == JSON_TOKEN_ERROR)
        ok = args_syntax(s);
    else
        ok = arg->type != NULL ? args_typed(s, t, arg->type) : args_natural(s, t);
    if (ok && json_next(&s->j).kind != JSON_TOKEN_END)
        ok = args_syntax(s);
    if (ok && s->out->failed)
        ok = args_fail(s, ARGS_TOO_LARGE, "the encoded arguments are too large");
    if (ok)
        return ARGS_OK;
    args_point_at(s->e, arg->json);
    return s->e->result;
}

enum args_result arg_encode(const struct arg *arg, const struct args_opts *opts, struct buf *out,
                            struct args_error *e)
{
    struct args_state s NO_AUTO_INIT;
    size_t before = out->len;
    enum args_result r = ARGS_OK;

    args_begin(&s, opts, out, e);
    r = args_one(&s, arg);
    args_end(&s);
    if (r != ARGS_OK)
        buf_truncate(out, before);
    return r;
}
