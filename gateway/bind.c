#include "gateway/bind.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "codec/invoke.h"
#include "codec/java_text.h"
#include "codec/json_read.h"
#include "codec/utf.h"

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
    return b.n != 0 && str_find(STR("{[\"-tfn0123456789"), b.p[0]) < 17;
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

/* Where in the body the fault is, when the argument is a slice of it. */
static void place_of(const struct bound *b, const struct args_error *e, struct problem *p)
{
    uintptr_t body = (uintptr_t)b->body.p;
    uintptr_t arg = e->arg < b->n ? (uintptr_t)b->args[e->arg].json.p : 0;

    if (b->body.n == 0 || arg < body || arg - body >= b->body.n ||
        e->offset > b->body.n - (arg - body))
        return;
    json_position(b->body, arg - body + e->offset, &p->line, &p->column);
}

/* A text that is no JSON is that first, whatever type it should have been: the argument once more, as any value. */
static enum args_result look_for_bad_json(struct str method, const struct bound *b,
                                          const struct args_opts *opts, struct buf *scratch,
                                          struct args_error *e)
{
    struct arg plain;
    struct args_error second = {0};
    size_t before = scratch->len;
    enum args_result r = ARGS_BAD_ARGUMENT;

    if (e->arg >= b->n)
        return ARGS_BAD_ARGUMENT;
    plain = b->args[e->arg];
    plain.type = NULL;
    r = invoke_middle(method, &plain, 1, opts, scratch, &second);
    buf_truncate(scratch, before);
    if (r != ARGS_BAD_JSON)
        return ARGS_BAD_ARGUMENT;
    second.arg = e->arg;
    *e = second;
    return ARGS_BAD_JSON;
}

bool bind_encode(struct str method, const struct bound *b, const struct args_opts *opts,
                 struct buf *middle, struct problem *p)
{
    struct args_error e = {0};
    enum args_result r = invoke_middle(method, b->args, b->n, opts, middle, &e);
    struct str source = STR("body");

    if (r == ARGS_OK)
        return true;
    if (r == ARGS_TOO_LARGE) {
        problem_set(p, OUTCOME_REQUEST_TOO_LARGE, "the encoded arguments are too large");
        return false;
    }
    if (r == ARGS_BAD_ARGUMENT)
        r = look_for_bad_json(method, b, opts, middle, &e);
    if (e.arg < b->n)
        source = utf_cut(b->sources[e.arg], sizeof(p->source) - 1);
    if (b->from_list)
        snprintf(p->pointer, sizeof(p->pointer), "/%zu%.100s", e.arg, e.pointer);
    else
        snprintf(p->pointer, sizeof(p->pointer), "%s", e.pointer);
    snprintf(p->source, sizeof(p->source), STR_FMT, STR_ARG(source));
    if (r == ARGS_BAD_JSON)
        place_of(b, &e, p);
    problem_set(p, outcome_of(r), STR_FMT "%s: %s", STR_ARG(source), p->pointer, e.detail);
    return false;
}

bool bind_argument_text(const struct bound *b, unsigned index, struct arena *a, struct str *out)
{
    struct buf text;

    if (index >= b->n)
        return false;
    buf_init(&text, b->args[index].json.n * 4 + 64); /* a number may get longer */
    java_text_add(&b->args[index], &text);
    *out = arena_str(a, buf_str(&text));
    buf_free(&text);
    return true;
}
