#include "gateway/door.h"

#include <stdio.h>

enum { LENGTH_DIGITS_MAX = 19 };

/* What one pass over the header lines finds out. */
struct lines {
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
    unsigned empty_values;
    size_t bytes; /* name, colon, blank, value, CR LF of every line */
    struct str host;
    struct str length;
    struct str coding;
    struct str expect;
};

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Refused bytes: blanks and controls, DEL, backslash, fragment, broken escapes, an encoded NUL. */
static bool target_is_clean(struct str t)
{
    for (size_t i = 0; i < t.n; i++) {
        unsigned char c = (unsigned char)t.p[i];

        if (c <= 0x20 || c == 0x7f || c == '\\' || c == '#')
            return false;
        if (c != '%')
            continue;
        if (t.n - i < 3 || !is_hex(t.p[i + 1]) || !is_hex(t.p[i + 2]))
            return false;
        if (t.p[i + 1] == '0' && t.p[i + 2] == '0')
            return false;
    }
    return true;
}

static bool refuse(struct problem *p, enum outcome o, const char *why)
{
    problem_set(p, o, "%s", why);
    return false;
}

static bool read_lines(const struct request *r, struct lines *l, struct problem *p)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        struct str name = r->headers[i].name;
        struct str value = r->headers[i].value;

        /* catches "Name :" and leading blanks too: the library hands the blank on as part of the name */
        if (!header_name_ok(name))
            return refuse(p, OUTCOME_BAD_REQUEST, "a header name is not a token");
        if (!header_value_ok(value))
            return refuse(p, OUTCOME_BAD_REQUEST, "a header value holds a control character");
        l->bytes += name.n + value.n + 3 + (value.n != 0 ? 1 : 0);
        l->empty_values += value.n == 0 ? 1U : 0U;

        switch (name.n) {
        case 4:
            if (str_eq_nocase(name, STR("Host"))) {
                l->hosts++;
                l->host = value;
            }
            break;
        case 6:
            if (str_eq_nocase(name, STR("Expect")))
                l->expect = value;
            break;
        case 14:
            if (str_eq_nocase(name, STR("Content-Length"))) {
                l->lengths++;
                l->length = value;
            }
            break;
        case 17:
            if (str_eq_nocase(name, STR("Transfer-Encoding"))) {
                l->codings++;
                l->coding = value;
            }
            break;
        default:
            break;
        }
    }
    return true;
}

static bool check_host(const struct request *r, const struct lines *l, struct problem *p)
{
    if (l->hosts == 0 && str_eq(r->version, STR("HTTP/1.1")))
        return refuse(p, OUTCOME_BAD_REQUEST, "the Host header is missing");
    if (l->hosts > 1)
        return refuse(p, OUTCOME_BAD_REQUEST, "more than one Host header");
    for (size_t i = 0; i < l->host.n; i++) {
        if (__builtin_strchr(" \t/\\@,?#", l->host.p[i]) != NULL)
            return refuse(p, OUTCOME_BAD_REQUEST, "the Host header is not a host name");
    }
    return true;
}

static bool is_number(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    }
    return s.n != 0 && s.n <= LENGTH_DIGITS_MAX;
}

static bool wants_body(struct str method)
{
    return str_eq(method, STR("POST")) || str_eq(method, STR("PUT")) ||
           str_eq(method, STR("PATCH"));
}

static bool check_coding(const struct request *r, const struct lines *l,
                         const struct door_facts *facts, struct problem *p)
{
    if (l->lengths != 0)
        return refuse(p, OUTCOME_BAD_REQUEST, "Content-Length together with Transfer-Encoding");
    if (l->codings > 1)
        return refuse(p, OUTCOME_BAD_REQUEST, "more than one Transfer-Encoding header");
    if (!str_eq(r->version, STR("HTTP/1.1")))
        return refuse(p, OUTCOME_BAD_REQUEST, "Transfer-Encoding needs HTTP/1.1");
    if (!facts->chunked_allowed)
        return refuse(p, OUTCOME_LENGTH_REQUIRED, "a Content-Length is required here");
    if (!str_eq_nocase(l->coding, STR("chunked")))
        return refuse(p, OUTCOME_TRANSFER_CODING, "the only transfer coding known here is chunked");
    return true;
}

/* The length of the body, in the one way in which it may be given. */
static bool check_length(const struct request *r, const struct lines *l,
                         const struct door_facts *facts, struct door_verdict *v, struct problem *p)
{
    if (l->codings != 0) {
        v->chunked = v->has_body = true;
        return check_coding(r, l, facts, p);
    }
    if (l->lengths > 1)
        return refuse(p, OUTCOME_BAD_REQUEST, "more than one Content-Length header");
    if (l->lengths == 0) {
        if (wants_body(r->method))
            return refuse(p, OUTCOME_LENGTH_REQUIRED, "a Content-Length is required here");
        return true;
    }
    if (!is_number(l->length) || !str_to_u64(l->length, UINT64_MAX, &v->content_length))
        return refuse(p, OUTCOME_BAD_REQUEST, "the Content-Length is not a number");
    if (v->content_length > facts->max_body)
        return refuse(p, OUTCOME_REQUEST_TOO_LARGE, "the request body is over the limit");
    v->has_body = v->content_length != 0;
    return true;
}

/* RFC 9112 section 3.2.2; only our own authority, so that nobody takes us for a forward proxy. */
static bool cut_authority(struct str *target, struct str host)
{
    struct str rest = str_sub(*target, sizeof("http://") - 1, target->n);
    size_t slash = str_find(rest, '/');
    struct str authority = str_sub(rest, 0, slash);

    if (!str_eq_nocase(authority, host) || slash == rest.n)
        return false;
    *target = str_sub(rest, slash, rest.n);
    return true;
}

static bool check_target(struct request *r, struct str host, struct str raw, struct problem *p)
{
    if (!target_is_clean(raw))
        return refuse(p, OUTCOME_BAD_REQUEST,
                      "the request target holds a byte that must be escaped");
    if (str_starts(raw, STR("http://")) && !cut_authority(&raw, host))
        return refuse(p, OUTCOME_BAD_REQUEST, "the request target names another host");
    if (raw.n == 0 || raw.p[0] != '/')
        return refuse(p, OUTCOME_BAD_REQUEST, "the request target does not start with /");
    r->path = str_cut(raw, '?', &r->query);
    return true;
}

/*
 * The library hides things: folded lines, extra blanks, bare LF, a line ": value" that ends its header
 * block early.  All of them make the counted bytes differ from the sum of what it tells us, so the sum
 * decides whether anything behind this request may be read.  A blank after the colon of an empty value
 * is legal and common (Python's http.client).
 */
static bool head_adds_up(const struct request *r, const struct lines *l,
                         const struct door_facts *facts)
{
    size_t sum = r->method.n + 1 + facts->raw_target.n + 1 + r->version.n + 2 + l->bytes + 2;

    return facts->header_size >= sum && facts->header_size - sum <= l->empty_values;
}

enum door_result door_check(struct request *r, const struct door_facts *facts,
                            struct door_verdict *v, struct problem *p)
{
    struct lines l = {0};

    *v = (struct door_verdict){0};
    if (!str_eq(r->version, STR("HTTP/1.1")) && !str_eq(r->version, STR("HTTP/1.0"))) {
        refuse(p, OUTCOME_HTTP_VERSION, "only HTTP/1.0 and HTTP/1.1 are spoken here");
        return DOOR_REFUSED;
    }
    if (!header_name_ok(r->method)) {
        refuse(p, OUTCOME_BAD_REQUEST, "the request method is not a token");
        return DOOR_REFUSED;
    }
    if (!read_lines(r, &l, p) || !check_host(r, &l, p))
        return DOOR_REFUSED;
    if (str_eq(r->method, STR("OPTIONS")) && str_eq(facts->raw_target, STR("*"))) {
        r->path = facts->raw_target;
        return DOOR_OPTIONS_STAR;
    }
    if (!check_target(r, l.host, facts->raw_target, p) || !check_length(r, &l, facts, v, p))
        return DOOR_REFUSED;
    if (l.expect.n != 0 && !str_eq_nocase(l.expect, STR("100-continue"))) {
        refuse(p, OUTCOME_EXPECTATION_FAILED, "the only expectation met here is 100-continue");
        return DOOR_REFUSED;
    }
    return head_adds_up(r, &l, facts) ? DOOR_OK : DOOR_OK_CLOSE;
}
