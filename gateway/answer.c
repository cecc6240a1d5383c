#include "gateway/answer.h"

#include <stdio.h>
#include <string.h>

#include "codec/json_read.h"
#include "codec/json_write.h"
#include "codec/utf.h"
#include "gateway/scrub.h"

enum {
    ATTACHMENT_MAX = 8192,
    LINE_MAX_BYTES = 512, /* of a provider's text */
    RESERVED_HEADERS = 8, /* what an answer needs besides the route's own headers */
};

void answer_begin(struct answer *a, struct str request_id)
{
    a->status = 200;
    a->n_headers = 0;
    a->attachment_bytes = 0;
    answer_header(a, STR("Content-Type"), STR("application/json"));
    answer_header(a, STR("X-Request-Id"), request_id);
    answer_header(a, STR("Cache-Control"), STR("no-store"));
}

void answer_header(struct answer *a, struct str name, struct str value)
{
    for (size_t i = 0; i < a->n_headers; i++) {
        if (str_eq_nocase(a->headers[i].name, name)) {
            a->headers[i].value = value;
            return;
        }
    }
    if (a->n_headers < ANSWER_HEADERS_MAX)
        a->headers[a->n_headers++] = (struct header){name, value};
}

/* Of the route: leaves room for what the answer itself needs. */
static void route_header(struct answer *a, struct str name, struct str value)
{
    if (a->n_headers < ANSWER_HEADERS_MAX - RESERVED_HEADERS)
        answer_header(a, name, value);
}

void answer_empty(struct answer *a, unsigned status)
{
    size_t n = 0;

    a->status = status;
    for (size_t i = 0; i < a->n_headers; i++) {
        if (!str_eq_nocase(a->headers[i].name, STR("Content-Type")))
            a->headers[n++] = a->headers[i];
    }
    a->n_headers = n;
}

/* ---------------------------------------------------------------- results */

/* The member at a.b.c of a JSON text; n == 0 = absent. */
static struct str member_at(struct str json, struct str path)
{
    while (path.n != 0) {
        struct str name = str_cut(path, '.', &path);

        if (json_kind_of(json) != JSON_TOKEN_BEGIN_OBJECT || !json_member(json, name, &json))
            return STR_NONE;
    }
    return json;
}

/* A JSON scalar as plain text. */
static struct str scalar_text(struct str json, struct arena *arena)
{
    struct buf b;
    struct str out = json;

    if (json.n == 0 || json.p[0] != '"')
        return json;
    buf_init(&b, json.n + 1);
    if (json_string_decode(json, &b))
        out = arena_str(arena, buf_str(&b));
    buf_free(&b);
    return out;
}

/* The first line, at most 512 bytes, control bytes as blanks, valid UTF-8 for valid UTF-8. */
static struct str one_line(struct str text, struct arena *arena)
{
    struct str line = utf_cut(text, LINE_MAX_BYTES);
    char *to = NULL;

    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] == '\n' || line.p[i] == '\r')
            line.n = i;
    }
    to = arena_cstr(arena, line);
    for (size_t i = 0; i < line.n; i++) {
        if ((unsigned char)to[i] < 0x20 || to[i] == 0x7f)
            to[i] = ' ';
    }
    return (struct str){to, line.n};
}

static bool is_success(const struct success_policy *s, struct str json, struct arena *arena,
                       struct problem *p)
{
    struct str code = scalar_text(member_at(json, s->field), arena);
    struct str message;

    for (size_t i = 0; i < s->values.n; i++) {
        if (str_eq(code, s->values.v[i]))
            return true;
    }
    message = one_line(scalar_text(member_at(json, s->message_field), arena), arena);
    problem_set(p, OUTCOME_BUSINESS_ERROR, STR_FMT,
                STR_ARG(utf_cut(message, sizeof(p->detail) - 1)));
    p->mapped_status = (uint16_t)s->status;
    code = one_line(code, arena);
    snprintf(p->business_code, sizeof(p->business_code), STR_FMT,
             STR_ARG(utf_cut(code, sizeof(p->business_code) - 1)));
    return false;
}

/* The member becomes the whole body. */
static void unwrap(struct buf *body, struct str path)
{
    struct str inner = member_at(buf_str(body), path);

    if (inner.n == 0) {
        buf_truncate(body, 0);
        buf_add_str(body, STR("null"));
        return;
    }
    size_t n = inner.n;

    memmove(body->data, inner.p, n);
    buf_truncate(body, n);
}

static void envelop(struct buf *body)
{
    static const char head[] = "{\"code\":\"OK\",\"message\":\"\",\"data\":";
    size_t n = body->len;

    if (buf_reserve(body, sizeof(head)) == NULL) {
        body->failed = true;
        return;
    }
    if (n != 0)
        memmove(body->data + sizeof(head) - 1, body->data, n);
    memcpy(body->data, head, sizeof(head) - 1);
    body->len = n + sizeof(head) - 1;
    buf_add_u8(body, '}');
}

static void add_route_headers(struct answer *a, const struct response_policy *r,
                              const struct route *route)
{
    for (size_t i = 0; i < r->headers.n; i++)
        route_header(a, r->headers.v[i].name, r->headers.v[i].value);
    if (route != NULL && route->deprecated)
        route_header(a, STR("Deprecation"), STR("true"));
}

bool answer_value(struct answer *a, const struct policy *policy, const struct route *route,
                  struct buf *body, struct arena *arena, struct problem *p)
{
    const struct response_policy *r = &policy->response;
    bool null = body->len == 0;

    a->status = r->status;
    if (!null && r->success.field.n != 0 && !is_success(&r->success, buf_str(body), arena, p))
        return false;
    if (!null && r->unwrap.n != 0) {
        unwrap(body, r->unwrap);
        null = str_eq(str_trim(buf_str(body)),
                      STR("null")); /* the wrapper's content is the result */
    }
    if (null && r->null_status == 404) {
        problem_set(p, OUTCOME_NOT_FOUND, "the result is null");
        return false;
    }
    if (null && r->null_status != 200)
        a->status = r->null_status;
    if (null) {
        buf_truncate(body, 0);
        buf_add_str(body, STR("null"));
    }
    add_route_headers(a, r, route);
    if (a->status == 204 || a->status == 205) {
        buf_truncate(body, 0);
        answer_empty(a, a->status);
    } else if (r->envelope != 0) {
        envelop(body);
    }
    if (!body->failed)
        return true;
    problem_set(p, OUTCOME_RESPONSE_TOO_LARGE, "the answer is too large");
    return false;
}

/* ---------------------------------------------------------------- problems */

void answer_map_exception(const struct route *route, struct problem *p)
{
    struct str class = str_from(p->exception_class);

    for (size_t i = 0; route != NULL && i < route->n_exceptions; i++) {
        const struct exception_rule *e = &route->exceptions[i];

        if (!str_glob(e->class, class))
            continue;
        p->mapped_status = (uint16_t)e->status;
        snprintf(p->mapped_code, sizeof(p->mapped_code), STR_FMT, STR_ARG(e->code));
        return;
    }
}

unsigned problem_status(const struct problem *p)
{
    return p->mapped_status != 0 ? p->mapped_status : outcome_row(p->outcome)->status;
}

const char *problem_code(const struct problem *p)
{
    return p->mapped_code[0] != '\0' ? p->mapped_code : outcome_row(p->outcome)->code;
}

static const char *reason(unsigned status, const struct outcome_row *row)
{
    static const struct {
        unsigned status;
        const char *text;
    } reasons[] = {
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {412, "Precondition Failed"},
        {422, "Unprocessable Content"},
        {423, "Locked"},
        {424, "Failed Dependency"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {451, "Unavailable For Legal Reasons"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };

    if (status == row->status)
        return row->title;
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Error";
}

static void add_member(struct buf *b, const char *name, struct str value)
{
    buf_printf(b, ",\"%s\":", name);
    json_add_string(b, value);
}

static void add_errors(struct buf *b, const struct problem *p, struct str detail)
{
    if (p->source[0] == '\0' && p->line == 0)
        return;
    buf_add_str(b, STR(",\"errors\":[{"));
    if (p->source[0] != '\0') {
        buf_add_str(b, STR("\"source\":"));
        json_add_string(b, str_from(p->source));
        if (p->pointer[0] != '\0')
            add_member(b, "pointer", str_from(p->pointer));
    }
    if (p->line != 0)
        buf_printf(b, "%s\"line\":%u,\"column\":%u", p->source[0] != '\0' ? "," : "", p->line,
                   p->column);
    /* the sentence without its source in front */
    size_t skip = strlen(p->source) + strlen(p->pointer) + 2;

    if (p->source[0] != '\0' && detail.n > skip && str_starts(detail, str_from(p->source)))
        detail = str_sub(detail, skip, detail.n);
    add_member(b, "detail", detail);
    buf_add_str(b, STR("}]"));
}

static void add_candidates(struct buf *b, struct str lines)
{
    const char *before = ",\"candidates\":[";

    if (lines.n == 0)
        return;
    while (lines.n != 0) {
        buf_add_str(b, str_from(before));
        json_add_string(b, str_cut(lines, '\n', &lines));
        before = ",";
    }
    buf_add_u8(b, ']');
}

static bool is_exception(const struct problem *p)
{
    return p->outcome == OUTCOME_PROVIDER_EXCEPTION || p->outcome == OUTCOME_VALIDATION_FAILED;
}

static void add_exception(struct buf *b, const struct problem *p, unsigned level,
                          struct str message)
{
    bool class = level == EXCEPTION_CLASS_AND_MESSAGE && p->exception_class[0] != '\0';

    if (!is_exception(p) || level == EXCEPTION_NONE || (!class && message.n == 0))
        return;
    buf_add_str(b, STR(",\"exception\":{"));
    if (class) {
        buf_add_str(b, STR("\"class\":"));
        json_add_string(b, str_from(p->exception_class));
    }
    if (message.n != 0) { /* Java's null message stays away */
        buf_add_str(b, class ? STR(",\"message\":") : STR("\"message\":"));
        json_add_string(b, message);
    }
    buf_add_u8(b, '}');
}

/* ---------------------------------------------------------------- texts of providers */

static struct str provider_text(const char *text, struct arena *arena)
{
    return utf_cut(without_addresses(one_line(str_from(text), arena), arena), LINE_MAX_BYTES);
}

static struct str detail_of(const struct problem *p, unsigned level, struct arena *arena)
{
    if (p->detail[0] == '\0' || (is_exception(p) && level == EXCEPTION_NONE))
        return str_from(outcome_row(p->outcome)->detail);
    if (is_exception(p) || p->outcome == OUTCOME_PROVIDER_ERROR)
        return provider_text(p->detail, arena);
    return str_from(p->detail);
}

static void print_standard(const struct problem *p, struct str detail, struct str id, struct buf *b)
{
    buf_add_str(b, STR("{\"code\":"));
    json_add_string(b, str_from(problem_code(p)));
    add_member(b, "message", detail);
    buf_add_str(b, STR(",\"data\":null"));
    add_member(b, "requestId", id);
    buf_add_u8(b, '}');
}

static void print_problem(const struct problem *p, unsigned level, struct str detail, struct str id,
                          struct arena *arena, struct buf *b)
{
    const struct outcome_row *row = outcome_row(p->outcome);
    unsigned status = problem_status(p);

    buf_add_str(b, STR("{\"title\":"));
    json_add_string(b, str_from(reason(status, row)));
    buf_printf(b, ",\"status\":%u", status);
    add_member(b, "code", str_from(problem_code(p)));
    add_member(b, "detail", detail);
    add_member(b, "requestId", id);
    buf_printf(b, ",\"retryable\":%s", row->retryable ? "true" : "false");
    add_errors(b, p, detail);
    add_candidates(b, str_from(p->candidates));
    add_exception(b, p, level, provider_text(p->exception_message, arena));
    if (p->business_code[0] != '\0')
        add_member(b, "business_code", str_from(p->business_code));
    buf_add_u8(b, '}');
}

void answer_problem(struct answer *a, const struct policy *policy, const struct problem *p,
                    struct str request_id, struct arena *arena, struct buf *body)
{
    const struct outcome_row *row = outcome_row(p->outcome);
    unsigned level = policy != NULL ? policy->response.exception_detail
                                    : EXCEPTION_CLASS_AND_MESSAGE;
    struct str detail = detail_of(p, level, arena);

    a->status = problem_status(p);
    buf_truncate(body, 0);
    if (policy != NULL && policy->response.envelope != 0) {
        print_standard(p, detail, request_id, body);
    } else {
        answer_header(a, STR("Content-Type"), STR("application/problem+json"));
        print_problem(p, level, detail, request_id, arena, body);
    }
    if (row->retry_after_s != 0)
        answer_header(a, STR("Retry-After"), arena_printf(arena, "%u", row->retry_after_s));
    if (p->allow[0] != '\0')
        answer_header(a, STR("Allow"), arena_str(arena, str_from(p->allow)));
    if (p->outcome == OUTCOME_UNSUPPORTED_MEDIA_TYPE) {
        answer_header(a, STR("Accept"), STR("application/json"));
        answer_header(a, STR("Accept-Encoding"), STR("identity"));
    }
}

/* ---------------------------------------------------------------- attachments */

static bool is_clean(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < 0x20 || c == 0x7f)
            return false;
    }
    return s.n <= ATTACHMENT_MAX;
}

void answer_attachment(struct answer *a, const struct route *route, struct str name,
                       struct str value, struct arena *arena)
{
    for (size_t i = 0; route != NULL && i < route->return_attachments.n; i++) {
        struct str want = route->return_attachments.v[i];

        /* Dubbo's own transports change the case of names */
        if (!str_eq_nocase(want, name) || !is_clean(value) || !utf_valid(value) ||
            value.n > ANSWER_ATTACHMENTS_MAX - a->attachment_bytes)
            continue;
        a->attachment_bytes += value.n;
        route_header(a, arena_printf(arena, "X-Dubbo-" STR_FMT, STR_ARG(want)),
                     arena_str(arena, value));
        return;
    }
}
