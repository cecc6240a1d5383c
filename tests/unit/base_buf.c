#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/buf.h"

START_TEST(the_limit_holds_also_below_the_first_allocation)
{
    for (size_t limit = 0; limit < 1000; limit += 37) {
        struct buf b;

        buf_init(&b, limit);
        for (size_t i = 0; i < limit; i++)
            buf_add_u8(&b, 'x');
        ck_assert(!b.failed);
        ck_assert_uint_eq(b.len, limit);
        buf_add_u8(&b, 'y');
        ck_assert(b.failed);
        ck_assert_uint_eq(b.len, limit);
        buf_free(&b);
    }
}
END_TEST

START_TEST(failure_is_sticky_and_leaves_the_content)
{
    struct buf b;

    buf_init(&b, 4);
    buf_add_str(&b, STR("ab"));
    buf_add_str(&b, STR("cde"));
    ck_assert(b.failed);
    buf_add_u8(&b, 'c'); /* would fit */
    ck_assert(str_is(buf_str(&b), "ab"));
    buf_truncate(&b, 1);
    ck_assert(!b.failed);
    buf_add_str(&b, STR("xyz"));
    ck_assert(str_is(buf_str(&b), "axyz"));
    buf_free(&b);
}
END_TEST

START_TEST(nothing_is_never_a_failure)
{
    struct buf b;

    buf_init(&b, 0);
    ck_assert_ptr_nonnull(buf_reserve(&b, 0));
    buf_add_str(&b, STR_NONE);
    ck_assert(!b.failed);
    ck_assert_ptr_null(buf_reserve(&b, SIZE_MAX));
    ck_assert(b.failed);
    buf_free(&b);
}
END_TEST

START_TEST(printf_of_any_length)
{
    struct buf b;
    char text[600];

    memset(text, 'a', sizeof(text));
    buf_init(&b, 10000);
    for (int n = 250; n < 262; n++) { /* around the size of the small buffer inside */
        buf_truncate(&b, 0);
        buf_printf(&b, "<%.*s>", n, text);
        ck_assert_uint_eq(b.len, (size_t)n + 2);
        ck_assert_int_eq(b.data[0], '<');
        ck_assert_int_eq(b.data[n], 'a');
        ck_assert_int_eq(b.data[n + 1], '>');
    }
    buf_printf(&b, "%d", 7);
    ck_assert_int_eq(b.data[b.len - 1], '7');
    buf_free(&b);
}
END_TEST

START_TEST(big_endian_numbers)
{
    static const uint8_t expected[] = {0xfe, 0x12, 0x34, 0xde, 0xad, 0xbe, 0xef, 1,
                                       2,    3,    4,    5,    6,    7,    8};
    struct buf b;

    buf_init(&b, 100);
    buf_add_u8(&b, 0xfe);
    buf_add_be16(&b, 0x1234);
    buf_add_be32(&b, 0);
    buf_patch_be32(&b, 3, 0xdeadbeef);
    buf_add_be64(&b, UINT64_C(0x0102030405060708));
    ck_assert_uint_eq(b.len, sizeof(expected));
    ck_assert_mem_eq(b.data, expected, sizeof(expected));
    ck_assert_uint_eq(get_be16(b.data + 1), 0x1234);
    ck_assert_uint_eq(get_be32(b.data + 3), 0xdeadbeef);
    ck_assert_uint_eq(get_be64(b.data + 7), UINT64_C(0x0102030405060708));
    buf_free(&b);
}
END_TEST

START_TEST(consume_and_shrink)
{
    struct buf b;

    buf_init(&b, 100000);
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "%04d", i);
    buf_consume(&b, 4 * 4998);
    ck_assert(str_is(buf_str(&b), "49984999"));
    buf_shrink(&b, 100); /* not empty: stays */
    ck_assert(str_is(buf_str(&b), "49984999"));
    buf_consume(&b, 8);
    buf_consume(&b, 0);
    ck_assert_uint_gt(b.cap, 100);
    buf_shrink(&b, 100);
    ck_assert_uint_eq(b.cap, 0);
    ck_assert_uint_eq(b.limit, 100000);
    buf_add_u8(&b, 'x');
    ck_assert(str_is(buf_str(&b), "x"));
    buf_free(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_buf");
    TCase *t = tcase_create("buf");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, the_limit_holds_also_below_the_first_allocation);
    tcase_add_test(t, failure_is_sticky_and_leaves_the_content);
    tcase_add_test(t, nothing_is_never_a_failure);
    tcase_add_test(t, printf_of_any_length);
    tcase_add_test(t, big_endian_numbers);
    tcase_add_test(t, consume_and_shrink);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
