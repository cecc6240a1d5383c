#include "gateway/bind_source.h"

#include <stdio.h>

#include "codec/json_read.h"
#include "codec/json_write.h"
#include "codec/utf.h"

/* ---------------------------------------------------------------- problems */

static const char bad_encoding[] = "is not percent-encoded UTF-8";

bool binder_fail(struct binder *b, enum outcome o, struct str source, const char *why)
{
    source = utf_cut(source, sizeof(b->p->source) - 1);
    problem_set(b->p, o, STR_FMT ": %s", STR_ARG(source), why);
    snprintf(b->p->source, sizeof(b->p->source), STR_FMT, STR_ARG(source));
    return false;
}

bool binder_fail_duplicate(struct binder *b, struct str key)
{
    json_position(b->body, (size_t)(key.p - b->body.p), &b->p->line, &b->p->column);
    problem_set(b->p, OUTCOME_BAD_REQUEST,
                "broken JSON at line %u, column %u: the member \"" STR_FMT
                "\" comes twice in one object",
                b->p->line, b->p->column, STR_ARG(utf_cut(key, 64)));
    return false;
}

bool binder_check_body(struct binder *b)
{
    size_t at = 0;
    const char *why = NULL;

    if (b->body_checked || b->body.n == 0)
        return true;
    b->body_checked = json_is_valid(b->body, b->max_depth, &at, &why);
    if (b->body_checked)
        return true;
    json_position(b->body, at, &b->p->line, &b->p->column);
    problem_set(b->p, OUTCOME_BAD_REQUEST, "broken JSON at line %u, column %u: %s", b->p->line,
                b->p->column, why);
    return false;
}

/* ---------------------------------------------------------------- JSON in the arena */

void binder_buf(struct binder *b, size_t n, struct buf *out)
{
    *out = (struct buf){.data = arena_alloc(b->a, n + 1), .cap = n + 1, .limit = n + 1};
}

size_t binder_quoted_size(struct str text)
{
    size_t n = 2;

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        /* \u00XX; two bytes; a byte that is no UTF-8 becomes U+FFFD */
        n += c < 0x20 ? 6U : c == '"' || c == '\\' ? 2U : c < 0x80 ? 1U : 3U;
    }
    return n;
}

struct str binder_quoted(struct binder *b, struct str text)
{
    struct buf out;

    binder_buf(b, binder_quoted_size(text), &out);
    json_add_string(&out, text);
    return buf_str(&out);
}

/* ---------------------------------------------------------------- the body */

/* One member of an object; absent = n == 0. */
static bool member(struct binder *b, struct str object, struct str name, struct str *out)
{
    struct json_each each = {0};
    struct json_token key;
    struct str value = STR_NONE;

    *out = STR_NONE;
    while (json_object_next(&each, object, &key, &value)) {
        if (!json_string_is(&key, name))
            continue;
        if (out->n != 0 && !b->duplicate_keys_last)
            return binder_fail_duplicate(b, key.text);
        *out = value;
    }
    return true;
}

/* The member at a.b.c of the body; absent = n == 0. */
static bool body_member(struct binder *b, struct str path, struct str *out)
{
    struct str at = b->body;

    *out = STR_NONE;
    if (!binder_check_body(b))
        return false;
    while (path.n != 0 && at.n != 0) {
        struct str name = str_cut(path, '.', &path);

        if (json_kind_of(at) != JSON_TOKEN_BEGIN_OBJECT)
            return true;
        if (!member(b, at, name, &at))
            return false;
    }
    *out = at;
    return true;
}

/* A JSON string, number or boolean as plain text. */
static bool body_text(struct binder *b, const struct source *s, struct str *text)
{
    struct str json = STR_NONE;
    struct buf plain;

    *text = STR_NONE;
    if (!body_member(b, s->name, &json))
        return false;
    json = str_trim(json);
    switch (json.n != 0 ? json_kind_of(json) : JSON_TOKEN_NULL) {
    case JSON_TOKEN_TRUE:
    case JSON_TOKEN_FALSE:
    case JSON_TOKEN_NUMBER:
        *text = json;
        break;
    case JSON_TOKEN_STRING:
        binder_buf(b, json.n, &plain);
        if (json_string_decode(json, &plain))
            *text = plain.len != 0 ? buf_str(&plain) : STR("");
        break;
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
    return true;
}

/* ---------------------------------------------------------------- texts */

bool binder_text(struct binder *b, const struct source *s, struct str *text)
{
    bool bad = false;

    *text = STR_NONE;
    switch (s->kind) {
    case SOURCE_PATH:
        *text = b->m != NULL ? route_var(b->m, s->name) : STR_NONE;
        break;
    case SOURCE_QUERY:
        if (!request_query(b->r, s->name, 0, b->a, text, &bad) && bad)
            return binder_fail(b, OUTCOME_BAD_REQUEST, s->text, bad_encoding);
        break;
    case SOURCE_HEADER:
        *text = request_header(b->r, s->name);
        break;
    case SOURCE_BODY:
        return body_text(b, s, text);
    case SOURCE_CLIENT_IP:
        *text = b->r->client_ip;
        break;
    case SOURCE_REQUEST_ID:
        *text = b->r->id;
        break;
    case SOURCE_REQUEST_METHOD:
        *text = b->r->method;
        break;
    case SOURCE_REQUEST_PATH:
        *text = b->r->path;
        break;
    case SOURCE_REQUEST_HOST:
        *text = request_header(b->r, STR("Host"));
        break;
    case SOURCE_CONST:
        *text = s->name.p != NULL ? s->name : STR("");
        break;
    }
    if (!utf_valid(*text)) /* headers are bytes to the library */
        return binder_fail(b, OUTCOME_BAD_REQUEST, s->text, "is not UTF-8");
    return true;
}

/* ---------------------------------------------------------------- lists */

static bool query_list(struct binder *b, const struct source *s, struct str *out)
{
    struct str rest = b->r->query;
    struct str raw = STR_NONE;
    struct buf list;
    size_t size = 2;
    size_t n = 0;

    *out = STR_NONE;
    for (; request_query_next(&rest, s->name, &raw); n++)
        size += 6 * raw.n + 3; /* each may be a control byte; quotes and comma */
    if (n == 0)
        return true;
    binder_buf(b, size, &list);
    buf_add_u8(&list, '[');
    rest = b->r->query;
    while (request_query_next(&rest, s->name, &raw)) {
        struct str v = STR_NONE;

        if (!request_decode(raw, true, b->a, &v))
            return binder_fail(b, OUTCOME_BAD_REQUEST, s->text, bad_encoding);
        if (list.len > 1)
            buf_add_u8(&list, ',');
        json_add_string(&list, v);
    }
    buf_add_u8(&list, ']');
    *out = buf_str(&list);
    return true;
}

/* Every line is one element; a comma does not split. */
static bool header_list(struct binder *b, const struct source *s, struct str *out)
{
    size_t from = 0;
    size_t size = 2;
    struct buf list;
    struct str v;

    *out = STR_NONE;
    while ((v = request_header_next(b->r, s->name, &from)).p != NULL) {
        if (!utf_valid(v))
            return binder_fail(b, OUTCOME_BAD_REQUEST, s->text, "is not UTF-8");
        size += binder_quoted_size(v) + 1;
    }
    if (size == 2)
        return true;
    binder_buf(b, size, &list);
    from = 0;
    buf_add_u8(&list, '[');
    while ((v = request_header_next(b->r, s->name, &from)).p != NULL) {
        if (list.len > 1)
            buf_add_u8(&list, ',');
        json_add_string(&list, v);
    }
    buf_add_u8(&list, ']');
    *out = buf_str(&list);
    return true;
}

bool binder_json(struct binder *b, const struct source *s, bool list, struct str *json)
{
    struct str text = STR_NONE;

    *json = STR_NONE;
    if (s->kind == SOURCE_BODY && s->name.n != 0)
        return body_member(b, s->name, json);
    if (s->kind == SOURCE_BODY) {
        *json = b->body;
        return true;
    }
    if (s->kind == SOURCE_QUERY && list)
        return query_list(b, s, json);
    if (s->kind == SOURCE_HEADER && list)
        return header_list(b, s, json);
    if (!binder_text(b, s, &text))
        return false;
    if (text.p != NULL)
        *json = binder_quoted(b, text);
    return true;
}
