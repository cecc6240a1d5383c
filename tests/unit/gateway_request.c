#include <stdlib.h>

#include "tests/unit/gateway_kit.h"

static const struct {
    const char *raw;
    bool query;
    const char *want; /* NULL: refused */
} decodings[] = {
    {"", false, ""},
    {"abc", false, "abc"},
    {"a+b", false, "a+b"},
    {"a+b", true, "a b"},
    {"a%2Bb", true, "a+b"},
    {"%e4%B8%ad", false, "中"},
    {"%25%32%35", false, "%25"}, /* once */
    {"%", false, NULL},
    {"%4", false, NULL},
    {"a%", true, NULL},
    {"%g0", false, NULL},
    {"%0g", false, NULL},
    {"%00", false, NULL},
    {"%+1", true, NULL},
    {"%ff", false, NULL},
    {"%c0%80", false, NULL},
    {"%ed%a0%80", false, NULL},
    {"\xff", false, NULL},
    {"\xff+", true, NULL},
    {"%0a%1b", true, "\n\x1b"},
};

START_TEST(decode)
{
    struct arena a;
    struct str out = STR_NONE;
    bool ok = false;

    arena_init(&a);
    ok = request_decode(str_from(decodings[_i].raw), decodings[_i].query, &a, &out);
    ck_assert_int_eq(ok, decodings[_i].want != NULL);
    if (ok)
        ck_assert_msg(str_is(out, decodings[_i].want), "got " STR_FMT, STR_ARG(out));
    arena_free(&a);
}
END_TEST

static const struct {
    const char *query;
    const char *name;
    size_t nth;
    const char *want; /* NULL: none; "!": bad escape */
} queries[] = {
    {"v=1", "v", 0, "1"},
    {"v=1", "v", 1, NULL},
    {"v=1&w=2&v=3", "v", 1, "3"},
    {"v=1&w=2&v=3", "w", 0, "2"},
    {"v", "v", 0, ""},
    {"v=", "v", 0, ""},
    {"v=a=b", "v", 0, "a=b"},
    {"&&v=1&", "v", 0, "1"},
    {"", "v", 0, NULL},
    {"V=1", "v", 0, NULL},
    {"vv=1", "v", 0, NULL},
    {"%76=1", "v", 0, "1"},
    {"a+b=1", "a b", 0, "1"},
    {"v=%E4%B8%AD%E6%96%87+a%2Bb%26c", "v", 0, "中文 a+b&c"},
    {"v=%zz", "v", 0, "!"},
    {"v=%ff", "v", 0, "!"},
    {"v=ok&v=%zz", "v", 0, "ok"},
    {"w=%zz&v=1", "v", 0, "1"}, /* others' faults are others' */
    {"%zz=1&v=1", "v", 0, "1"},
    {"%76%=1", "v", 0, NULL},
};

START_TEST(query)
{
    struct arena a;
    struct request r = {.query = str_from(queries[_i].query)};
    struct str out = STR_NONE;
    bool bad = false;
    bool ok = false;

    arena_init(&a);
    ok = request_query(&r, str_from(queries[_i].name), queries[_i].nth, &a, &out, &bad);
    if (queries[_i].want == NULL || strcmp(queries[_i].want, "!") == 0) {
        ck_assert(!ok);
        ck_assert_int_eq(bad, queries[_i].want != NULL);
    } else {
        ck_assert(ok && !bad);
        ck_assert_ptr_nonnull(out.p);
        ck_assert_msg(str_is(out, queries[_i].want), "got " STR_FMT, STR_ARG(out));
    }
    arena_free(&a);
}
END_TEST

START_TEST(headers)
{
    struct ask q;
    size_t from = 0;

    kit_ask(&q, "GET", "/", "X-A: 1\nx-a: 2\nX-Empty:", "");
    ck_assert(str_is(request_header(&q.r, STR("X-a")), "1"));
    ck_assert_uint_eq(request_header_count(&q.r, STR("X-A")), 2);
    ck_assert(str_is(request_header_next(&q.r, STR("X-A"), &from), "1"));
    ck_assert(str_is(request_header_next(&q.r, STR("X-A"), &from), "2"));
    ck_assert_ptr_null(request_header_next(&q.r, STR("X-A"), &from).p);
    ck_assert_ptr_nonnull(request_header(&q.r, STR("X-Empty")).p);
    ck_assert_uint_eq(request_header(&q.r, STR("X-Empty")).n, 0);
    ck_assert_ptr_null(request_header(&q.r, STR("X-None")).p);
    kit_done(&q);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_request");
    TCase *t = tcase_create("request");

    tcase_add_loop_test(t, decode, 0, (int)ARRAY_LEN(decodings));
    tcase_add_loop_test(t, query, 0, (int)ARRAY_LEN(queries));
    tcase_add_test(t, headers);
    suite_add_tcase(s, t);
    return kit_run(s);
}
