#include <stdlib.h>

#include "gateway/direct.h"

#include "tests/unit/gateway_kit.h"

static const char yaml[] =
    "listen: [{address: 127.0.0.1:8080}]\n"
    "registries: [{name: main, address: 'zookeeper://127.0.0.1:2181'}]\n"
    "services:\n"
    "  - name: user\n"
    "    interface: com.example.user.UserService\n"
    "    version: 1.0.0\n"
    "    group: blue\n"
    "    timeout: 2s\n"
    "    methods:\n"
    "      - {name: getUser, types: [java.lang.Long], params: [id], timeout: 500ms}\n"
    "  - {name: o1, interface: com.example.order.OrderService, version: 1.0.0}\n"
    "  - {name: o2, interface: com.example.order.OrderService, version: 2.0.0}\n"
    "direct:\n"
    "  enabled: true\n"
    "  allow: ['com.example.user.UserService#get*', 'com.example.order.*', 'a.B#*', 'com.x*y.*#go']\n"
    "  deny: ['com.example.*#*Secret*', 'com.example.order.Hidden*']\n";

#define U "/com.example.user.UserService/"
#define O "/com.example.order.OrderService/"

static const struct {
    const char *method;
    const char *target;
    const char *lines;
    const char *want; /* "KEY method types timeout", "403", "404", "405", "204", "400 CODE" */
} cases[] = {
    {"POST", U "getUser", "", "com.example.user.UserService:1.0.0@blue getUser(java.lang.Long)"},
    {"POST", U "getUser/", "", "com.example.user.UserService:1.0.0@blue getUser(java.lang.Long)"},
    {"POST", U "getOther", "", "com.example.user.UserService:1.0.0@blue getOther()"},
    {"POST", U "getUser?version=3", "", "com.example.user.UserService:3 getUser()"},
    {"POST", U "getUser?group=", "", "com.example.user.UserService getUser()"},
    {"POST", U "getUser?version=1.0.0&group=blue", "",
     "com.example.user.UserService:1.0.0@blue getUser(java.lang.Long)"},
    {"POST", O "x", "", "com.example.order.OrderService x()"}, /* two versions: none is guessed */
    {"POST", O "x?version=0.0.0", "", "com.example.order.OrderService x()"},
    {"POST", O "x?version=2.0.0", "", "com.example.order.OrderService:2.0.0 x()"},
    {"POST", O "x", "tri-service-version: 2\ntri-service-group: g",
     "com.example.order.OrderService:2@g x()"},
    {"POST", O "x", "Rest-Service-Version: 2\nrest-service-group: g",
     "com.example.order.OrderService:2@g x()"},
    {"POST", O "x", "x-dubbo-service-version: 2\nx-dubbo-service-group: g",
     "com.example.order.OrderService:2@g x()"},
    {"POST", O "x?version=1", "tri-service-version: 2", "com.example.order.OrderService:1 x()"},
    {"POST", O "x?types=int,java.lang.String", "",
     "com.example.order.OrderService x(int,java.lang.String)"},
    {"POST", O "x?types=int%2C%20java.lang.String%5B%5D", "",
     "com.example.order.OrderService x(int,java.lang.String[])"},
    {"POST", O "x?types=java.lang.String...", "",
     "com.example.order.OrderService x(java.lang.String[])"},
    {"POST", O "x?types=%5BLjava.lang.String;", "",
     "com.example.order.OrderService x(java.lang.String[])"},
    {"POST", O "x?types=java.util.List%3Cdemo.Person%3E", "",
     "com.example.order.OrderService x(java.util.List)"},
    {"POST", O "x?types=java.util.Map%3CString,List%3Ca.B,c.D%3E%3E,int", "",
     "com.example.order.OrderService x(java.util.Map,int)"},
    {"POST", O "x?types=java.util.List%3Ca.B%3E%5B%5D", "",
     "com.example.order.OrderService x(java.util.List[])"},
    {"POST", O "x", "X-Dubbo-Types: int", "com.example.order.OrderService x(int)"},
    {"POST", O "x", "x-dubbo-service-method-overloading: int",
     "com.example.order.OrderService x(int)"},
    {"POST", U "getUser?types=int", "",
     "com.example.user.UserService:1.0.0@blue getUser(int)"}, /* the caller's word counts */
    {"POST", U "getUser?types=", "",
     "com.example.user.UserService:1.0.0@blue getUser(java.lang.Long)"},
    {"POST", O "x?timeout=800ms", "", "com.example.order.OrderService x() timeout 800ms"},
    {"POST", "/com%2eexample.user.UserService/getUser", "",
     "com.example.user.UserService:1.0.0@blue getUser(java.lang.Long)"},

    {"POST", O "x?types=Long", "", "400 UNKNOWN_TYPE"},
    {"POST", O "x?types=int,", "", "400 UNKNOWN_TYPE"},
    {"POST", O "x?types=,int", "", "400 UNKNOWN_TYPE"},
    {"POST", O "x?types=java.util.List%3Ca", "", "400 UNKNOWN_TYPE"},
    {"POST", O "x?types=java.util.List%3E", "", "400 UNKNOWN_TYPE"},
    {"POST", O "x?types=a.B%3Cx%3E%3Cy%3E", "", "400 UNKNOWN_TYPE"},
    {"POST", O "x?types=%ff", "", "400 BAD_REQUEST"},
    {"POST", O "x?version=%ff", "", "400 BAD_REQUEST"},
    {"POST", O "x?timeout=%ff", "", "400 BAD_REQUEST"},
    {"POST", O "x?version=a%2Fb", "", "400 BAD_REQUEST"},
    {"POST", O "x?group=a%0Ab", "", "400 BAD_REQUEST"},

    {"POST", U "setUser", "", "403"},
    {"POST", U "GetUser", "", "403"},
    {"POST", U "getSecretUser", "", "403"}, /* deny wins */
    {"POST", "/com.example.order.HiddenService/x", "", "403"},
    {"POST", "/com.example.user.userservice/getUser", "", "403"},
    {"POST", "/com.example.user.UserServiceX/getUser", "", "403"},
    {"POST", "/com.other.Service/x", "", "403"},
    /* names that are no names, under patterns that would let them pass */
    {"POST", "/com.example.order.a%2Fb/x", "", "403"},
    {"POST", "/com.example.order.%2e%2e/x", "", "403"},
    {"POST", "/com.example.order...%2f/x", "", "403"},
    {"POST", "/com.example.order.A%20B/x", "", "403"},
    {"POST", "/com.example.order.A%0A/x", "", "403"},
    {"POST", O "x%2Fy", "", "403"},
    {"POST", O "a.b", "", "403"},
    {"POST", O "1x", "", "403"},
    {"POST", "/com.x%2Fy.Z/go", "", "403"},

    {"GET", U "getUser", "", "405"},
    {"HEAD", U "getUser", "", "405"},
    {"PUT", U "setUser", "", "405"},
    {"DELETE", "/com.other.Service/x", "", "405"},
    {"OPTIONS", U "getUser", "", "204"},
    {"POST", "/x", "", "404"},
    {"POST", "/users/42", "", "404"},
    {"POST", "/com.example.user.UserService", "", "404"},
    {"POST", "/com.example.user.UserService/", "", "404"},
    {"POST", U "getUser/more", "", "404"},
    {"POST", "/" U "getUser", "", "404"},
    {"POST", "/", "", "404"},
};

static void check_refusal(const struct problem *p, struct buf *out)
{
    const struct outcome_row *row = outcome_row(p->outcome);

    ck_assert(p->outcome != OUTCOME_OK && p->detail[0] != '\0');
    ck_assert_str_eq(p->allow, p->outcome == OUTCOME_METHOD_NOT_ALLOWED ? "POST, OPTIONS" : "");
    buf_printf(out, "%u", row->status);
    if (row->status == 400)
        buf_printf(out, " %s", row->code);
}

static void print_match(const struct direct_match *m, struct buf *out)
{
    refkey_print(&m->key, out);
    buf_printf(out, " " STR_FMT "(", STR_ARG(m->method));
    for (size_t i = 0; i < m->n_types; i++)
        buf_printf(out, "%s" STR_FMT, i != 0 ? "," : "", STR_ARG(m->types[i].name));
    buf_printf(out, ")");
    if (m->timeout.p != NULL)
        buf_printf(out, " timeout " STR_FMT, STR_ARG(m->timeout));
}

static void answer(const struct settings *s, struct ask *q, struct buf *out)
{
    struct direct_match m;

    switch (direct_match(s, &q->r, &q->a, &m, &q->p)) {
    case DIRECT_NONE:
        buf_printf(out, "404");
        return;
    case DIRECT_OPTIONS:
        ck_assert_str_eq(q->p.allow, "POST, OPTIONS");
        buf_printf(out, "204");
        return;
    case DIRECT_REFUSED:
        check_refusal(&q->p, out);
        return;
    case DIRECT_FOUND:
        print_match(&m, out);
        return;
    }
}

START_TEST(match)
{
    struct settings *s = kit_settings(yaml);
    struct ask q;
    struct buf got;

    kit_ask(&q, cases[_i].method, cases[_i].target, cases[_i].lines, "");
    buf_init(&got, 4096);
    answer(s, &q, &got);
    buf_add_u8(&got, '\0');
    ck_assert_str_eq((const char *)got.data, cases[_i].want);
    buf_free(&got);
    kit_done(&q);
    settings_put(s);
}
END_TEST

START_TEST(long_names)
{
    struct settings *s = kit_settings(yaml);
    struct direct_match m;
    struct ask q;
    char name[300];

    kit_ask(&q, "POST", "", "", "");
    memset(name, 'a', sizeof(name));
    q.r.path = arena_printf(&q.a, "/com.example.order.%.280s/x", name);
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_REFUSED);
    ck_assert_int_eq(q.p.outcome, OUTCOME_NOT_ALLOWED);
    q.r.path = arena_printf(&q.a, O "%.128s", name);
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_FOUND);
    q.r.path = arena_printf(&q.a, O "%.129s", name);
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_REFUSED);
    kit_done(&q);
    settings_put(s);
}
END_TEST

START_TEST(many_types)
{
    struct settings *s = kit_settings(yaml);
    struct direct_match m;
    struct ask q;
    struct buf b;

    buf_init(&b, 4096);
    buf_printf(&b, "types=int");
    for (int i = 1; i < 64; i++)
        buf_printf(&b, ",int");
    kit_ask(&q, "POST", O "x", "", "");
    q.r.query = buf_str(&b);
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_FOUND);
    ck_assert_uint_eq(m.n_types, 64);
    buf_printf(&b, ",int");
    q.r.query = buf_str(&b);
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_REFUSED);
    ck_assert_int_eq(q.p.outcome, OUTCOME_ARGUMENT_COUNT);
    buf_free(&b);
    kit_done(&q);
    settings_put(s);
}
END_TEST

/* Which level's settings count. */
START_TEST(policies)
{
    struct settings *s = kit_settings(yaml);
    struct direct_match m;
    struct ask q;

    kit_ask(&q, "POST", U "getUser", "", "");
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_FOUND);
    ck_assert_uint_eq(m.policy->timeout_ms, 500);
    kit_done(&q);
    kit_ask(&q, "POST", U "getOther", "", "");
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_FOUND);
    ck_assert_uint_eq(m.policy->timeout_ms, 2000);
    kit_done(&q);
    kit_ask(&q, "POST", "/a.B/x", "", "");
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_FOUND);
    ck_assert_ptr_eq(m.policy, &s->defaults);
    ck_assert_ptr_null(m.service);
    s->direct.enabled = false;
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_NONE);
    s->direct.enabled = true;
    s->direct.path_prefix = STR("/app/v1/");
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_NONE);
    q.r.path = STR("/app/v1/a.B/x");
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_FOUND);
    q.r.path = STR("/app/v1a.B/x");
    ck_assert_int_eq(direct_match(s, &q.r, &q.a, &m, &q.p), DIRECT_NONE);
    kit_done(&q);
    settings_put(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_direct");
    TCase *t = tcase_create("direct");

    tcase_add_loop_test(t, match, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(t, long_names);
    tcase_add_test(t, many_types);
    tcase_add_test(t, policies);
    suite_add_tcase(s, t);
    return kit_run(s);
}
