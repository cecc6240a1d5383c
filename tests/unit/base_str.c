#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/str.h"

static struct str s(const char *text)
{
    return str_from(text);
}

START_TEST(comparing)
{
    ck_assert(str_eq(STR_NONE, STR("")));
    ck_assert(str_eq(s(NULL), STR_NONE));
    ck_assert(!str_eq(STR("a"), STR("ab")));
    ck_assert(str_eq((struct str){"a\0b", 3}, (struct str){"a\0b", 3}));
    ck_assert(!str_eq((struct str){"a\0b", 3}, (struct str){"a\0c", 3}));
    ck_assert(str_eq_nocase(STR("Content-Type"), STR("cONTENT-tYPE")));
    ck_assert(!str_eq_nocase(STR("ab"), STR("ac")));
    ck_assert_int_lt(str_cmp(STR("a"), STR("b")), 0);
    ck_assert_int_lt(str_cmp(STR("a"), STR("aa")), 0);
    ck_assert_int_gt(str_cmp(STR("\x80"), STR("\x7f")), 0); /* bytes, not signed chars */
    ck_assert_int_eq(str_cmp(STR_NONE, STR("")), 0);
    ck_assert_int_lt(str_cmp(STR_NONE, STR("a")), 0);
}
END_TEST

START_TEST(parts)
{
    struct str rest = STR("x");

    ck_assert(str_is(str_sub(STR("abcdef"), 2, 4), "cd"));
    ck_assert(str_is(str_sub(STR("abc"), 1, 99), "bc"));
    ck_assert_uint_eq(str_sub(STR("abc"), 3, 9).n, 0);
    ck_assert_uint_eq(str_sub(STR("abc"), 2, 1).n, 0);
    ck_assert(str_starts(STR("abc"), STR("")) && str_starts(STR("abc"), STR("abc")));
    ck_assert(!str_starts(STR("ab"), STR("abc")));
    ck_assert(str_ends(STR("abc"), STR("bc")) && str_ends(STR_NONE, STR("")));
    ck_assert(!str_ends(STR("c"), STR("bc")));
    ck_assert(str_contains(STR("abc"), STR("b")) && !str_contains(STR("abc"), STR("ac")));
    ck_assert_uint_eq(str_find(STR("abc"), 'c'), 2);
    ck_assert_uint_eq(str_find(STR("abc"), 'x'), 3);
    ck_assert_uint_eq(str_find(STR_NONE, 'x'), 0);
    ck_assert(str_is(str_trim(STR(" \t a b\r\n")), "a b"));
    ck_assert_uint_eq(str_trim(STR("  ")).n, 0);

    ck_assert(str_is(str_cut(STR("k=v=w"), '=', &rest), "k"));
    ck_assert(str_is(rest, "v=w"));
    ck_assert(str_is(str_cut(STR("k="), '=', &rest), "k"));
    ck_assert(rest.p != NULL && rest.n == 0); /* a separator with nothing behind it */
    ck_assert(str_is(str_cut(STR("k"), '=', &rest), "k"));
    ck_assert_ptr_null(rest.p);
}
END_TEST

START_TEST(unsigned_numbers)
{
    uint64_t v = 0;
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1.0",
                                      "1e3",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "000000000000000000001"};

    ck_assert(str_to_u64(STR("18446744073709551615"), UINT64_MAX, &v));
    ck_assert_uint_eq(v, UINT64_MAX);
    ck_assert(str_to_u64(STR("007"), 7, &v) && v == 7);
    ck_assert(!str_to_u64(STR("8"), 7, &v));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!str_to_u64(s(bad[i]), UINT64_MAX, &v), "taken: \"%s\"", bad[i]);
}
END_TEST

START_TEST(signed_numbers)
{
    int64_t v = 0;

    ck_assert(str_to_i64(STR("-9223372036854775808"), INT64_MIN, INT64_MAX, &v));
    ck_assert_int_eq(v, INT64_MIN);
    ck_assert(str_to_i64(STR("9223372036854775807"), INT64_MIN, INT64_MAX, &v));
    ck_assert_int_eq(v, INT64_MAX);
    ck_assert(!str_to_i64(STR("9223372036854775808"), INT64_MIN, INT64_MAX, &v));
    ck_assert(!str_to_i64(STR("-9223372036854775809"), INT64_MIN, INT64_MAX, &v));
    ck_assert(!str_to_i64(STR("-"), INT64_MIN, INT64_MAX, &v));
    ck_assert(!str_to_i64(STR("--1"), INT64_MIN, INT64_MAX, &v));
    ck_assert(!str_to_i64(STR_NONE, INT64_MIN, INT64_MAX, &v));
    ck_assert(!str_to_i64(STR("-6"), -5, 5, &v));
    ck_assert(str_to_i64(STR("-5"), -5, 5, &v) && v == -5);
}
END_TEST

START_TEST(globs)
{
    ck_assert(str_glob(STR("*"), STR_NONE));
    ck_assert(str_glob(STR(""), STR("")));
    ck_assert(!str_glob(STR(""), STR("a")));
    ck_assert(str_glob(STR("com.*.User*"), STR("com.example.x.UserService")));
    ck_assert(str_glob(STR("a*b*c"), STR("aXbYbZc")));
    ck_assert(!str_glob(STR("a*b*c"), STR("aXbYbZ")));
    ck_assert(!str_glob(STR("abc"), STR("abcd")));
    ck_assert(str_glob(STR("**a**"), STR("a")));
    ck_assert(!str_glob(STR("A"), STR("a")));
}
END_TEST

START_TEST(distances)
{
    char long_text[65];

    ck_assert_uint_eq(str_distance(STR("getUser"), STR("getUsr")), 1);
    ck_assert_uint_eq(str_distance(STR("getUser"), STR("GETUSER")), 0);
    ck_assert_uint_eq(str_distance(STR("ab"), STR("ba")), 1); /* exchanged */
    ck_assert_uint_eq(str_distance(STR("kitten"), STR("sitting")), 3);
    ck_assert_uint_eq(str_distance(STR_NONE, STR("abc")), 3);
    ck_assert_uint_eq(str_distance(STR("abc"), STR_NONE), 3);

    memset(long_text, 'a', sizeof(long_text));
    ck_assert_uint_eq(str_distance((struct str){long_text, 64}, STR("a")), 63);
    ck_assert_uint_eq(str_distance((struct str){long_text, 65}, STR("a")), SIZE_MAX);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_str");
    TCase *t = tcase_create("base_str");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, comparing);
    tcase_add_test(t, parts);
    tcase_add_test(t, unsigned_numbers);
    tcase_add_test(t, signed_numbers);
    tcase_add_test(t, globs);
    tcase_add_test(t, distances);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
