#include <stdlib.h>

#include "gateway/answer.h"

#include "tests/unit/gateway_kit.h"

static const char yaml[] =
    "listen: [{address: 127.0.0.1:8080}]\n"
    "services: [{name: s, interface: a.B, providers: ['127.0.0.1:1']}]\n"
    "routes:\n"
    "  - {name: plain, path: /plain, call: s.m}\n"
    "  - {name: null204, path: /null204, call: s.m, response: {null_status: 204}}\n"
    "  - {name: null404, path: /null404, call: s.m, response: {null_status: 404}}\n"
    "  - {name: created, path: /created, call: s.m, deprecated: true,\n"
    "     response: {status: 201, headers: {X-A: b, Cache-Control: max-age=5}}}\n"
    "  - {name: standard, path: /standard, call: s.m, response: {envelope: standard}}\n"
    "  - {name: unwrap, path: /unwrap, call: s.m, response: {unwrap: data.list, null_status: 404}}\n"
    "  - name: wrapper\n"
    "    path: /wrapper\n"
    "    call: s.m\n"
    "    response:\n"
    "      unwrap: data\n"
    "      success: {field: code, values: ['0', '200', OK], message_field: msg}\n"
    "  - {name: message, path: /message, call: s.m, response: {exception_detail: message}}\n"
    "  - {name: none, path: /none, call: s.m, response: {exception_detail: none}}\n"
    "  - name: mapped\n"
    "    path: /mapped\n"
    "    call: s.m\n"
    "    return_attachments: [trace-tag, other]\n"
    "    exceptions:\n"
    "      - {class: com.example.NotFound, status: 404, code: USER_NOT_FOUND}\n"
    "      - {class: com.example.*, status: 422}\n"
    "      - {class: javax.validation.X, status: 409, code: CONFLICT}\n";

static const struct route *route_named(const struct settings *s, const char *name)
{
    for (size_t i = 0; i < s->n_routes; i++) {
        if (str_is(s->routes[i].name, name))
            return &s->routes[i];
    }
    ck_abort_msg("no route %s", name);
    return NULL;
}

#define ID   "01JHKZ6V3W8Q5T2M9C4R7YB0XD"
#define HEAD "Content-Type: application/json\nX-Request-Id: " ID "\nCache-Control: no-store\n"
#define BARE "X-Request-Id: " ID "\nCache-Control: no-store\n"
#define PROBLEM \
    "Content-Type: application/problem+json\nX-Request-Id: " ID "\nCache-Control: no-store\n"
#define WITH_ID "\"requestId\":\"" ID "\""

static void print(const struct answer *a, const struct buf *body, struct buf *out)
{
    buf_printf(out, "%u\n", a->status);
    for (size_t i = 0; i < a->n_headers; i++) {
        /* the HTTP library wants C strings */
        ck_assert_uint_eq(strlen(a->headers[i].name.p), a->headers[i].name.n);
        ck_assert_uint_eq(strlen(a->headers[i].value.p), a->headers[i].value.n);
        buf_printf(out, STR_FMT ": " STR_FMT "\n", STR_ARG(a->headers[i].name),
                   STR_ARG(a->headers[i].value));
    }
    buf_add_u8(out, '\n');
    buf_add_str(out, buf_str(body));
    buf_add_u8(out, '\0');
}

/* ---------------------------------------------------------------- results */

static const struct {
    const char *route;
    const char *json; /* NULL: null or void */
    const char *want;
} results[] = {
    {"plain", "{\"id\":42}", "200\n" HEAD "\n{\"id\":42}"},
    {"plain", NULL, "200\n" HEAD "\nnull"},
    {"null204", NULL, "204\n" BARE "\n"},
    {"null204", "1", "200\n" HEAD "\n1"},
    {"null404", NULL,
     "404\n" PROBLEM "\n{\"title\":\"Not Found\",\"status\":404,\"code\":\"NOT_FOUND\","
     "\"detail\":\"the result is null\"," WITH_ID ",\"retryable\":false}"},
    {"created", "1",
     "201\nContent-Type: application/json\nX-Request-Id: " ID
     "\nCache-Control: max-age=5\nX-A: b\nDeprecation: true\n\n1"},
    {"standard", "[1,2]", "200\n" HEAD "\n{\"code\":\"OK\",\"message\":\"\",\"data\":[1,2]}"},
    {"standard", NULL, "200\n" HEAD "\n{\"code\":\"OK\",\"message\":\"\",\"data\":null}"},
    {"unwrap", "{\"data\":{\"x\":0,\"list\":[1, 2]},\"y\":1}", "200\n" HEAD "\n[1, 2]"},
    {"unwrap", "{\"data\":{\"list\":null}}",
     "404\n" PROBLEM "\n{\"title\":\"Not Found\",\"status\":404,\"code\":\"NOT_FOUND\","
     "\"detail\":\"the result is null\"," WITH_ID ",\"retryable\":false}"},
    {"wrapper", "{\"code\":0,\"data\":{\"a\":1}}", "200\n" HEAD "\n{\"a\":1}"},
    {"wrapper", "{\"code\":\"OK\",\"data\":5}", "200\n" HEAD "\n5"},
    {"wrapper", "{\"code\":200}", "200\n" HEAD "\nnull"},
    {"wrapper", "{\"code\":7,\"msg\":\"no \\\"stock\\\"\\nat line 2\",\"data\":1}",
     "422\n" PROBLEM "\n{\"title\":\"Unprocessable Content\",\"status\":422,\"code\":"
     "\"BUSINESS_ERROR\",\"detail\":\"no \\\"stock\\\"\"," WITH_ID
     ",\"retryable\":false,\"business_code\":\"7\"}"},
    {"wrapper", "{\"code\":\"E1\"}",
     "422\n" PROBLEM "\n{\"title\":\"Unprocessable Content\",\"status\":422,\"code\":"
     "\"BUSINESS_ERROR\",\"detail\":\"the result says failure\"," WITH_ID
     ",\"retryable\":false,\"business_code\":\"E1\"}"},
    {"wrapper", "{}",
     "422\n" PROBLEM "\n{\"title\":\"Unprocessable Content\",\"status\":422,\"code\":"
     "\"BUSINESS_ERROR\",\"detail\":\"the result says failure\"," WITH_ID ",\"retryable\":false}"},
};

START_TEST(values)
{
    struct settings *s = kit_settings(yaml);
    const struct route *r = route_named(s, results[_i].route);
    struct answer a;
    struct problem p = {0};
    struct arena arena;
    struct buf body;
    struct buf got;

    arena_init(&arena);
    buf_init(&body, 4096);
    buf_init(&got, 8192);
    if (results[_i].json != NULL)
        buf_add_str(&body, str_from(results[_i].json));
    answer_begin(&a, STR(ID));
    if (!answer_value(&a, &r->policy, r, &body, &arena, &p))
        answer_problem(&a, &r->policy, &p, STR(ID), &arena, &body);
    print(&a, &body, &got);
    ck_assert_str_eq((const char *)got.data, results[_i].want);
    buf_free(&got);
    buf_free(&body);
    arena_free(&arena);
    settings_put(s);
}
END_TEST

START_TEST(envelope_over_the_limit)
{
    struct settings *s = kit_settings(yaml);
    const struct route *r = route_named(s, "standard");
    struct answer a;
    struct problem p = {0};
    struct arena arena;
    struct buf body;

    arena_init(&arena);
    buf_init(&body, 16);
    buf_add_str(&body, STR("[1234567890123]"));
    answer_begin(&a, STR(ID));
    ck_assert(!answer_value(&a, &r->policy, r, &body, &arena, &p));
    ck_assert_int_eq(p.outcome, OUTCOME_RESPONSE_TOO_LARGE);
    buf_free(&body);
    arena_free(&arena);
    settings_put(s);
}
END_TEST

/* ---------------------------------------------------------------- problems */

static const struct {
    const char *route; /* NULL: none */
    struct problem p;
    const char *want;
} problems[] = {
    {"plain",
     {.outcome = OUTCOME_BAD_ARGUMENT,
      .detail = "path.id: \"abc\" is not a java.lang.Long",
      .source = "path.id"},
     "400\n" PROBLEM "\n{\"title\":\"Bad Request\",\"status\":400,\"code\":\"BAD_ARGUMENT\","
     "\"detail\":\"path.id: \\\"abc\\\" is not a java.lang.Long\"," WITH_ID
     ",\"retryable\":false,\"errors\":[{\"source\":\"path.id\",\"detail\":"
     "\"\\\"abc\\\" is not a java.lang.Long\"}]}"},
    {"plain",
     {.outcome = OUTCOME_BAD_ARGUMENT,
      .detail = "body/0/a: 1 is not a x.Y",
      .source = "body",
      .pointer = "/0/a"},
     "400\n" PROBLEM "\n{\"title\":\"Bad Request\",\"status\":400,\"code\":\"BAD_ARGUMENT\","
     "\"detail\":\"body/0/a: 1 is not a x.Y\"," WITH_ID
     ",\"retryable\":false,\"errors\":[{\"source\":\"body\",\"pointer\":\"/0/a\",\"detail\":"
     "\"1 is not a x.Y\"}]}"},
    {"plain",
     {.outcome = OUTCOME_BAD_REQUEST, .detail = "broken JSON", .line = 3, .column = 9},
     "400\n" PROBLEM "\n{\"title\":\"Bad Request\",\"status\":400,\"code\":\"BAD_REQUEST\","
     "\"detail\":\"broken JSON\"," WITH_ID
     ",\"retryable\":false,\"errors\":[{\"line\":3,\"column\":9,\"detail\":\"broken JSON\"}]}"},
    {"plain",
     {.outcome = OUTCOME_NO_PROVIDER,
      .detail = "no provider for com.example.user.UserService:1.0.0"},
     "503\n" PROBLEM "Retry-After: 1\n\n{\"title\":\"Service Unavailable\",\"status\":503,"
     "\"code\":\"NO_PROVIDER\",\"detail\":\"no provider for com.example.user.UserService:1.0.0\"," WITH_ID
     ",\"retryable\":true}"},
    {NULL,
     {.outcome = OUTCOME_METHOD_NOT_ALLOWED, .detail = "this path takes GET", .allow = "GET, HEAD"},
     "405\n" PROBLEM "Allow: GET, HEAD\n\n{\"title\":\"Method Not Allowed\",\"status\":405,"
     "\"code\":\"METHOD_NOT_ALLOWED\",\"detail\":\"this path takes GET\"," WITH_ID
     ",\"retryable\":false}"},
    {NULL,
     {.outcome = OUTCOME_UNSUPPORTED_MEDIA_TYPE},
     "415\n" PROBLEM "Accept: application/json\nAccept-Encoding: identity\n\n"
     "{\"title\":\"Unsupported Media Type\",\"status\":415,\"code\":\"UNSUPPORTED_MEDIA_TYPE\","
     "\"detail\":\"the body must be JSON in UTF-8\"," WITH_ID ",\"retryable\":false}"},
    {NULL,
     {.outcome = OUTCOME_PROVIDER_TIMEOUT},
     "504\n" PROBLEM "\n{\"title\":\"Gateway Timeout\",\"status\":504,\"code\":"
     "\"PROVIDER_TIMEOUT\",\"detail\":\"no answer from the provider in time\"," WITH_ID
     ",\"retryable\":false}"},
    {"standard",
     {.outcome = OUTCOME_NO_PROVIDER, .detail = "no provider for a.B"},
     "503\n" HEAD "Retry-After: 1\n\n{\"code\":\"NO_PROVIDER\",\"message\":\"no provider for a.B\","
     "\"data\":null," WITH_ID "}"},
    /* exceptions: cases 40 to 43 */
    {"plain",
     {.outcome = OUTCOME_PROVIDER_EXCEPTION,
      .detail = "boom",
      .exception_class = "java.lang.IllegalStateException",
      .exception_message = "boom"},
     "500\n" PROBLEM "\n{\"title\":\"Internal Server Error\",\"status\":500,\"code\":"
     "\"PROVIDER_EXCEPTION\",\"detail\":\"boom\"," WITH_ID
     ",\"retryable\":false,\"exception\":{\"class\":\"java.lang.IllegalStateException\","
     "\"message\":\"boom\"}}"},
    {"plain",
     {.outcome = OUTCOME_PROVIDER_EXCEPTION,
      .exception_class = "java.lang.IllegalArgumentException"},
     "500\n" PROBLEM "\n{\"title\":\"Internal Server Error\",\"status\":500,\"code\":"
     "\"PROVIDER_EXCEPTION\",\"detail\":\"the method threw an exception\"," WITH_ID
     ",\"retryable\":false,\"exception\":{\"class\":\"java.lang.IllegalArgumentException\"}}"},
    {"message",
     {.outcome = OUTCOME_PROVIDER_EXCEPTION,
      .detail = "boom",
      .exception_class = "a.B",
      .exception_message = "boom"},
     "500\n" PROBLEM "\n{\"title\":\"Internal Server Error\",\"status\":500,\"code\":"
     "\"PROVIDER_EXCEPTION\",\"detail\":\"boom\"," WITH_ID
     ",\"retryable\":false,\"exception\":{\"message\":\"boom\"}}"},
    {"none",
     {.outcome = OUTCOME_PROVIDER_EXCEPTION,
      .detail = "boom",
      .exception_class = "a.B",
      .exception_message = "boom"},
     "500\n" PROBLEM "\n{\"title\":\"Internal Server Error\",\"status\":500,\"code\":"
     "\"PROVIDER_EXCEPTION\",\"detail\":\"the method threw an exception\"," WITH_ID
     ",\"retryable\":false}"},
    {"mapped",
     {.outcome = OUTCOME_PROVIDER_EXCEPTION,
      .detail = "no user",
      .exception_class = "com.example.NotFound",
      .exception_message = "no user"},
     "404\n" PROBLEM "\n{\"title\":\"Not Found\",\"status\":404,\"code\":\"USER_NOT_FOUND\","
     "\"detail\":\"no user\"," WITH_ID
     ",\"retryable\":false,\"exception\":{\"class\":\"com.example.NotFound\",\"message\":"
     "\"no user\"}}"},
    {"mapped",
     {.outcome = OUTCOME_PROVIDER_EXCEPTION, .detail = "x", .exception_class = "com.example.Other"},
     "422\n" PROBLEM "\n{\"title\":\"Unprocessable Content\",\"status\":422,\"code\":"
     "\"PROVIDER_EXCEPTION\",\"detail\":\"x\"," WITH_ID
     ",\"retryable\":false,\"exception\":{\"class\":\"com.example.Other\"}}"},
    {"mapped",
     {.outcome = OUTCOME_VALIDATION_FAILED, .exception_class = "javax.validation.X"},
     "409\n" PROBLEM "\n{\"title\":\"Conflict\",\"status\":409,\"code\":\"CONFLICT\",\"detail\":"
     "\"the provider's validation refused the data\"," WITH_ID
     ",\"retryable\":false,\"exception\":{\"class\":\"javax.validation.X\"}}"},
    {"mapped",
     {.outcome = OUTCOME_VALIDATION_FAILED, .exception_class = "javax.validation.Y"},
     "400\n" PROBLEM "\n{\"title\":\"Bad Request\",\"status\":400,\"code\":\"VALIDATION_FAILED\","
     "\"detail\":\"the provider's validation refused the data\"," WITH_ID
     ",\"retryable\":false,\"exception\":{\"class\":\"javax.validation.Y\"}}"},
};

START_TEST(problem_bodies)
{
    struct settings *s = kit_settings(yaml);
    const struct route *r = problems[_i].route != NULL ? route_named(s, problems[_i].route) : NULL;
    struct problem p = problems[_i].p;
    struct answer a;
    struct arena arena;
    struct buf body;
    struct buf got;

    arena_init(&arena);
    buf_init(&body, 4096);
    buf_init(&got, 8192);
    buf_add_str(&body, STR("what was there before"));
    answer_begin(&a, STR(ID));
    answer_map_exception(r, &p);
    answer_problem(&a, r != NULL ? &r->policy : NULL, &p, STR(ID), &arena, &body);
    ck_assert_uint_eq(problem_status(&p), a.status);
    print(&a, &body, &got);
    ck_assert_str_eq((const char *)got.data, problems[_i].want);
    buf_free(&got);
    buf_free(&body);
    arena_free(&arena);
    settings_put(s);
}
END_TEST

/* What of a provider's text a client may read (cases 43, P12). */
static const struct {
    const char *text;
    const char *want;
} texts[] = {
    {"plain", "plain"},
    {"first\n\tat a.B.c(D.java:1)", "first"},
    {"first\r\nsecond", "first"},
    {"a\tb\x1b[31mc\x7f", "a b [31mc "},
    {"Tried 3 times of the providers [10.0.0.5:20880] from the registry 127.0.0.1:2181 on the "
     "consumer 192.168.1.9 using the dubbo version 2.6.6",
     "Tried 3 times of the providers [[address]] from the registry [address] on the "
     "consumer [address] using the dubbo version 2.6.6"},
    {"client: /10.1.2.3:4567 -> /10.1.2.4:20880.", "client: /[address] -> /[address]."},
    {"dubbo://10.1.2.3:20880/a.B?x=1.2.3.4", "dubbo://[address]/a.B?x=[address]"},
    {"1.2.3.4.5 and 1.2.3 and 256.1.1.1 and v1.2.3.4 and 1.2.3.4x and 1..2.3",
     "1.2.3.4.5 and 1.2.3 and 256.1.1.1 and v1.2.3.4 and 1.2.3.4x and 1..2.3"},
    {"1.2.3.4", "[address]"},
    {"1.2.3.4:", "[address]:"},
    {"1.2.3.4:99999", "[address]:99999"},
    {"connect to [fe80::1]:20880 failed", "connect to [address] failed"},
    {"at 2001:db8::7 port, ::1. fe80::1%eth0 [::ffff:10.0.0.1]",
     "at [address] port, [address]. [address] [address]"},
    {"a :: b, std::bad, 12:30:45, aa:bb:cc:dd:ee:ff, [1,2]",
     "a :: b, std::bad, 12:30:45, aa:bb:cc:dd:ee:ff, [1,2]"},
    {"host db1.internal:3306 refused, localhost:20880, zookeeper://zk1:2181/x, db-master:3306",
     "host [address] refused, [address], zookeeper://[address]/x, [address]"},
    {"jdbc:mysql://u@db.corp:3306/x", "jdbc:mysql://u@[address]/x"},
    {"Foo.java:42 line:42 code:5001 a.b:1x a.b:70000",
     "Foo.java:42 line:42 code:5001 a.b:1x a.b:70000"},
    {"Zo\xc3\xab 中文", "Zo\xc3\xab 中文"},
};

START_TEST(provider_texts)
{
    struct problem p = {.outcome = OUTCOME_PROVIDER_ERROR};
    struct answer a;
    struct arena arena;
    struct buf body;
    char want[1024];

    arena_init(&arena);
    buf_init(&body, 4096);
    snprintf(p.detail, sizeof(p.detail), "%s", texts[_i].text);
    snprintf(want, sizeof(want), "\"detail\":\"%s\",", texts[_i].want);
    answer_begin(&a, STR(ID));
    answer_problem(&a, NULL, &p, STR(ID), &arena, &body);
    ck_assert_msg(str_contains(buf_str(&body), str_from(want)), STR_FMT, STR_ARG(buf_str(&body)));
    buf_free(&body);
    arena_free(&arena);
}
END_TEST

START_TEST(long_texts)
{
    struct problem p = {.outcome = OUTCOME_PROVIDER_EXCEPTION};
    struct answer a;
    struct arena arena;
    struct buf body;

    arena_init(&arena);
    buf_init(&body, 4096);
    for (size_t i = 0; i + 8 < sizeof(p.exception_message); i += 8)
        memcpy(p.exception_message + i, "1.1.1.1 ", 8);
    memset(p.detail, 'd', sizeof(p.detail) - 1);
    memcpy(p.detail + 509, "\xe4\xb8", 2); /* cut inside a character on the way here */
    answer_begin(&a, STR(ID));
    answer_problem(&a, NULL, &p, STR(ID), &arena, &body);
    ck_assert(!str_contains(buf_str(&body), STR("1.1.1.1")));
    ck_assert(!str_contains(buf_str(&body), STR("\xe4\xb8")));
    ck_assert_uint_lt(body.len, 2 * 520 + 300);
    buf_free(&body);
    arena_free(&arena);
}
END_TEST

/* ---------------------------------------------------------------- headers */

START_TEST(returned_attachments)
{
    static char big[8194];
    struct settings *s = kit_settings(yaml);
    const struct route *r = route_named(s, "mapped");
    struct answer a;
    struct arena arena;
    struct buf none;
    struct buf got;

    arena_init(&arena);
    buf_init(&none, 10);
    buf_init(&got, 8192);
    memset(big, 'a', sizeof(big));
    answer_begin(&a, STR(ID));
    answer_attachment(&a, r, STR("Trace-Tag"), STR("old"), &arena);
    answer_attachment(&a, r, STR("Trace-Tag"), STR("new"), &arena); /* of a second try */
    answer_attachment(&a, r, STR("Set-Cookie"), STR("x"), &arena);
    answer_attachment(&a, r, STR("other"), STR("a\r\nSet-Cookie: x"), &arena);
    answer_attachment(&a, r, STR("other"), STR("\xff"), &arena);
    answer_attachment(&a, r, STR("other"), (struct str){big, 8193}, &arena);
    answer_attachment(&a, NULL, STR("other"), STR("x"), &arena);
    print(&a, &none, &got);
    ck_assert_str_eq((const char *)got.data, "200\n" HEAD "X-Dubbo-trace-tag: new\n\n");
    for (int i = 0; i < 5; i++) /* 32 KiB in all */
        answer_attachment(&a, r, STR("other"), (struct str){big, 8000}, &arena);
    ck_assert_uint_le(a.attachment_bytes, ANSWER_ATTACHMENTS_MAX);
    buf_free(&got);
    buf_free(&none);
    arena_free(&arena);
    settings_put(s);
}
END_TEST

START_TEST(header_bounds)
{
    struct answer a;
    struct arena arena;

    arena_init(&arena);
    answer_begin(&a, STR(ID));
    for (int i = 0; i < 2 * ANSWER_HEADERS_MAX; i++)
        answer_header(&a, arena_printf(&arena, "X-%d", i), STR("v"));
    ck_assert_uint_eq(a.n_headers, ANSWER_HEADERS_MAX);
    answer_header(&a, STR("x-request-id"), STR("other"));
    ck_assert(str_is(a.headers[1].value, "other"));
    answer_empty(&a, 202);
    ck_assert_uint_eq(a.n_headers, ANSWER_HEADERS_MAX - 1);
    ck_assert(str_is(a.headers[0].name, "X-Request-Id"));
    arena_free(&arena);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_answer");
    TCase *t = tcase_create("answers");

    tcase_add_loop_test(t, values, 0, (int)ARRAY_LEN(results));
    tcase_add_test(t, envelope_over_the_limit);
    tcase_add_loop_test(t, problem_bodies, 0, (int)ARRAY_LEN(problems));
    tcase_add_loop_test(t, provider_texts, 0, (int)ARRAY_LEN(texts));
    tcase_add_test(t, long_texts);
    tcase_add_test(t, returned_attachments);
    tcase_add_test(t, header_bounds);
    suite_add_tcase(s, t);
    return kit_run(s);
}
