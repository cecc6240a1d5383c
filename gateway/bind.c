#include "gateway/bind.h"

#include <stdio.h>
#include <string.h>

#include "codec/invoke.h"
#include "codec/json_read.h"
#include "codec/json_write.h"
#include "codec/utf.h"
#include "gateway/keys.h"

enum { SCRATCH_MAX = 16 * 1024 * 1024, QUERY_VALUES_MAX = 1000, ATTACHMENT_MAX = 8192 };

/* ---------------------------------------------------------------- the body */

struct str bind_body(const struct request *r)
{
    struct str b = r->body;

    if (str_starts(b, STR("\xef\xbb\xbf")))
        b = str_sub(b, 3, b.n);
    return str_trim(b);
}

static bool looks_like_json(struct str b)
{
    return b.n != 0 && memchr("{[\"-tfn0123456789", b.p[0], 17) != NULL;
}

static bool charset_is_utf8(struct str params)
{
    while (params.n != 0) {
        struct str value = STR_NONE;
        struct str one = str_trim(str_cut(params, ';', &params));
        struct str key = str_cut(one, '=', &value);

        value = str_trim(value);
        if (value.n >= 2 && value.p[0] == '"')
            value = str_sub(value, 1, value.n - 1);
        if (str_eq_nocase(str_trim(key), STR("charset")))
            return str_eq_nocase(value, STR("utf-8")) || str_eq_nocase(value, STR("utf8"));
    }
    return true;
}

bool bind_content_type(const struct request *r, struct problem *p)
{
    struct str header = request_header(r, STR("Content-Type"));
    struct str params = STR_NONE;
    struct str type = str_trim(str_cut(header, ';', &params));
    struct str body = bind_body(r);
    bool json = str_eq_nocase(type, STR("application/json")) ||
                (type.n > 5 && str_eq_nocase(str_sub(type, type.n - 5, type.n), STR("+json")));
    bool browser = request_header(r, STR("Origin")).p != NULL ||
                   request_header(r, STR("Sec-Fetch-Site")).p != NULL;
    struct str coding = request_header(r, STR("Content-Encoding"));

    if (coding.n != 0 && !str_eq_nocase(coding, STR("identity"))) {
        problem_set(p, OUTCOME_UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed");
        return false;
    }
    if (body.n == 0 || (json && charset_is_utf8(params)))
        return true;
    if (header.n == 0 && looks_like_json(body))
        return true;
    /* what curl -d sends when nobody says otherwise; a browser could send it from a foreign page */
    if (str_eq_nocase(type, STR("application/x-www-form-urlencoded")) && !browser &&
        json_is_valid(body, JSON_DEPTH_MAX, NULL, NULL))
        return true;
    problem_set(p, OUTCOME_UNSUPPORTED_MEDIA_TYPE, "the body must be application/json in UTF-8");
    return false;
}

static bool check_json(struct str body, unsigned max_depth, struct problem *p)
{
    size_t at = 0;
    const char *why = NULL;

    if (json_is_valid(body, max_depth, &at, &why))
        return true;
    json_position(body, at, &p->line, &p->column);
    problem_set(p, OUTCOME_BAD_REQUEST, "broken JSON at line %u, column %u: %s", p->line, p->column,
                why);
    return false;
}

/* ---------------------------------------------------------------- values */

struct binder {
    const struct route_match *m;
    const struct request *r;
    struct arena *a;
    struct problem *p;
    struct str body; /* checked once a part of it is wanted */
    bool body_checked;
    unsigned max_depth;
};

/* A text as a JSON string in the arena. */
static struct str quoted(struct arena *a, struct str text)
{
    struct buf b;
    struct str out = STR_NONE;

    buf_init(&b, SCRATCH_MAX);
    json_add_string(&b, text);
    out = arena_str(a, buf_str(&b));
    buf_free(&b);
    return out;
}

static bool fail_source(struct binder *b, enum outcome o, struct str source, const char *why)
{
    problem_set(b->p, o, STR_FMT ": %s", STR_ARG(source), why);
    snprintf(b->p->source, sizeof(b->p->source), STR_FMT, STR_ARG(source));
    return false;
}

static bool check_body(struct binder *b)
{
    if (b->body_checked || b->body.n == 0)
        return true;
    b->body_checked = true;
    return check_json(b->body, b->max_depth, b->p);
}

/* The member at a.b.c of the body; absent = n == 0. */
static bool body_member(struct binder *b, struct str path, struct str *out)
{
    struct str at = b->body;

    *out = STR_NONE;
    if (!check_body(b))
        return false;
    while (path.n != 0) {
        struct str name = str_cut(path, '.', &path);

        if (json_kind_of(at) != JSON_TOKEN_BEGIN_OBJECT || !json_member(at, name, &at))
            return true;
    }
    *out = at;
    return true;
}

/* All values of a query parameter as a JSON array. */
static bool query_list(struct binder *b, const struct source *s, struct str *out)
{
    struct buf list;
    bool bad = false;
    size_t n = 0;
    struct str v;

    buf_init(&list, SCRATCH_MAX);
    buf_add_u8(&list, '[');
    while (n < QUERY_VALUES_MAX && request_query(b->r, s->name, n, b->a, &v, &bad)) {
        if (n++ != 0)
            buf_add_u8(&list, ',');
        json_add_string(&list, v);
    }
    buf_add_u8(&list, ']');
    *out = n != 0 ? arena_str(b->a, buf_str(&list)) : STR_NONE;
    buf_free(&list);
    return !bad || fail_source(b, OUTCOME_BAD_REQUEST, s->text, "bad percent-encoding");
}

static bool text_source(struct binder *b, const struct source *s, struct str *text)
{
    bool bad = false;

    *text = STR_NONE;
    switch (s->kind) {
    case SOURCE_PATH:
        *text = route_var(b->m, s->name);
        break;
    case SOURCE_QUERY:
        if (!request_query(b->r, s->name, 0, b->a, text, &bad) && bad)
            return fail_source(b, OUTCOME_BAD_REQUEST, s->text, "bad percent-encoding");
        break;
    case SOURCE_HEADER:
        *text = request_header(b->r, s->name);
        if (!utf_valid(*text))
            return fail_source(b, OUTCOME_BAD_REQUEST, s->text, "not UTF-8");
        break;
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
    case SOURCE_BODY:
        break;
    }
    return true;
}

/* The JSON value of a source; absent = n == 0.  False: the problem is set. */
static bool json_source(struct binder *b, const struct source *s, struct str *out)
{
    struct str text = STR_NONE;

    *out = STR_NONE;
    if (s->kind == SOURCE_BODY && s->name.n != 0)
        return body_member(b, s->name, out);
    if (s->kind == SOURCE_BODY) {
        *out = b->body;
        return true;
    }
    if (s->kind == SOURCE_QUERY && s->all)
        return query_list(b, s, out);
    if (!text_source(b, s, &text))
        return false;
    if (text.p != NULL)
        *out = quoted(b->a, text);
    return true;
}

/* ---------------------------------------------------------------- objects */

static bool add_members(struct binder *b, const struct source_map *m, struct buf *out, size_t *n)
{
    for (size_t i = 0; i < m->n; i++) {
        struct str v = STR_NONE;

        if (!json_source(b, &m->v[i].source, &v))
            return false;
        if (v.n == 0)
            continue;
        if ((*n)++ != 0)
            buf_add_u8(out, ',');
        json_add_string(out, m->v[i].name);
        buf_add_u8(out, ':');
        buf_add_str(out, v);
    }
    return true;
}

static bool is_named(const struct source_map *m, const struct json_token *key)
{
    for (size_t i = 0; i < m->n; i++) {
        if (json_string_is(key, m->v[i].name))
            return true;
    }
    return false;
}

/* The object's own members, but those that are set; then the set ones: the path wins over the body. */
static bool set_members(struct binder *b, const struct route_arg *arg, struct str *value)
{
    struct json_each each = {0};
    struct json_token key;
    struct str v;
    struct buf out;
    size_t n = 0;
    bool ok = true;

    if (value->n != 0 && (!check_body(b) || json_kind_of(*value) != JSON_TOKEN_BEGIN_OBJECT)) {
        if (b->p->outcome == OUTCOME_OK)
            fail_source(b, OUTCOME_BAD_ARGUMENT, arg->from.text, "must be an object");
        return false;
    }
    buf_init(&out, SCRATCH_MAX);
    buf_add_u8(&out, '{');
    while (value->n != 0 && json_object_next(&each, *value, &key, &v)) {
        if (is_named(&arg->set, &key))
            continue;
        if (n++ != 0)
            buf_add_u8(&out, ',');
        buf_add_u8(&out, '"');
        buf_add_str(&out, key.text);
        buf_add_str(&out, STR("\":"));
        buf_add_str(&out, v);
    }
    ok = add_members(b, &arg->set, &out, &n);
    buf_add_u8(&out, '}');
    if (ok)
        *value = arena_str(b->a, buf_str(&out));
    buf_free(&out);
    return ok;
}

static bool object_of_fields(struct binder *b, const struct route_arg *arg, struct str *value)
{
    struct buf out;
    size_t n = 0;
    bool ok = false;

    buf_init(&out, SCRATCH_MAX);
    buf_add_u8(&out, '{');
    ok = add_members(b, &arg->fields, &out, &n);
    buf_add_u8(&out, '}');
    *value = ok && (n != 0 || !arg->required) ? arena_str(b->a, buf_str(&out)) : STR_NONE;
    buf_free(&out);
    return ok;
}

/* ---------------------------------------------------------------- arguments */

static bool add_arg(struct binder *b, struct bound *out, struct str json, const struct jtype *type,
                    struct str source)
{
    if (out->n == BIND_ARGS_MAX) {
        problem_set(b->p, OUTCOME_ARGUMENT_COUNT, "more than %d arguments", BIND_ARGS_MAX);
        return false;
    }
    out->args[out->n] = (struct arg){.json = json, .type = type};
    out->sources[out->n++] = source;
    return true;
}

static bool given_arg(struct binder *b, const struct route_arg *arg, struct bound *out)
{
    struct str value = STR_NONE;
    struct str source = arg->from_text.n != 0 ? arg->from.text : STR("fields");

    if (arg->from_text.n != 0) {
        if (!json_source(b, &arg->from, &value) ||
            (arg->set.n != 0 && !set_members(b, arg, &value)))
            return false;
    } else if (!object_of_fields(b, arg, &value)) {
        return false;
    }
    if (value.n == 0 && arg->has_default)
        value = quoted(b->a, arg->default_text);
    if (value.n == 0 && arg->required)
        return fail_source(b, OUTCOME_MISSING_ARGUMENT, source, "is missing");
    return add_arg(b, out, value.n != 0 ? value : STR("null"), arg->type, source);
}

static const struct jtype *type_at(const struct method *m, size_t i)
{
    return m != NULL && i < m->type_names.n ? &m->types[i] : NULL;
}

/* A parameter by name: path variable, then query, then (with a body) the body's member. */
static bool named_arg(struct binder *b, const struct method *m, size_t i, bool body,
                      struct bound *out)
{
    struct str name = m->params.v[i];
    struct str json = STR_NONE;
    struct str text = route_var(b->m, name);
    const char *from = text.p != NULL ? "path" : body ? "body" : "query";
    bool bad = false;

    if (text.p == NULL && !body && !request_query(b->r, name, 0, b->a, &text, &bad) && bad)
        return fail_source(b, OUTCOME_BAD_REQUEST, name, "bad percent-encoding");
    if (text.p != NULL)
        json = quoted(b->a, text);
    else if (body && b->body.n != 0 && !json_member(b->body, name, &json))
        json = STR_NONE;
    return add_arg(b, out, json.n != 0 ? json : STR("null"), type_at(m, i),
                   arena_printf(b->a, "%s." STR_FMT, from, STR_ARG(name)));
}

static bool check_members(struct binder *b, const struct method *m)
{
    struct json_each each = {0};
    struct json_token key;
    struct str v;

    while (json_object_next(&each, b->body, &key, &v)) {
        bool known = false;

        for (size_t i = 0; i < m->params.n; i++)
            known = known || json_string_is(&key, m->params.v[i]);
        if (!known) {
            problem_set(b->p, OUTCOME_UNKNOWN_PARAMETER,
                        "the method has no parameter \"" STR_FMT "\"",
                        STR_ARG(utf_cut(key.text, 64)));
            return false;
        }
    }
    return true;
}

static bool body_list(struct binder *b, const struct method *m, struct bound *out)
{
    struct json_each each = {0};
    struct str element;

    out->from_list = true;
    while (json_array_next(&each, b->body, &element)) {
        if (!add_arg(b, out, element, type_at(m, out->n), STR("body")))
            return false;
    }
    if (m != NULL && m->type_names.n != 0 && out->n != m->type_names.n) {
        problem_set(b->p, OUTCOME_ARGUMENT_COUNT,
                    "%zu arguments for %zu parameter%s; a list argument is written [[…]]", out->n,
                    m->type_names.n, m->type_names.n == 1 ? "" : "s");
        return false;
    }
    return true;
}

/* POST, PUT, PATCH without `args`. */
static bool args_from_body(struct binder *b, const struct method *m, struct bound *out)
{
    size_t n_params = m == NULL ? 0 : m->params.n != 0 ? m->params.n : m->type_names.n;
    enum json_kind kind = JSON_TOKEN_END;

    if (!check_body(b))
        return false;
    kind = b->body.n != 0 ? json_kind_of(b->body) : JSON_TOKEN_END;
    if (kind == JSON_TOKEN_BEGIN_ARRAY)
        return body_list(b, m, out);
    if (m != NULL && m->params.n > 1 &&
        (kind == JSON_TOKEN_BEGIN_OBJECT || kind == JSON_TOKEN_END)) {
        if (kind == JSON_TOKEN_BEGIN_OBJECT && !check_members(b, m))
            return false;
        for (size_t i = 0; i < m->params.n; i++) {
            if (!named_arg(b, m, i, true, out))
                return false;
        }
        return true;
    }
    if (n_params > 1) {
        problem_set(b->p, OUTCOME_ARGUMENT_COUNT,
                    "the method has %zu parameters; write the arguments as an array", n_params);
        return false;
    }
    if (kind == JSON_TOKEN_END && m != NULL && m->params.n == 1 &&
        route_var(b->m, m->params.v[0]).p != NULL)
        return named_arg(b, m, 0, true, out);
    return kind == JSON_TOKEN_END || add_arg(b, out, b->body, type_at(m, 0), STR("body"));
}

/* GET and DELETE without `args`. */
static bool args_from_target(struct binder *b, const struct method *m, struct bound *out)
{
    if (m != NULL && m->params.n != 0) {
        for (size_t i = 0; i < m->params.n; i++) {
            if (!named_arg(b, m, i, false, out))
                return false;
        }
        return true;
    }
    for (size_t i = 0; i < b->m->n_vars; i++) {
        struct str name = arena_printf(b->a, "path." STR_FMT, STR_ARG(b->m->vars[i].name));

        if (!add_arg(b, out, quoted(b->a, b->m->vars[i].value), type_at(m, i), name))
            return false;
    }
    return true;
}

static bool is_mapped(const struct route *r, struct str name)
{
    const struct method *m = r->method_def;

    for (size_t i = 0; i < r->n_args; i++) {
        const struct route_arg *a = &r->args[i];

        if (a->from.kind == SOURCE_QUERY && a->from_text.n != 0 && str_eq(a->from.name, name))
            return true;
        for (size_t j = 0; j < a->fields.n + a->set.n; j++) {
            const struct source *s = j < a->fields.n ? &a->fields.v[j].source
                                                     : &a->set.v[j - a->fields.n].source;

            if (s->kind == SOURCE_QUERY && str_eq(s->name, name))
                return true;
        }
    }
    for (size_t i = 0; !r->args_given && m != NULL && i < m->params.n; i++) {
        if (str_eq(m->params.v[i], name))
            return true;
    }
    return false;
}

static bool check_query(struct binder *b, const struct route *r)
{
    struct str rest = b->r->query;

    while (r->policy.request.unknown_query != 0 && rest.n != 0) {
        struct str value;
        struct str name = str_cut(str_cut(rest, '&', &rest), '=', &value);

        if (!request_decode(name, true, b->a, &name) || !is_mapped(r, name)) {
            problem_set(b->p, OUTCOME_UNKNOWN_PARAMETER,
                        "nothing uses the query parameter \"" STR_FMT "\"",
                        STR_ARG(utf_cut(name, 64)));
            return false;
        }
    }
    return true;
}

bool bind_route(const struct route_match *m, const struct request *r, struct arena *a,
                struct bound *out, struct problem *p)
{
    const struct route *route = m->route;
    struct binder b = {.m = m,
                       .r = r,
                       .a = a,
                       .p = p,
                       .body = bind_body(r),
                       .max_depth = route->policy.args_opts.max_depth};
    bool with_body = route->method == HTTP_POST || route->method == HTTP_PUT ||
                     route->method == HTTP_PATCH;

    out->n = 0;
    out->from_list = false;
    if (!check_query(&b, route))
        return false;
    if (!route->args_given)
        return with_body ? args_from_body(&b, route->method_def, out)
                         : args_from_target(&b, route->method_def, out);
    for (size_t i = 0; i < route->n_args; i++) {
        if (!given_arg(&b, &route->args[i], out))
            return false;
    }
    return true;
}

bool bind_body_as_args(const struct request *r, const struct jtype *types, size_t n_types,
                       struct bound *out, struct problem *p)
{
    struct binder b = {.r = r, .p = p, .body = bind_body(r), .max_depth = JSON_DEPTH_MAX};
    struct json_each each = {0};
    struct str element;

    out->n = 0;
    out->from_list = false;
    if (!check_body(&b))
        return false;
    if (b.body.n != 0 && json_kind_of(b.body) == JSON_TOKEN_BEGIN_ARRAY) {
        out->from_list = true;
        while (json_array_next(&each, b.body, &element)) {
            if (!add_arg(&b, out, element, out->n < n_types ? &types[out->n] : NULL, STR("body")))
                return false;
        }
    } else if (b.body.n != 0 &&
               !add_arg(&b, out, b.body, n_types != 0 ? &types[0] : NULL, STR("body"))) {
        return false;
    }
    if (n_types != 0 && out->n != n_types) {
        problem_set(p, OUTCOME_ARGUMENT_COUNT,
                    "%zu argument%s for %zu parameter%s; a list argument is written [[…]]", out->n,
                    out->n == 1 ? "" : "s", n_types, n_types == 1 ? "" : "s");
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- encoding */

static enum outcome outcome_of(enum args_result r)
{
    switch (r) {
    case ARGS_BAD_JSON:
        return OUTCOME_BAD_REQUEST;
    case ARGS_BAD_ARGUMENT:
        return OUTCOME_BAD_ARGUMENT;
    case ARGS_UNKNOWN_TYPE:
        return OUTCOME_UNKNOWN_TYPE;
    case ARGS_TOO_LARGE:
        return OUTCOME_REQUEST_TOO_LARGE;
    case ARGS_OK:
        break;
    }
    return OUTCOME_INTERNAL;
}

bool bind_encode(struct str method, const struct bound *b, const struct args_opts *opts,
                 struct buf *middle, struct problem *p)
{
    struct args_error e = {0};
    enum args_result r = invoke_middle(method, b->args, b->n, opts, middle, &e);
    struct str source = STR("body");

    if (r == ARGS_OK)
        return true;
    if (e.arg < b->n)
        source = b->sources[e.arg];
    if (b->from_list)
        snprintf(p->pointer, sizeof(p->pointer), "/%zu%.100s", e.arg, e.pointer);
    else
        snprintf(p->pointer, sizeof(p->pointer), "%s", e.pointer);
    snprintf(p->source, sizeof(p->source), STR_FMT, STR_ARG(source));
    if (r == ARGS_BAD_JSON && str_is(source, "body") && !b->from_list) {
        p->line = e.line;
        p->column = e.column;
    }
    problem_set(p, outcome_of(r), STR_FMT "%s: %s", STR_ARG(source), p->pointer, e.detail);
    return false;
}

/* ---------------------------------------------------------------- attachments */

bool bind_attachment_allowed(struct str name)
{
    static const char *const forbidden[] = {
        "generic",
        "path",
        "interface",
        "version",
        "group",
        "token",
        "_TO",
        "timeout-countdown",
        "async",
        "timeout",
        "enable-timeout-countdown",
        "remote.application",
        "id",
        "input",
        "dubbo.tag",
        "dubbo.force.tag",
    };

    for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
        if (str_eq_nocase(name, str_from(forbidden[i])))
            return false;
    }
    return name.n != 0;
}

void bind_attach(struct str name, struct str value, struct buf *out)
{
    for (size_t i = 0; i < value.n; i++) {
        if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
            return;
    }
    if (value.n == 0 || value.n > ATTACHMENT_MAX)
        return;
    if (!invoke_attachment(name, value, out))
        return; /* not UTF-8 */
}

static void forward_headers(const struct route *route, const struct request *r, struct arena *a,
                            struct buf *out)
{
    for (size_t i = 0; i < route->forward_headers.n; i++) {
        struct str name = route->forward_headers.v[i];
        struct str value = request_header(r, name);
        char *lower = NULL;

        if (value.p == NULL)
            continue;
        lower = arena_alloc(a, name.n + 6);
        memcpy(lower, "http.", 5);
        for (size_t j = 0; j < name.n; j++)
            lower[5 + j] = (char)(name.p[j] >= 'A' && name.p[j] <= 'Z' ? name.p[j] | 0x20
                                                                       : name.p[j]);
        bind_attach((struct str){lower, name.n + 5}, value, out);
    }
}

void bind_attachments(const struct route_match *m, const struct policy *policy,
                      const struct request *r, struct arena *a, struct buf *out)
{
    struct problem ignored = {0};
    struct binder b = {.m = m, .r = r, .a = a, .p = &ignored, .max_depth = JSON_DEPTH_MAX};

    for (size_t i = 0; i < policy->attachments.n; i++) {
        const struct named_source *s = &policy->attachments.v[i];
        struct str value = STR_NONE;

        if (!bind_attachment_allowed(s->name) || (m == NULL && s->source.kind == SOURCE_PATH))
            continue;
        if (text_source(&b, &s->source, &value) && value.p != NULL)
            bind_attach(s->name, value, out);
    }
    if (m != NULL)
        forward_headers(m->route, r, a, out);
    bind_attach(STR("request-id"), r->id, out);
}

/* ---------------------------------------------------------------- timeout */

static bool parse_timeout(struct str text, uint64_t *ms)
{
    return str_to_u64(text, UINT64_C(1) << 40, ms) || keys_parse_ms(text, ms);
}

bool bind_timeout(const struct request *r, struct str query, uint32_t max_ms, uint32_t *ms,
                  bool *given, struct problem *p)
{
    static const char *const names[] = {"X-Request-Timeout", "tri-service-timeout",
                                        "rest-service-timeout"};
    struct str text = query;
    uint64_t v = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && text.p == NULL; i++)
        text = request_header(r, str_from(names[i]));
    if (text.p == NULL)
        return true;
    if (!parse_timeout(text, &v) || v == 0) {
        problem_set(p, OUTCOME_BAD_REQUEST,
                    "the timeout is not a duration such as 800 or 800ms or 2s");
        return false;
    }
    *ms = v < max_ms ? (uint32_t)v : max_ms;
    *given = true;
    return true;
}
