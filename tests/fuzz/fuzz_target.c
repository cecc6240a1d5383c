/*
 * Request targets and bodies: decoding, routes, the direct form, arguments.
 * Input: "METHOD TARGET\nHOST\nBODY", the last two may be missing.
 *
 * What is found must be clean (UTF-8, no control bytes, a legal reference), a path built again from a match
 * must match the same way, and every bound argument must be JSON.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "codec/json_read.h"
#include "codec/utf.h"
#include "gateway/bind.h"
#include "gateway/direct.h"
#include "gateway/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char yaml[] =
    "listen: [{address: 127.0.0.1:8080}]\n"
    "services:\n"
    "  - name: s\n"
    "    interface: demo.UserService\n"
    "    version: 1.0.0\n"
    "    providers: ['127.0.0.1:1']\n"
    "    attachments: {t: header.X, b: body.a.b, q: query.q, p: request.path, h: request.host}\n"
    "    methods:\n"
    "      - {name: get, types: [long], params: [id]}\n"
    "      - {name: two, types: [java.util.List, a.B], params: [id, user]}\n"
    "routes:\n"
    "  - {name: root, method: GET, path: /, call: s.any}\n"
    "  - {name: list, method: GET, path: /users, call: s.two}\n"
    "  - {name: get, method: GET, path: '/users/{id}', call: s.get}\n"
    "  - {name: me, method: GET, path: /users/me, call: s.any}\n"
    "  - {name: put, method: PUT, path: '/users/{uid}', call: s.two}\n"
    "  - {name: lock, path: '/users/{id}:lock', call: s.any, args: [{from: body, set: {id: path.id, q: query.q}}]}\n"
    "  - {name: order, path: '/users/{id}/orders/{order}', call: s.any,\n"
    "     args: [{from: body.a.b, required: false}, {fields: {a: 'query.q[]', b: header.Host}}]}\n"
    "  - {name: mine, path: /users/me/orders, call: s.any, hosts: ['*.example.com']}\n"
    "  - {name: file, method: GET, path: '/files/{path=**}', call: s.any}\n"
    "  - {name: echo, path: /demo.UserService/echo, call: s.any}\n"
    "direct: {enabled: true, allow: ['*'], deny: ['*Hidden*#*']}\n";

static const struct settings *settings;
static const struct route_table *routes;

static void load(void)
{
    struct config_errors errs = {0};

    if (settings != NULL)
        return;
    settings = settings_parse("fuzz.yaml", str_from(yaml), &errs);
    ASSERT(settings != NULL);
    routes = route_table_build(settings);
}

static bool is_clean(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    }
    return utf_valid(s);
}

static void encode(struct str s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++)
        buf_printf(out, "%%%02x", (unsigned)(unsigned char)s.p[i]);
}

static void decoding(struct str text, struct arena *a)
{
    struct buf coded;
    struct str out = STR_NONE;

    buf_init(&coded, SIZE_MAX);
    encode(text, &coded);
    if (memchr(text.n != 0 ? text.p : "", 0, text.n) == NULL) {
        ASSERT(request_decode(buf_str(&coded), true, a, &out) == utf_valid(text));
        ASSERT(!utf_valid(text) || str_eq(out, text));
    }
    if (request_decode(text, true, a, &out))
        ASSERT(utf_valid(out) && out.n <= text.n);
    buf_free(&coded);
}

/* Both ways of reading a query agree. */
static void query(const struct request *r, struct arena *a)
{
    struct str rest = r->query;
    struct str raw = STR_NONE;
    struct str v = STR_NONE;

    for (size_t n = 0;; n++) {
        bool more = request_query_next(&rest, STR("q"), &raw);
        bool bad = false;
        bool ok = request_query(r, STR("q"), n, a, &v, &bad);

        ASSERT(more == (ok || bad) && !(ok && bad));
        ASSERT(!ok || utf_valid(v));
        if (!more || n > 50)
            return;
    }
}

/* The path of a match, every byte of its variables escaped, matches in the same way. */
static void again(const struct request *r, const struct route_match *m, struct arena *a)
{
    struct request other = *r;
    struct str rest = m->route->path;
    struct route_match m2;
    struct problem p = {0};
    struct buf path;
    size_t var = 0;

    if (str_contains(rest, STR("=**")))
        return; /* {var=**} loses which slashes were escaped */
    buf_init(&path, SIZE_MAX);
    while (rest.n != 0) {
        size_t open = str_find(rest, '{');

        buf_add_str(&path, str_sub(rest, 0, open));
        if (open == rest.n)
            break;
        ASSERT(var < m->n_vars);
        encode(m->vars[var++].value, &path);
        rest = str_sub(rest, str_find(rest, '}') + 1, rest.n);
    }
    ASSERT(var == m->n_vars);
    other.path = buf_str(&path);
    ASSERT(route_match(routes, &other, a, &m2, &p) == ROUTE_FOUND);
    ASSERT(m2.route == m->route && m2.n_vars == m->n_vars);
    for (size_t i = 0; i < m->n_vars; i++)
        ASSERT(str_eq(m2.vars[i].value, m->vars[i].value));
    buf_free(&path);
}

static void arguments(const struct bound *b, struct str method, const struct args_opts *opts,
                      struct problem *p)
{
    struct buf middle;

    for (size_t i = 0; i < b->n; i++)
        ASSERT(json_is_valid(b->args[i].json, JSON_DEPTH_MAX, NULL, NULL) ||
               b->args[i].json.p == b->body.p); /* a whole body is checked by the encoder */
    buf_init(&middle, 1 << 20);
    if (bind_encode(method, b, opts, &middle, p))
        ASSERT(middle.len != 0);
    else
        ASSERT(p->outcome != OUTCOME_OK && p->detail[0] != '\0' && middle.len == 0);
    buf_free(&middle);
}

static void route(const struct request *r, struct arena *a)
{
    struct route_match m;
    struct problem p = {0};
    struct buf attachments;
    static struct bound b;
    enum route_result result = route_match(routes, r, a, &m, &p);

    if (result == ROUTE_NONE)
        route_not_found(routes, r, a, &p);
    if (result != ROUTE_FOUND) {
        ASSERT(result == ROUTE_OPTIONS || p.detail[0] != '\0');
        return;
    }
    for (size_t i = 0; i < m.n_vars; i++)
        ASSERT(is_clean(m.vars[i].value));
    again(r, &m, a);
    if (bind_route(&m, r, a, &b, &p))
        arguments(&b, m.route->method_name, &m.route->policy.args_opts, &p);
    else
        ASSERT(p.outcome != OUTCOME_OK && p.detail[0] != '\0');
    buf_init(&attachments, 1 << 20);
    bind_attachments(&m, &m.route->policy, r, a, &attachments);
    buf_free(&attachments);
}

static void direct(const struct request *r, struct arena *a)
{
    struct direct_match d;
    struct problem p = {0};
    struct refkey k;
    struct err e;
    static struct bound b;

    switch (direct_match(settings, r, a, &d, &p)) {
    case DIRECT_NONE:
    case DIRECT_OPTIONS:
        return;
    case DIRECT_REFUSED:
        ASSERT(p.outcome != OUTCOME_OK && p.detail[0] != '\0');
        return;
    case DIRECT_FOUND:
        break;
    }
    ASSERT(refkey_make(d.key.interface, d.key.version, d.key.group, &k, &e));
    ASSERT(!str_contains(d.key.interface, STR("Hidden")));
    ASSERT(is_clean(d.method) && d.method.n != 0);
    for (size_t i = 0; i < d.n_types; i++)
        ASSERT(is_clean(d.types[i].name) && str_find(d.types[i].name, '<') == d.types[i].name.n);
    if (bind_direct(&d, r, a, &b, &p))
        arguments(&b, d.method, &d.policy->args_opts, &p);
    else
        ASSERT(p.outcome != OUTCOME_OK && p.detail[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = STR_NONE;
    struct str host = STR_NONE;
    struct str target = STR_NONE;
    struct str line = str_cut((struct str){(const char *)data, size}, '\n', &host);
    struct header headers[2];
    struct request r = {
        .headers = headers, .n_headers = 2, .id = STR("id"), .version = STR("HTTP/1.1")};
    struct problem p = {0};
    struct arena a;

    load();
    arena_init(&a);
    host = str_cut(host, '\n', &body);
    headers[0] = headers[1] = (struct header){STR("Host"), host};
    headers[1].name = STR("X");
    r.method = str_cut(line, ' ', &target);
    r.path = str_cut(target, '?', &r.query);
    r.body = body;
    decoding(target, &a);
    query(&r, &a);
    if (!bind_content_type(&r, &p))
        ASSERT(p.outcome == OUTCOME_UNSUPPORTED_MEDIA_TYPE);
    route(&r, &a);
    direct(&r, &a);
    arena_free(&a);
    return 0;
}
