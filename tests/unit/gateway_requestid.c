#include <stdlib.h>

#include "gateway/trace.h"

#include "tests/unit/gateway_kit.h"

START_TEST(ids_are_ordered_by_time)
{
    uint64_t random = 1;
    char a[REQUEST_ID_LEN + 1];
    char b[REQUEST_ID_LEN + 1];

    /* the time part of the ULID specification's own example */
    request_id_make(UINT64_C(1469918176385), &random, a);
    ck_assert_uint_eq(strlen(a), REQUEST_ID_LEN);
    ck_assert_int_eq(strncmp(a, "01ARYZ6S41", 10), 0);
    ck_assert(request_id_is_good(str_from(a)));
    for (uint64_t ms = 1; ms < UINT64_C(1) << 47; ms = ms * 2 + 1) {
        request_id_make(ms, &random, a);
        request_id_make(ms + 1, &random, b);
        ck_assert_int_lt(strcmp(a, b), 0);
    }
}
END_TEST

START_TEST(ids_differ_within_a_millisecond)
{
    enum { N = 200 };
    static char ids[N][REQUEST_ID_LEN + 1];
    uint64_t random = 42;

    for (size_t i = 0; i < N; i++) {
        request_id_make(7, &random, ids[i]);
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(ids[i], ids[j]);
    }
}
END_TEST

START_TEST(which_ids_are_taken_over)
{
    char text[130];

    memset(text, 'a', sizeof(text));
    ck_assert(request_id_is_good((struct str){text, 128}));
    ck_assert(!request_id_is_good((struct str){text, 129}));
    ck_assert(!request_id_is_good(STR_NONE));
    ck_assert(request_id_is_good(STR("AZaz09._-")));
    ck_assert(!request_id_is_good(STR("a b")));
    ck_assert(!request_id_is_good(STR("a\r\nSet-Cookie: x")));
    ck_assert(!request_id_is_good(STR("\"")));
    ck_assert(!request_id_is_good(STR("\xc3\xa9")));
}
END_TEST

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

static const struct {
    const char *text;
    bool good;
} parents[] = {
    {"00-" TRACE "-" SPAN "-01", true},
    {"00-" TRACE "-" SPAN "-00", true},
    {"01-" TRACE "-" SPAN "-01", true},
    {"01-" TRACE "-" SPAN "-01-more", true},
    {"00-" TRACE "-" SPAN "-01-more", false},
    {"01-" TRACE "-" SPAN "-01more", false},
    {"ff-" TRACE "-" SPAN "-01", false},
    {"0g-" TRACE "-" SPAN "-01", false},
    {"00-" TRACE "-" SPAN "-0", false},
    {"00-" TRACE "-0000000000000000-01", false},
    {"00-00000000000000000000000000000000-" SPAN "-01", false},
    {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", false},
    {"00_" TRACE "-" SPAN "-01", false},
    {"00-" TRACE "_" SPAN "-01", false},
    {"00-" TRACE "-" SPAN "_01", false},
    {"00-" TRACE "-" SPAN "-0x", false},
    {"", false},
    {"00", false},
};

START_TEST(traceparents)
{
    ck_assert_int_eq(traceparent_is_good(str_from(parents[_i].text)), parents[_i].good);
}
END_TEST

START_TEST(new_spans)
{
    uint64_t random = 9;
    char a[TRACEPARENT_LEN + 1];
    char b[TRACEPARENT_LEN + 1];

    traceparent_make(STR_NONE, &random, a);
    traceparent_make(STR_NONE, &random, b);
    ck_assert(traceparent_is_good(str_from(a)) && traceparent_is_good(str_from(b)));
    ck_assert_int_ne(strncmp(a + 3, b + 3, 32), 0);
    /* the trace and its flags stay, the span is ours */
    traceparent_make(STR("00-" TRACE "-" SPAN "-00"), &random, a);
    ck_assert(traceparent_is_good(str_from(a)));
    ck_assert_int_eq(strncmp(a, "00-" TRACE "-", 36), 0);
    ck_assert_int_ne(strncmp(a + 36, SPAN, 16), 0);
    ck_assert_str_eq(a + 52, "-00");
    traceparent_make(STR("01-" TRACE "-" SPAN "-01-more"), &random, a);
    ck_assert(traceparent_is_good(str_from(a)));
    ck_assert_int_eq(strncmp(a, "00-" TRACE "-", 36), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_requestid");
    TCase *t = tcase_create("identity");

    tcase_add_test(t, ids_are_ordered_by_time);
    tcase_add_test(t, ids_differ_within_a_millisecond);
    tcase_add_test(t, which_ids_are_taken_over);
    tcase_add_loop_test(t, traceparents, 0, (int)ARRAY_LEN(parents));
    tcase_add_test(t, new_spans);
    suite_add_tcase(s, t);
    return kit_run(s);
}
