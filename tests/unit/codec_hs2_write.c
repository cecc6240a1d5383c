/*
 * Writing Hessian2: each form at its borders (docs/HESSIAN2.md sections 2 to 5, 8).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "codec/hs2_write.h"

static struct buf out;

static void up(void)
{
    buf_init(&out, 1 << 22);
}

static void down(void)
{
    buf_free(&out);
}

static const char *hex(void)
{
    static char text[256];
    size_t n = 0;

    for (size_t i = 0; i < out.len && n + 3 < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", out.data[i]);
    buf_truncate(&out, 0);
    return text;
}

START_TEST(ints)
{
    static const struct {
        int32_t v;
        const char *want;
    } rows[] = {{0, "90"},
                {-16, "80"},
                {47, "bf"},
                {-17, "c7ef"},
                {48, "c830"},
                {-2048, "c000"},
                {2047, "cfff"},
                {-2049, "d3f7ff"},
                {2048, "d40800"},
                {-262144, "d00000"},
                {262143, "d7ffff"},
                {-262145, "49fffbffff"},
                {262144, "4900040000"},
                {INT32_MIN, "4980000000"},
                {INT32_MAX, "497fffffff"}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hs2_put_int(&out, rows[i].v);
        ck_assert_str_eq(hex(), rows[i].want);
    }
}
END_TEST

START_TEST(longs)
{
    static const struct {
        int64_t v;
        const char *want;
    } rows[] = {{0, "e0"},
                {-8, "d8"},
                {15, "ef"},
                {-9, "f7f7"},
                {16, "f810"},
                {-2048, "f000"},
                {2047, "ffff"},
                {-2049, "3bf7ff"},
                {2048, "3c0800"},
                {-262144, "380000"},
                {262143, "3fffff"},
                {-262145, "59fffbffff"},
                {262144, "5900040000"},
                {INT32_MIN, "5980000000"},
                {INT32_MAX, "597fffffff"},
                {INT64_C(2147483648), "4c0000000080000000"},
                {INT64_C(-2147483649), "4cffffffff7fffffff"},
                {INT64_MIN, "4c8000000000000000"},
                {INT64_MAX, "4c7fffffffffffffff"}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hs2_put_long(&out, rows[i].v);
        ck_assert_str_eq(hex(), rows[i].want);
    }
}
END_TEST

START_TEST(doubles)
{
    static const struct {
        double v;
        const char *want;
    } rows[] = {{0, "5b"},
                {-0.0, "5b"},
                {1, "5c"},
                {2, "5d02"},
                {-128, "5d80"},
                {127, "5d7f"},
                {128, "5e0080"},
                {-32768, "5e8000"},
                {32767, "5e7fff"},
                {32768, "5f01f40000"},
                {100000, "5f05f5e100"},
                {0.001, "5f00000001"},
                {12.25, "5f00002fda"},
                {2147483.647, "5f7fffffff"},
                {2147483.648, "444140624dd2f1a9fc"},
                {-2147483.648, "5f80000000"},
                {1e300, "447e37e43c8800759c"},
                {5e-324, "440000000000000001"},
                {3.141592653589793, "44400921fb54442d18"}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hs2_put_double(&out, rows[i].v);
        ck_assert_str_eq(hex(), rows[i].want);
    }
    hs2_put_double(&out, (double)NAN);
    ck_assert_str_eq(hex(), "447ff8000000000000");
    hs2_put_double(&out, -(double)NAN);
    ck_assert_str_eq(hex(), "447ff8000000000000");
    hs2_put_double(&out, (double)INFINITY);
    ck_assert_str_eq(hex(), "447ff0000000000000");
    hs2_put_double(&out, -(double)INFINITY);
    ck_assert_str_eq(hex(), "44fff0000000000000");
}
END_TEST

START_TEST(dates)
{
    hs2_put_date(&out, 0);
    ck_assert_str_eq(hex(), "4b00000000");
    hs2_put_date(&out, -60000);
    ck_assert_str_eq(hex(), "4bffffffff");
    hs2_put_date(&out, 1);
    ck_assert_str_eq(hex(), "4a0000000000000001");
    hs2_put_date(&out, INT64_C(60000) * INT32_MAX);
    ck_assert_str_eq(hex(), "4b7fffffff");
    hs2_put_date(&out, INT64_C(60000) * (INT64_C(1) + INT32_MAX));
    ck_assert_str_eq(hex(), "4a0000753000000000");
    hs2_put_date(&out, INT64_MIN);
    ck_assert_str_eq(hex(), "4a8000000000000000");
}
END_TEST

/* The header of a text or binary of n bytes, and the length of all. */
static void check_chunks(const char *want, size_t len)
{
    char head[32];
    size_t n = strlen(want) / 2;

    ck_assert_uint_eq(out.len, len);
    for (size_t i = 0; i < n; i++)
        snprintf(head + 2 * i, 3, "%02x", out.data[i]);
    ck_assert_str_eq(head, want);
    buf_truncate(&out, 0);
}

START_TEST(lengths_of_texts)
{
    static char text[200000];

    memset(text, 'x', sizeof(text));
    static const struct {
        size_t n;
        const char *head;
        size_t extra; /* bytes that are not text */
    } rows[] = {{0, "00", 1},         {1, "01", 1},         {31, "1f", 1},
                {32, "3020", 2},      {1023, "33ff", 2},    {1024, "530400", 3},
                {32767, "537fff", 3}, {32768, "538000", 3}, {32769, "528000", 4},
                {65536, "528000", 6}, {65537, "528000", 7}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hs2_put_string(&out, (struct str){text, rows[i].n});
        check_chunks(rows[i].head, rows[i].n + rows[i].extra);
    }
}
END_TEST

START_TEST(units_not_bytes)
{
    static const char face[] = {'\xf0', '\x9f', '\x98', '\x80'};
    static const char middle[] = {'\xe4', '\xb8', '\xad'};
    static char text[70000];

    hs2_put_string(&out, STR("\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"));
    ck_assert_str_eq(hex(), "04c3a9e4b8adeda0bdedb880");
    /* 'x' and 16384 faces: unit 32768 would be half a pair, so the chunk ends before it */
    text[0] = 'x';
    for (size_t i = 1; i + 4 <= 1 + 4 * 16384; i += 4)
        memcpy(text + i, face, sizeof(face));
    hs2_put_string(&out, (struct str){text, 1 + 4 * 16384});
    ck_assert_uint_eq(out.data[3 + 1 + 16383 * 6], 0x02);
    check_chunks("527fff", 3 + 1 + 16383 * 6 + 1 + 6);
    /* 40000 three-byte characters */
    for (size_t i = 0; i + 3 <= 69000; i += 3)
        memcpy(text + i, middle, sizeof(middle));
    hs2_put_string(&out, (struct str){text, 69000});
    check_chunks("5359d8", 3 + 69000);
}
END_TEST

START_TEST(lengths_of_bytes)
{
    static uint8_t bytes[140000];
    static const struct {
        size_t n;
        const char *head;
        size_t extra;
    } rows[] = {{0, "20", 1},         {15, "2f", 1},         {16, "3410", 2},
                {1023, "37ff", 2},    {1024, "420400", 3},   {65535, "42ffff", 3},
                {65536, "41ffff", 4}, {131070, "41ffff", 6}, {131071, "41ffff", 7}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hs2_put_binary(&out, bytes, rows[i].n);
        check_chunks(rows[i].head, rows[i].n + rows[i].extra);
    }
    hs2_put_binary(&out, NULL, 0);
    ck_assert_str_eq(hex(), "20");
}
END_TEST

START_TEST(lists_and_objects)
{
    static const char *const fields[] = {"a", "bc"};
    size_t place = 0;

    hs2_put_null(&out);
    hs2_put_bool(&out, true);
    hs2_put_bool(&out, false);
    ck_assert_str_eq(hex(), "4e5446");
    hs2_put_list(&out, 0);
    hs2_put_list(&out, 7);
    hs2_put_list(&out, 8);
    hs2_put_list(&out, 48);
    ck_assert_str_eq(hex(), "787f589858c830");
    place = hs2_put_open_list(&out);
    hs2_put_null(&out);
    hs2_patch_list(&out, place, 1);
    ck_assert_str_eq(hex(), "5849000000014e");
    hs2_put_typed_list(&out, STR("[int"), 2);
    hs2_put_typed_list(&out, STR("[int"), 8);
    ck_assert_str_eq(hex(), "72045b696e7456045b696e7498");
    hs2_put_object(&out, STR("C"), fields, 2, 0);
    hs2_put_object_again(&out, 15);
    hs2_put_object_again(&out, 16);
    ck_assert_str_eq(hex(), "4301439201610262"
                            "63606f4fa0");
}
END_TEST

/* A full buffer says so and keeps what it had; nothing is written past it. */
START_TEST(full_buffers)
{
    struct buf small;

    for (size_t limit = 0; limit < 12; limit++) {
        buf_init(&small, limit);
        hs2_put_string(&small, STR("0123456789a"));
        ck_assert(small.failed && small.len <= limit);
        buf_truncate(&small, 0);
        hs2_patch_list(&small, hs2_put_open_list(&small), 3);
        ck_assert_int_eq(small.failed, limit < 6);
        buf_free(&small);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_hs2_write");
    TCase *t = tcase_create("forms");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_checked_fixture(t, up, down);
    tcase_add_test(t, ints);
    tcase_add_test(t, longs);
    tcase_add_test(t, doubles);
    tcase_add_test(t, dates);
    tcase_add_test(t, lengths_of_texts);
    tcase_add_test(t, units_not_bytes);
    tcase_add_test(t, lengths_of_bytes);
    tcase_add_test(t, lists_and_objects);
    tcase_add_test(t, full_buffers);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
