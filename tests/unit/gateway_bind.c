#include <stdlib.h>

#include "codec/invoke.h"
#include "gateway/bind.h"

#include "tests/unit/gateway_kit.h"

static const char yaml[] =
    "listen: [{address: 127.0.0.1:8080}]\n"
    "services:\n"
    "  - name: user\n"
    "    interface: com.example.user.UserService\n"
    "    providers: ['127.0.0.1:20880']\n"
    "    methods:\n"
    "      - {name: getUser, types: [java.lang.Long], params: [id]}\n"
    "      - {name: updateUser, types: [java.lang.Long, com.example.user.User], params: [id, user]}\n"
    "      - {name: search, types: [com.example.user.UserQuery, int, int], params: [query, page, size]}\n"
    "      - {name: over, types: [java.lang.Integer, java.lang.String]}\n"
    "      - {name: list, types: [java.util.List], params: [ids]}\n"
    "      - {name: bytes, types: ['byte[]'], params: [data]}\n"
    "      - {name: named, params: [a, b]}\n"
    "      - {name: last, params: [a, b], request: {duplicate_keys: last}}\n"
    "      - {name: one, params: [a]}\n"
    "  - {name: free, interface: a.B, providers: ['127.0.0.1:20880']}\n"
    "routes:\n"
    "  - {name: get, method: GET, path: '/users/{id}', call: user.getUser, args: [{from: path.id}]}\n"
    "  - name: put\n"
    "    method: PUT\n"
    "    path: /users/{id}\n"
    "    call: user.updateUser\n"
    "    args: [{from: path.id}, {from: body, set: {id: path.id}}]\n"
    "  - name: search\n"
    "    method: GET\n"
    "    path: /users\n"
    "    call: user.search\n"
    "    args:\n"
    "      - type: com.example.user.UserQuery\n"
    "        fields: {name: query.name, tags: 'query.tag[]', tenant: header.X-Tenant}\n"
    "        required: false\n"
    "      - {from: query.page, type: int, required: false, default: '1'}\n"
    "      - {from: query.size, type: int, required: false, default: '20'}\n"
    "  - name: over\n"
    "    method: GET\n"
    "    path: /over2\n"
    "    call: user.over\n"
    "    args: [{from: query.v, type: java.lang.Integer}, {from: query.w, type: java.lang.String}]\n"
    "  - name: parts\n"
    "    path: /parts\n"
    "    call: free.parts\n"
    "    args:\n"
    "      - {from: body.a.b}\n"
    "      - {from: body.list, required: false}\n"
    "      - {from: client.ip}\n"
    "      - {from: request.id}\n"
    "      - {from: 'const:x\"y'}\n"
    "      - {from: header.X-H, all: true, required: false}\n"
    "  - {name: ids, method: GET, path: /ids, call: user.list, args: [{from: query.id}]}\n"
    "  - {name: data, method: GET, path: /data, call: user.bytes, args: [{from: query.d}]}\n"
    "  - name: must\n"
    "    method: GET\n"
    "    path: /must\n"
    "    call: free.must\n"
    "    request: {unknown_query: reject}\n"
    "    attachments: {t: query.trace}\n"
    "    args: [{fields: {a: query.a, b: query.b}}]\n"
    "  - {name: set, path: '/set/{id}', call: free.set, args: [{from: body, required: false, set: {id: path.id}}]}\n"
    "  - {name: none, path: /none, call: free.none, args: []}\n"
    /* without args */
    "  - {name: auto-put, method: PUT, path: '/auto/{id}', call: user.updateUser}\n"
    "  - {name: auto-get, method: GET, path: '/auto/{id}', call: user.getUser}\n"
    "  - {name: auto-post, path: '/auto-one/{id}', call: user.getUser}\n"
    "  - {name: auto-search, method: GET, path: /auto, call: user.search}\n"
    "  - {name: auto-list, method: GET, path: /auto-list, call: user.list}\n"
    "  - {name: auto-plist, path: /auto-list, call: user.list}\n"
    "  - {name: auto-free, path: /free, call: free.any}\n"
    "  - {name: auto-vars, method: DELETE, path: '/free/{b}/{a}', call: free.any}\n"
    "  - {name: auto-named, path: /named, call: user.named}\n"
    "  - {name: auto-last, path: /last, call: user.last}\n"
    "  - {name: auto-a, path: /one, call: user.one}\n"
    "  - {name: ping, method: GET, path: /ping, call: free.ping}\n"
    "direct: {enabled: true, allow: ['com.example.*', 'a.B']}\n";

#define U    "/com.example.user.UserService/"
#define LONG "java.lang.Long:"
#define USER "com.example.user.User:"
#define QRY  "com.example.user.UserQuery:"

static const struct {
    const char *method;
    const char *target;
    const char *lines;
    const char *body;
    const char *want; /* TYPE:JSON|…, or CODE DETAIL [SOURCE POINTER] @LINE:COLUMN */
} cases[] = {
    /* docs/OPERATIONS.md section 2.2 */
    {"GET", "/users/42", "", "", LONG "\"42\""},
    {"PUT", "/users/42", "", "{\"id\":1,\"name\":\"Ann\"}",
     LONG "\"42\"|" USER "{\"name\":\"Ann\",\"id\":\"42\"}"},
    {"GET", "/users?name=Ann&tag=x&tag=y&page=2", "", "",
     QRY "{\"name\":\"Ann\",\"tags\":[\"x\",\"y\"]}|int:\"2\"|int:\"20\""},
    {"GET", "/users/abc", "", "",
     "BAD_ARGUMENT path.id: \"abc\" is not a java.lang.Long [path.id]"},

    {"GET", "/users", "X-Tenant: t\xc3\xa9", "", QRY "{\"tenant\":\"té\"}|int:\"1\"|int:\"20\""},
    {"GET", "/users", "X-Tenant: \xe9", "",
     "BAD_REQUEST header.X-Tenant: is not UTF-8 [header.X-Tenant]"},
    {"GET", "/users?name=%22%0a", "", "", QRY "{\"name\":\"\\\"\\n\"}|int:\"1\"|int:\"20\""},
    {"GET", "/users?page=", "", "", "BAD_ARGUMENT query.page: \"\" is not a int [query.page]"},
    {"GET", "/users?tag=%ff", "", "",
     "BAD_REQUEST query.tag[]: is not percent-encoded UTF-8 [query.tag[]]"},
    {"GET", "/users?name=%ff", "", "",
     "BAD_REQUEST query.name: is not percent-encoded UTF-8 [query.name]"},
    {"GET", "/users?utm=%ff", "", "", QRY "{}|int:\"1\"|int:\"20\""},

    /* cases 15 and 31 */
    {"GET", "/over2?v=5&w=%E4%B8%AD%E6%96%87+a%2Bb%26c", "", "",
     "java.lang.Integer:\"5\"|java.lang.String:\"中文 a+b&c\""},
    {"GET", "/over2?v=abc&w=x", "", "",
     "BAD_ARGUMENT query.v: \"abc\" is not a java.lang.Integer [query.v]"},
    {"GET", "/over2?w=x", "", "", "MISSING_ARGUMENT query.v: is missing [query.v]"},
    {"GET", "/over2?v=1&v=2&w=", "", "", "java.lang.Integer:\"1\"|java.lang.String:\"\""},

    {"PUT", "/users/42", "", "", "MISSING_ARGUMENT body: is missing [body]"},
    {"PUT", "/users/42", "", "[1]", "BAD_ARGUMENT body: must be an object [body]"},
    {"PUT", "/users/42", "", "{\"a\":1,\"i\\u0064\":2,\"b\":[{}]}",
     LONG "\"42\"|" USER "{\"a\":1,\"b\":[{}],\"id\":\"42\"}"},
    {"PUT", "/users/42", "", "{\"a\":{\"x\":1,\"x\":2}}",
     "BAD_REQUEST body/a/x: the member \"x\" comes twice in one object [body /a/x]"},
    {"PUT", "/users/42", "", "{\"a\":",
     "BAD_REQUEST broken JSON at line 1, column 6: the text ends inside a container @1:6"},
    {"POST", "/set/7", "", "", "-:{\"id\":\"7\"}"},
    {"POST", "/set/7", "", "{}", "-:{\"id\":\"7\"}"},
    {"POST", "/none", "", "[1,2]", ""},

    {"POST", "/parts", "X-H: 1\nX-H: 2,3", "{\"a\":{\"b\":1.10},\"list\":[1]}",
     "-:1.10|-:[1]|-:\"192.0.2.7\"|-:\"01JHKZ6V3W8Q5T2M9C4R7YB0XD\"|-:\"x\\\"y\"|-:[\"1\",\"2,3\"]"},
    {"POST", "/parts", "", "{\"a\":{\"b\":null}}",
     "-:null|-:null|-:\"192.0.2.7\"|-:\"01JHKZ6V3W8Q5T2M9C4R7YB0XD\"|-:\"x\\\"y\"|-:null"},
    {"POST", "/parts", "", "{\"a\":1}", "MISSING_ARGUMENT body.a.b: is missing [body.a.b]"},
    {"POST", "/parts", "", "", "MISSING_ARGUMENT body.a.b: is missing [body.a.b]"},
    {"POST", "/parts", "", "{\"a\":{},\n \"a\":{\"b\":1}}",
     "BAD_REQUEST broken JSON at line 2, column 3: the member \"a\" comes twice in one object @2:3"},
    {"GET", "/ids?id=1", "", "", "java.util.List:[\"1\"]"}, /* the declared type asks for all */
    {"GET", "/ids?id=1&id=2,3", "", "", "java.util.List:[\"1\",\"2,3\"]"},
    {"GET", "/ids", "", "", "MISSING_ARGUMENT query.id: is missing [query.id]"},
    {"GET", "/data?d=AAEC", "", "", "byte[]:\"AAEC\""},
    {"GET", "/must?b=1", "", "", "-:{\"b\":\"1\"}"},
    {"GET", "/must?b=1&trace=x", "", "", "-:{\"b\":\"1\"}"},
    {"GET", "/must", "", "", "MISSING_ARGUMENT query.a: is missing [query.a]"},
    {"GET", "/must?b=1&c=2", "", "", "UNKNOWN_PARAMETER nothing uses the query parameter \"c\""},

    /* without args: bodies */
    {"PUT", "/auto/42", "", "[7,{\"n\":1}]", LONG "7|" USER "{\"n\":1}"},
    {"PUT", "/auto/42", "", "{\"user\":{\"n\":1}}", LONG "\"42\"|" USER "{\"n\":1}"},
    {"PUT", "/auto/42", "", "", LONG "\"42\"|" USER "null"},
    {"PUT", "/auto/42", "", "{\"user\":{},\"x\":1}",
     "UNKNOWN_PARAMETER the method has no parameter \"x\""},
    {"PUT", "/auto/42", "", "{\"user\":{},\"user\":{}}",
     "BAD_REQUEST broken JSON at line 1, column 13: the member \"user\" comes twice in one object @1:13"},
    {"PUT", "/auto/42", "", "5",
     "ARGUMENT_COUNT 1 argument for 2 parameters; write them as an array: [id, user]"},
    {"POST", "/auto-one/7", "", "", LONG "\"7\""},
    {"POST", "/auto-one/7", "", "{}", LONG "\"7\""},
    {"POST", "/auto-one/7", "", "[8]", LONG "8"},
    {"POST", "/auto-list", "", "[\"a\",\"b\"]",
     "ARGUMENT_COUNT 2 arguments for 1 parameter; a list argument is written [[\"a\",\"b\"]]"},
    {"POST", "/auto-list", "", "[[\"a\",\"b\"]]", "java.util.List:[\"a\",\"b\"]"},
    {"POST", "/auto-list", "", "", "ARGUMENT_COUNT 0 arguments for 1 parameter"},
    {"POST", "/free", "", "{\"a\":1}", "-:{\"a\":1}"},
    {"POST", "/free", "", "[]", ""},
    {"POST", "/free", "", "", ""},
    {"POST", "/free", "", " \r\n ", ""},
    {"POST", "/free", "", "\xef\xbb\xbf [1] ", "-:1"},
    {"POST", "/free", "", "{}", "-:{}"},
    {"POST", "/free", "", "null", "-:null"},
    {"POST", "/named", "", "{\"b\":2}", "-:null|-:2"},
    {"POST", "/named", "", "[1]", "ARGUMENT_COUNT 1 argument for 2 parameters"},
    {"POST", "/last", "", "{\"b\":2,\"b\":3}", "-:null|-:3"},
    {"POST", "/one", "", "{\"a\":2}", "-:{\"a\":2}"},
    {"POST", "/free", "", "[7",
     "BAD_REQUEST broken JSON at line 1, column 3: the text ends inside an array @1:3"},
    {"POST", "/free", "", "{\"a\":1,\"a\":2}",
     "BAD_REQUEST body/a: the member \"a\" comes twice in one object [body /a] @1:12"},
    {"POST", "/free", "", "[1,\n{\"a\":1,\"a\":2}]",
     "BAD_REQUEST body/1/a: the member \"a\" comes twice in one object [body /1/a] @2:12"},
    {"POST", "/free", "", "[{\"a\":[{\"class\":\"x.Y\"}]}]",
     "BAD_ARGUMENT body/0/a/0/class: a member named \"class\" with a text is not allowed [body /0/a/0/class]"},

    /* without args: targets */
    {"GET", "/auto/42", "", "", LONG "\"42\""},
    {"GET", "/auto?page=2&size=3&query=x", "", "", QRY "\"x\"|int:\"2\"|int:\"3\""},
    {"GET", "/auto?page=2&size=3", "", "", QRY "null|int:\"2\"|int:\"3\""},
    {"GET", "/auto?page=2", "", "", "BAD_ARGUMENT query.size: null is not a int [query.size]"},
    {"GET", "/auto-list?ids=1&ids=2", "", "", "java.util.List:[\"1\",\"2\"]"},
    {"DELETE", "/free/x/y", "", "", "-:\"x\"|-:\"y\""},
    {"GET", "/ping", "", "", ""},

    /* the direct form: docs/OPERATIONS.md section 2.3, cases 19, 29, 30 */
    {"POST", U "getUser", "", "[42]", LONG "42"},
    {"POST", U "getUser", "", "42", LONG "42"},
    {"POST", U "getUser", "", "[]", "ARGUMENT_COUNT 0 arguments for 1 parameter"},
    {"POST", U "getUser", "", "[1,2]", "ARGUMENT_COUNT 2 arguments for 1 parameter"},
    {"POST", U "getUser", "", "", "ARGUMENT_COUNT 0 arguments for 1 parameter"},
    {"POST", U "getUser", "", "[\"zz\"]",
     "BAD_ARGUMENT body/0: \"zz\" is not a java.lang.Long [body /0]"},
    {"POST", U "updateUser", "", "{\"user\":{\"n\":1},\"id\":5}", LONG "5|" USER "{\"n\":1}"},
    {"POST", U "updateUser", "", "{\"id\":5}", LONG "5|" USER "null"},
    {"POST", U "updateUser?types=int,a.C", "", "{\"id\":5}", "int:5|a.C:null"},
    {"POST", U "updateUser?types=int,a.C,a.D", "", "{\"id\":5}",
     "ARGUMENT_COUNT 1 argument for 3 parameters; write them as an array: [int, a.C, a.D]"},
    {"POST", U "over", "", "{\"v\":5}",
     "ARGUMENT_COUNT 1 argument for 2 parameters; write them as an array: [java.lang.Integer, java.lang.String]"},
    {"POST", U "list", "", "[\"a\",\"b\"]",
     "ARGUMENT_COUNT 2 arguments for 1 parameter; a list argument is written [[\"a\",\"b\"]]"},
    {"POST", U "named", "", "{\"b\":2,\"a\":1}", "-:1|-:2"},
    {"POST", "/a.B/describe?types=demo.Person,java.lang.String,int", "",
     "[{\"name\":\"Z\"},\"L\",3]", "demo.Person:{\"name\":\"Z\"}|java.lang.String:\"L\"|int:3"},
    {"POST", "/a.B/echoPerson", "", "{\"name\":\"Z\"}", "-:{\"name\":\"Z\"}"},
    {"POST", "/a.B/echoPerson", "", "[{\"name\":\"Z\"}]", "-:{\"name\":\"Z\"}"},
    {"POST", "/a.B/sayHello", "", "\"Tom\"", "-:\"Tom\""},
    {"POST", "/a.B/sayHello", "", "[\"Tom\"]", "-:\"Tom\""},
    {"POST", "/a.B/noArgs", "", "[]", ""},
    {"POST", "/a.B/noArgs", "", "", ""},
    {"POST", "/a.B/echoLong", "", "[9007199254740993]", "-:9007199254740993"},
    {"POST", "/a.B/x", "", "nul",
     "BAD_REQUEST broken JSON at line 1, column 1: this is no JSON value @1:1"},
};

static void print_problem(const struct problem *p, struct buf *out)
{
    buf_printf(out, "%s %s", outcome_row(p->outcome)->code, p->detail);
    if (p->source[0] != '\0')
        buf_printf(out, " [%s%s%s]", p->source, p->pointer[0] != '\0' ? " " : "", p->pointer);
    if (p->line != 0)
        buf_printf(out, " @%u:%u", p->line, p->column);
}

static void print_args(const struct bound *b, struct buf *out)
{
    for (size_t i = 0; i < b->n; i++)
        buf_printf(out, "%s" STR_FMT ":" STR_FMT, i != 0 ? "|" : "",
                   STR_ARG(b->args[i].type != NULL ? b->args[i].type->name : STR("-")),
                   STR_ARG(b->args[i].json));
}

static void bind_any(const struct settings *s, struct ask *q, struct buf *out)
{
    static struct bound b; /* need not be cleared */
    struct route_table *t = route_table_build(s);
    struct route_match m;
    struct direct_match d;
    struct buf middle;
    bool ok = false;

    buf_init(&middle, 100000);
    if (route_match(t, &q->r, &q->a, &m, &q->p) == ROUTE_FOUND) {
        ok = bind_route(&m, &q->r, &q->a, &b, &q->p) &&
             bind_encode(m.route->method_name, &b, &m.route->policy.args_opts, &middle, &q->p);
    } else {
        q->p = (struct problem){0};
        ck_assert_int_eq(direct_match(s, &q->r, &q->a, &d, &q->p), DIRECT_FOUND);
        ok = bind_direct(&d, &q->r, &q->a, &b, &q->p) &&
             bind_encode(d.method, &b, &d.policy->args_opts, &middle, &q->p);
    }
    ck_assert_int_eq(ok, q->p.outcome == OUTCOME_OK);
    ck_assert_int_eq(ok, middle.len != 0);
    if (ok)
        print_args(&b, out);
    else
        print_problem(&q->p, out);
    buf_free(&middle);
    route_table_free(t);
}

START_TEST(arguments)
{
    struct settings *s = kit_settings(yaml);
    struct ask q;
    struct buf got;

    kit_ask(&q, cases[_i].method, cases[_i].target, cases[_i].lines, cases[_i].body);
    buf_init(&got, 4096);
    bind_any(s, &q, &got);
    buf_add_u8(&got, '\0');
    ck_assert_str_eq((const char *)got.data, cases[_i].want);
    buf_free(&got);
    kit_done(&q);
    settings_put(s);
}
END_TEST

START_TEST(too_many_arguments)
{
    struct settings *s = kit_settings(yaml);
    struct buf body;
    struct buf got;
    struct ask q;

    for (int n = 64; n <= 65; n++) {
        buf_init(&body, 4096);
        buf_init(&got, 4096);
        buf_printf(&body, "[1");
        for (int i = 1; i < n; i++)
            buf_printf(&body, ",1");
        buf_printf(&body, "]");
        kit_ask(&q, "POST", "/free", "", "");
        q.r.body = buf_str(&body);
        bind_any(s, &q, &got);
        ck_assert_int_eq(q.p.outcome, n == 64 ? OUTCOME_OK : OUTCOME_ARGUMENT_COUNT);
        kit_done(&q);
        buf_free(&got);
        buf_free(&body);
    }
    settings_put(s);
}
END_TEST

/* A header pool full of one parameter is read in one pass and loses nothing. */
START_TEST(many_query_values)
{
    enum { N = 8000 };
    struct settings *s = kit_settings(yaml);
    struct buf query;
    struct buf got;
    struct ask q;

    buf_init(&query, 100000);
    buf_init(&got, 200000);
    for (int i = 0; i < N; i++)
        buf_printf(&query, "%s%%69d=%%01", i != 0 ? "&" : "");
    kit_ask(&q, "GET", "/ids", "", "");
    q.r.query = buf_str(&query);
    bind_any(s, &q, &got);
    ck_assert_int_eq(q.p.outcome, OUTCOME_OK);
    ck_assert_uint_eq(got.len, strlen("java.util.List:[]") + (size_t)N * 9 - 1);
    ck_assert_uint_lt(q.a.used, 1000000);
    kit_done(&q);
    buf_free(&got);
    buf_free(&query);
    settings_put(s);
}
END_TEST

START_TEST(too_large)
{
    struct settings *s = kit_settings(yaml);
    struct bound b = {.n = 1, .args = {{.json = STR("\"0123456789\"")}}, .sources = {STR("body")}};
    struct problem p = {0};
    struct buf middle;

    buf_init(&middle, 16);
    ck_assert(!bind_encode(STR("m"), &b, &s->defaults.args_opts, &middle, &p));
    ck_assert_int_eq(p.outcome, OUTCOME_REQUEST_TOO_LARGE);
    ck_assert_uint_eq(middle.len, 0);
    buf_free(&middle);
    settings_put(s);
}
END_TEST

/* ---------------------------------------------------------------- content types */

static const struct {
    const char *lines;
    const char *body;
    bool good;
} types[] = {
    {"Content-Type: application/json", "[1]", true},
    {"content-type: APPLICATION/JSON ; charset=UTF-8", "[1]", true},
    {"Content-Type: application/json; charset=\"utf8\"", "[1]", true},
    {"Content-Type: application/json; a=b; charset=gbk", "[1]", false},
    {"Content-Type: application/vnd.x+json", "{}", true},
    {"Content-Type: application/jsonx", "{}", false},
    {"Content-Type: application/json", "broken", true}, /* 400 later, with its place */
    {"Content-Type: text/plain", "[1]", false},
    {"Content-Type: text/plain", "", true},
    {"Content-Type: multipart/form-data; boundary=x", "--x", false},
    {"", "[1]", true},
    {"", " \"x\"", true},
    {"", "-1", true},
    {"", "<a/>", false},
    {"", "x=1", false},
    {"", "", true},
    /* what curl -d says */
    {"Content-Type: application/x-www-form-urlencoded", "[1]", true},
    {"Content-Type: application/x-www-form-urlencoded", "[1", false},
    {"Content-Type: application/x-www-form-urlencoded", "a=1", false},
    {"Content-Type: application/x-www-form-urlencoded\nOrigin: null", "[1]", false},
    {"Content-Type: application/x-www-form-urlencoded\nSec-Fetch-Site: none", "[1]", false},
    {"Content-Type: application/json\nOrigin: https://x", "[1]", true},
    {"Content-Type: application/json\nContent-Encoding: gzip", "[1]", false},
    {"Content-Type: application/json\nContent-Encoding: Identity", "[1]", true},
};

START_TEST(content_types)
{
    struct ask q;

    kit_ask(&q, "POST", "/free", types[_i].lines, types[_i].body);
    ck_assert_int_eq(bind_content_type(&q.r, &q.p), types[_i].good);
    ck_assert_int_eq(q.p.outcome, types[_i].good ? OUTCOME_OK : OUTCOME_UNSUPPORTED_MEDIA_TYPE);
    kit_done(&q);
}
END_TEST

/* ---------------------------------------------------------------- timeouts */

static const struct {
    const char *lines;
    const char *query; /* NULL: none */
    int want;          /* 0: not given; -1: 400 */
} timeouts[] = {
    {"", NULL, 0},
    {"X-Request-Timeout: 800", NULL, 800},
    {"X-Request-Timeout: 800ms", NULL, 800},
    {"X-Request-Timeout: 2s", NULL, 2000},
    {"X-Request-Timeout: 1m", NULL, 30000},
    {"X-Request-Timeout: 99999999999", NULL, 30000},
    {"X-Request-Timeout: 9999999999d", NULL, 30000},
    {"tri-service-timeout: 100", NULL, 100},
    {"rest-service-timeout: 100", NULL, 100},
    {"tri-service-timeout: 100\nX-Request-Timeout: 200", NULL, 200},
    {"X-Request-Timeout: 200", "300ms", 300},
    {"X-Request-Timeout: 0", NULL, -1},
    {"X-Request-Timeout: 0s", NULL, -1},
    {"X-Request-Timeout: -1", NULL, -1},
    {"X-Request-Timeout: 1e99", NULL, -1},
    {"X-Request-Timeout: 10 ms", NULL, -1},
    {"X-Request-Timeout: 1.5s", NULL, -1},
    {"X-Request-Timeout: 5x", NULL, -1},
    {"X-Request-Timeout: ms", NULL, -1},
    {"X-Request-Timeout:", NULL, -1},
    {"X-Request-Timeout: 100", "", -1},
};

START_TEST(timeout)
{
    struct ask q;
    struct str query = timeouts[_i].query != NULL ? str_from(timeouts[_i].query) : STR_NONE;
    uint32_t ms = 7;
    bool given = false;

    kit_ask(&q, "POST", "/", timeouts[_i].lines, "");
    ck_assert_int_eq(bind_timeout(&q.r, query, 30000, &ms, &given, &q.p), timeouts[_i].want >= 0);
    ck_assert_int_eq(given, timeouts[_i].want > 0);
    ck_assert_int_eq((int)ms, timeouts[_i].want > 0 ? timeouts[_i].want : 7);
    ck_assert_int_eq(q.p.outcome, timeouts[_i].want >= 0 ? OUTCOME_OK : OUTCOME_BAD_REQUEST);
    kit_done(&q);
}
END_TEST

/* ---------------------------------------------------------------- attachments */

static const char attachments_yaml[] =
    "listen: [{address: 127.0.0.1:8080}]\n"
    "services: [{name: s, interface: a.B, providers: ['127.0.0.1:1'], attachments: {origin: 'const:gw'}}]\n"
    "routes:\n"
    "  - name: r\n"
    "    path: /r/{id}\n"
    "    call: s.m\n"
    "    forward_headers: [X-Tenant, generic, path, group, token, _TO, async, timeout-countdown]\n"
    "    attachments:\n"
    "      TraceId: header.X-Trace\n"
    "      userName: const:Ann\n"
    "      plain: web\n"
    "      user: body.user.name\n"
    "      age: body.user.age\n"
    "      whole: body.user\n"
    "      id: path.id\n"
    "      theId: path.id\n"
    "      q: query.q\n"
    "      generic: const:false\n"
    "      Token: const:t\n"
    "      host: request.host\n";

static void attach(struct buf *b, const char *name, const char *value)
{
    ck_assert(invoke_attachment(str_from(name), str_from(value), b));
}

static void attachments_of(const struct settings *s, struct ask *q, struct buf *out)
{
    struct route_table *t = route_table_build(s);
    struct route_match m;

    ck_assert_int_eq(route_match(t, &q->r, &q->a, &m, &q->p), ROUTE_FOUND);
    bind_attachments(&m, &m.route->policy, &q->r, &q->a, out);
    route_table_free(t);
}

/* Cases 77 and 78: names keep their case, control names never arrive. */
START_TEST(attachments)
{
    struct settings *s = kit_settings(attachments_yaml);
    struct buf got;
    struct buf want;
    struct ask q;

    buf_init(&got, 10000);
    buf_init(&want, 10000);
    kit_ask(&q, "POST", "/r/5?q=%E4%B8%AD",
            "X-Trace: t1\nx-tenant: T\ngeneric: false\ngroup: g2\ntoken: t\nX-Other: no",
            "{\"user\":{\"name\":\"Zo\\u00eb\",\"age\":7}}");
    attachments_of(s, &q, &got);
    attach(&want, "origin", "gw"); /* of the service */
    attach(&want, "TraceId", "t1");
    attach(&want, "userName", "Ann");
    attach(&want, "plain", "web");
    attach(&want, "user", "Zoë");
    attach(&want, "age", "7");
    attach(&want, "theId", "5");
    attach(&want, "q", "中");
    attach(&want, "host", "x");
    attach(&want, "http.x-tenant", "T");
    attach(&want, "http.generic", "false"); /* harmless under that name */
    attach(&want, "http.group", "g2");
    attach(&want, "http.token", "t");
    attach(&want, "request-id", "01JHKZ6V3W8Q5T2M9C4R7YB0XD");
    ck_assert_uint_eq(got.len, want.len);
    ck_assert_mem_eq(got.data, want.data, want.len);
    buf_free(&got);
    buf_free(&want);
    kit_done(&q);
    settings_put(s);
}
END_TEST

START_TEST(attachments_that_cannot_be_sent)
{
    static char big[8194];
    struct buf b;

    buf_init(&b, 100000);
    memset(big, 'a', sizeof(big));
    bind_attach(STR("a"), STR("x\ny"), &b);
    bind_attach(STR("a"), STR("x\x7f"), &b);
    bind_attach(STR("a"), STR("\xff"), &b);
    bind_attach(STR("a"), STR(""), &b);
    bind_attach(STR("a"), (struct str){big, 8193}, &b);
    ck_assert_uint_eq(b.len, 0);
    bind_attach(STR("a"), (struct str){big, 8192}, &b);
    ck_assert_uint_gt(b.len, 8192);
    buf_free(&b);
    ck_assert(!bind_attachment_allowed(STR("generic")));
    ck_assert(!bind_attachment_allowed(STR("GROUP")));
    ck_assert(!bind_attachment_allowed(STR("_to")));
    ck_assert(!bind_attachment_allowed(STR("")));
    ck_assert(bind_attachment_allowed(STR("generic2")));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_bind");
    TCase *t = tcase_create("bind");

    tcase_add_loop_test(t, arguments, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(t, too_many_arguments);
    tcase_add_test(t, many_query_values);
    tcase_add_test(t, too_large);
    tcase_add_loop_test(t, content_types, 0, (int)ARRAY_LEN(types));
    tcase_add_loop_test(t, timeout, 0, (int)ARRAY_LEN(timeouts));
    tcase_add_test(t, attachments);
    tcase_add_test(t, attachments_that_cannot_be_sent);
    suite_add_tcase(s, t);
    return kit_run(s);
}
