/*
 * Arguments of a route or a direct call as slices of JSON text.
 */
#include <stdio.h>
#include <string.h>

#include "codec/json_read.h"
#include "codec/json_write.h"
#include "codec/utf.h"
#include "gateway/bind.h"
#include "gateway/bind_source.h"

enum { ECHO_MAX = 64, EXAMPLE_MAX = 256 };

/* What is known of the method's parameters. */
struct shape {
    const struct jtype *types;
    size_t n_types;
    struct text_list names;
};

static const struct jtype *type_at(const struct shape *s, size_t i)
{
    return i < s->n_types ? &s->types[i] : NULL;
}

/* Number of parameters; 0 = not known. */
static size_t n_params(const struct shape *s)
{
    return s->names.n != 0 ? s->names.n : s->n_types;
}

static struct shape shape_of(const struct method *m)
{
    if (m == NULL)
        return (struct shape){0};
    return (struct shape){m->types, m->type_names.n, m->params};
}

static bool add_arg(struct binder *b, struct bound *out, struct str json, const struct jtype *type,
                    struct str source)
{
    if (out->n == BIND_ARGS_MAX) {
        problem_set(b->p, OUTCOME_ARGUMENT_COUNT, "more than %d arguments", BIND_ARGS_MAX);
        return false;
    }
    out->args[out->n] = (struct arg){.json = json.n != 0 ? json : STR("null"), .type = type};
    out->sources[out->n++] = source;
    return true;
}

/* Several values of a parameter fit it.  byte[] and char[] are one text. */
static bool is_list_type(const struct jtype *t)
{
    if (t == NULL)
        return false;
    if (t->kind == JTYPE_ARRAY)
        return !(t->dims == 1 && t->element->primitive &&
                 (t->element->kind == JTYPE_BYTE || t->element->kind == JTYPE_CHAR));
    return t->kind == JTYPE_LIST;
}

/* ---------------------------------------------------------------- objects from sources */

/* The values of a map's sources, and an upper bound of their size as members. */
static bool member_values(struct binder *b, const struct source_map *m, struct str *values,
                          size_t *size, size_t *given)
{
    *given = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!binder_json(b, &m->v[i].source, m->v[i].source.all, &values[i]))
            return false;
        if (values[i].n == 0)
            continue;
        *size += binder_quoted_size(m->v[i].name) + values[i].n + 2;
        ++*given;
    }
    return true;
}

static void add_members(const struct source_map *m, const struct str *values, struct buf *out)
{
    for (size_t i = 0; i < m->n; i++) {
        if (values[i].n == 0)
            continue;
        if (out->len > 1)
            buf_add_u8(out, ',');
        json_add_string(out, m->v[i].name);
        buf_add_u8(out, ':');
        buf_add_str(out, values[i]);
    }
}

static bool is_set(const struct source_map *m, const struct str *values,
                   const struct json_token *key)
{
    for (size_t i = 0; i < m->n; i++) {
        if (values[i].n != 0 && json_string_is(key, m->v[i].name))
            return true;
    }
    return false;
}

/* The object's own members but those that are set, then the set ones: the path wins over the body. */
static bool set_members(struct binder *b, const struct route_arg *arg, struct str *value)
{
    struct str *values = arena_alloc(b->a, (arg->set.n + 1) * sizeof(*values));
    size_t size = value->n + 2;
    size_t given = 0;
    struct json_each each = {0};
    struct json_token key;
    struct str v = STR_NONE;
    struct buf out;

    if (value->n != 0 && !binder_check_body(b))
        return false;
    if (value->n != 0 && json_kind_of(*value) != JSON_TOKEN_BEGIN_OBJECT)
        return binder_fail(b, OUTCOME_BAD_ARGUMENT, arg->from.text, "must be an object");
    if (!member_values(b, &arg->set, values, &size, &given))
        return false;
    binder_buf(b, size, &out);
    buf_add_u8(&out, '{');
    while (value->n != 0 && json_object_next(&each, *value, &key, &v)) {
        if (is_set(&arg->set, values, &key))
            continue;
        if (out.len > 1)
            buf_add_u8(&out, ',');
        buf_add_u8(&out, '"');
        buf_add_str(&out, key.text);
        buf_add_str(&out, STR("\":"));
        buf_add_str(&out, v);
    }
    add_members(&arg->set, values, &out);
    buf_add_u8(&out, '}');
    *value = buf_str(&out);
    return true;
}

/* Absent (n == 0) when the argument is required and none of its sources is there. */
static bool object_of_fields(struct binder *b, const struct route_arg *arg, struct str *value)
{
    struct str *values = arena_alloc(b->a, (arg->fields.n + 1) * sizeof(*values));
    size_t size = 2;
    size_t given = 0;
    struct buf out;

    *value = STR_NONE;
    if (!member_values(b, &arg->fields, values, &size, &given))
        return false;
    if (given == 0 && (arg->required || arg->has_default))
        return true;
    binder_buf(b, size, &out);
    buf_add_u8(&out, '{');
    add_members(&arg->fields, values, &out);
    buf_add_u8(&out, '}');
    *value = buf_str(&out);
    return true;
}

/* The first source of `fields`, to name something the client can send. */
static struct str name_of(const struct route_arg *arg)
{
    return arg->from_text.n != 0 ? arg->from.text
           : arg->fields.n != 0  ? arg->fields.v[0].source.text
                                 : STR("fields");
}

static bool given_arg(struct binder *b, const struct route_arg *arg, struct bound *out)
{
    struct str value = STR_NONE;
    bool ok = arg->from_text.n != 0
                  ? binder_json(b, &arg->from, arg->from.all || is_list_type(arg->type), &value)
                  : object_of_fields(b, arg, &value);

    if (!ok)
        return false;
    if (value.n == 0 && arg->has_default)
        value = binder_quoted(b, arg->default_text);
    else if (value.n == 0 && arg->required)
        return binder_fail(b, OUTCOME_MISSING_ARGUMENT, name_of(arg), "is missing");
    else if (arg->set.n != 0 && !set_members(b, arg, &value))
        return false;
    return add_arg(b, out, value, arg->type,
                   arg->from_text.n != 0 ? arg->from.text : STR("fields"));
}

/* ---------------------------------------------------------------- arguments without `args` */

static bool count_fits(struct binder *b, const struct shape *s, const struct bound *out)
{
    size_t want = n_params(s);
    const struct jtype *type = type_at(s, 0);
    bool list = want == 1 && out->from_list && (type == NULL || is_list_type(type));
    struct str body = out->body.n <= ECHO_MAX ? out->body : STR("[…]");

    if (want == 0 || out->n == want)
        return true;
    problem_set(b->p, OUTCOME_ARGUMENT_COUNT, "%zu argument%s for %zu parameter%s", out->n,
                out->n == 1 ? "" : "s", want, want == 1 ? "" : "s");
    if (list)
        problem_set(b->p, OUTCOME_ARGUMENT_COUNT,
                    "%zu arguments for 1 parameter; a list argument is written [" STR_FMT "]",
                    out->n, STR_ARG(body));
    return false;
}

/* One value where several parameters are known: say how the arguments are written. */
static bool fail_not_a_list(struct binder *b, const struct shape *s)
{
    struct buf example;

    binder_buf(b, EXAMPLE_MAX, &example);
    for (size_t i = 0; i < n_params(s); i++) {
        if (i != 0)
            buf_add_str(&example, STR(", "));
        buf_add_str(&example, i < s->names.n ? s->names.v[i] : s->types[i].name);
    }
    problem_set(b->p, OUTCOME_ARGUMENT_COUNT,
                "1 argument for %zu parameters; write them as an array: [" STR_FMT "]", n_params(s),
                STR_ARG(example.failed ? STR("…") : buf_str(&example)));
    return false;
}

static bool list_args(struct binder *b, const struct shape *s, struct bound *out)
{
    struct json_each each = {0};
    struct str element = STR_NONE;

    out->from_list = true;
    while (json_array_next(&each, b->body, &element)) {
        if (!add_arg(b, out, element, type_at(s, out->n), STR("body")))
            return false;
    }
    return true;
}

/* The body's members by parameter, in one pass. */
static bool body_members(struct binder *b, const struct shape *s, struct str *values)
{
    struct json_each each = {0};
    struct json_token key;
    struct str v = STR_NONE;

    while (json_object_next(&each, b->body, &key, &v)) {
        size_t i = 0;

        while (i < s->names.n && !json_string_is(&key, s->names.v[i]))
            i++;
        if (i == s->names.n) {
            problem_set(b->p, OUTCOME_UNKNOWN_PARAMETER,
                        "the method has no parameter \"" STR_FMT "\"",
                        STR_ARG(utf_cut(key.text, ECHO_MAX)));
            return false;
        }
        if (values[i].n != 0 && !b->duplicate_keys_last)
            return binder_fail_duplicate(b, key.text);
        values[i] = v;
    }
    return true;
}

static struct str path_value(const struct binder *b, struct str name)
{
    return b->m != NULL ? route_var(b->m, name) : STR_NONE;
}

static bool any_path_value(const struct binder *b, const struct shape *s)
{
    for (size_t i = 0; i < s->names.n; i++) {
        if (path_value(b, s->names.v[i]).p != NULL)
            return true;
    }
    return false;
}

/* Each parameter from the path variable of its name, else the body's member; missing ones are null. */
static bool named_from_body(struct binder *b, const struct shape *s, struct bound *out)
{
    struct str values[BIND_ARGS_MAX] = {{NULL, 0}};

    if (s->names.n > BIND_ARGS_MAX) {
        problem_set(b->p, OUTCOME_ARGUMENT_COUNT, "more than %d arguments", BIND_ARGS_MAX);
        return false;
    }
    if (b->body.n != 0 && !body_members(b, s, values))
        return false;
    for (size_t i = 0; i < s->names.n; i++) {
        struct str name = s->names.v[i];
        struct str text = path_value(b, name);
        struct str json = text.p != NULL ? binder_quoted(b, text) : values[i];

        if (!add_arg(
                b, out, json, type_at(s, i),
                arena_printf(b->a, "%s." STR_FMT, text.p != NULL ? "path" : "body", STR_ARG(name))))
            return false;
    }
    return true;
}

/* POST, PUT, PATCH without `args`, and the direct form. */
static bool args_from_body(struct binder *b, const struct shape *s, struct bound *out)
{
    enum json_kind kind = JSON_TOKEN_END;

    if (!binder_check_body(b))
        return false;
    if (b->body.n != 0)
        kind = json_kind_of(b->body);
    if (kind == JSON_TOKEN_BEGIN_ARRAY)
        return list_args(b, s, out) && count_fits(b, s, out);
    if (kind == JSON_TOKEN_END)
        return any_path_value(b, s) ? named_from_body(b, s, out) : count_fits(b, s, out);
    if (s->names.n == 1 && any_path_value(b, s)) { /* nothing is left for the body to fill */
        b->body = STR_NONE;
        return named_from_body(b, s, out);
    }
    if (n_params(s) <= 1)
        return add_arg(b, out, b->body, type_at(s, 0), STR("body"));
    if (kind == JSON_TOKEN_BEGIN_OBJECT && s->names.n > 1)
        return named_from_body(b, s, out);
    return fail_not_a_list(b, s);
}

static bool named_from_target(struct binder *b, const struct shape *s, size_t i, struct bound *out)
{
    struct str name = s->names.v[i];
    struct str text = path_value(b, name);
    struct str json = STR_NONE;
    struct source query = {.kind = SOURCE_QUERY, .name = name};

    if (text.p != NULL)
        return add_arg(b, out, binder_quoted(b, text), type_at(s, i),
                       arena_printf(b->a, "path." STR_FMT, STR_ARG(name)));
    query.text = arena_printf(b->a, "query." STR_FMT, STR_ARG(name));
    return binder_json(b, &query, is_list_type(type_at(s, i)), &json) &&
           add_arg(b, out, json, type_at(s, i), query.text);
}

/* GET and DELETE without `args`. */
static bool args_from_target(struct binder *b, const struct shape *s, struct bound *out)
{
    for (size_t i = 0; i < s->names.n; i++) {
        if (!named_from_target(b, s, i, out))
            return false;
    }
    for (size_t i = 0; i < b->m->n_vars && s->names.n == 0; i++) {
        struct str name = arena_printf(b->a, "path." STR_FMT, STR_ARG(b->m->vars[i].name));

        if (!add_arg(b, out, binder_quoted(b, b->m->vars[i].value), type_at(s, i), name))
            return false;
    }
    return count_fits(b, s, out);
}

/* ---------------------------------------------------------------- unknown query parameters */

static bool reads_query(const struct source_map *m, struct str name)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->v[i].source.kind == SOURCE_QUERY && str_eq(m->v[i].source.name, name))
            return true;
    }
    return false;
}

static bool is_mapped(const struct route *r, struct str name)
{
    const struct method *m = r->method_def;

    if (reads_query(&r->policy.attachments, name))
        return true;
    for (size_t i = 0; i < r->n_args; i++) {
        const struct route_arg *a = &r->args[i];

        if ((a->from_text.n != 0 && a->from.kind == SOURCE_QUERY && str_eq(a->from.name, name)) ||
            reads_query(&a->fields, name) || reads_query(&a->set, name))
            return true;
    }
    for (size_t i = 0; !r->args_given && m != NULL && i < m->params.n; i++) {
        if (str_eq(m->params.v[i], name))
            return true;
    }
    return false;
}

static bool check_query(struct binder *b, const struct route *r)
{
    struct str rest = r->policy.request.unknown_query != 0 ? b->r->query : STR_NONE;

    while (rest.n != 0) {
        struct str value;
        struct str raw = str_cut(str_cut(rest, '&', &rest), '=', &value);
        struct str name = raw;

        if (raw.n == 0)
            continue;
        if (!request_decode(raw, true, b->a, &name) || !is_mapped(r, name)) {
            problem_set(b->p, OUTCOME_UNKNOWN_PARAMETER,
                        "nothing uses the query parameter \"" STR_FMT "\"",
                        STR_ARG(utf_cut(name, ECHO_MAX)));
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- whole requests */

static void begin(struct binder *b, const struct args_opts *opts, struct bound *out)
{
    b->body = bind_body(b->r);
    b->max_depth = opts->max_depth;
    b->duplicate_keys_last = opts->duplicate_keys_last;
    out->n = 0;
    out->from_list = false;
    out->body = b->body;
}

bool bind_route(const struct route_match *m, const struct request *r, struct arena *a,
                struct bound *out, struct problem *p)
{
    const struct route *route = m->route;
    const struct shape s = shape_of(route->method_def);
    struct binder b = {.m = m, .r = r, .a = a, .p = p};
    bool with_body = route->method == HTTP_POST || route->method == HTTP_PUT ||
                     route->method == HTTP_PATCH;

    begin(&b, &route->policy.args_opts, out);
    if (!check_query(&b, route))
        return false;
    if (!route->args_given)
        return with_body ? args_from_body(&b, &s, out) : args_from_target(&b, &s, out);
    for (size_t i = 0; i < route->n_args; i++) {
        if (!given_arg(&b, &route->args[i], out))
            return false;
    }
    return true;
}

bool bind_direct(const struct direct_match *d, const struct request *r, struct arena *a,
                 struct bound *out, struct problem *p)
{
    struct shape s = {.types = d->types, .n_types = d->n_types};
    struct binder b = {.r = r, .a = a, .p = p};

    /* the caller may have chosen another overload than the one whose names are configured */
    if (d->method_def != NULL && (d->n_types == 0 || d->n_types == d->method_def->params.n))
        s.names = d->method_def->params;
    begin(&b, &d->policy->args_opts, out);
    return args_from_body(&b, &s, out);
}
