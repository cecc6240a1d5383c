#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/arena.h"

START_TEST(memory_is_zero_aligned_and_apart)
{
    struct arena a;
    uint8_t *p[300];

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        p[i] = arena_alloc(&a, i);
        ck_assert_ptr_nonnull(p[i]);
        ck_assert_uint_eq((uintptr_t)p[i] % 16, 0);
        for (size_t j = 0; j < i; j++)
            ck_assert_int_eq(p[i][j], 0);
        memset(p[i], (int)i & 0xff, i);
    }
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        for (size_t j = 0; j < i; j++)
            ck_assert_int_eq(p[i][j], (int)i & 0xff);
    }
    arena_free(&a);
    arena_free(&a); /* an empty one */
}
END_TEST

START_TEST(large_objects)
{
    struct arena a;
    char *p = NULL;

    arena_init(&a);
    p = arena_alloc(&a, 1 << 20);
    p[0] = p[(1 << 20) - 1] = 'x';
    ck_assert_uint_ge(a.used, 1 << 20);
    arena_free(&a);
    ck_assert_uint_eq(a.used, 0);
}
END_TEST

START_TEST(reset_keeps_a_block_and_zeroes_again)
{
    struct arena a;
    char *first = NULL;
    char *again = NULL;

    arena_init(&a);
    first = arena_alloc(&a, 100);
    memset(first, 'x', 100);
    arena_reset(&a);
    ck_assert_uint_eq(a.used, 0);
    again = arena_alloc(&a, 100);
    ck_assert_ptr_eq(again, first);
    ck_assert_int_eq(again[99], 0);
    arena_free(&a);
    arena_reset(&a); /* without any block */
}
END_TEST

START_TEST(texts)
{
    struct arena a;
    struct str s = STR_NONE;
    const char source[] = {'a', 'b', 'c'};

    arena_init(&a);
    s = arena_str(&a, (struct str){source, 3});
    ck_assert_str_eq(s.p, "abc");
    ck_assert_uint_eq(s.n, 3);
    ck_assert_str_eq(arena_cstr(&a, STR_NONE), "");
    s = arena_printf(&a, "%s-%d", "x", 42);
    ck_assert_str_eq(s.p, "x-42");
    ck_assert_uint_eq(s.n, 4);
    ck_assert_uint_eq(arena_printf(&a, "%5000d", 1).n, 5000);
    arena_free(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_arena");
    TCase *t = tcase_create("base_arena");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, memory_is_zero_aligned_and_apart);
    tcase_add_test(t, large_objects);
    tcase_add_test(t, reset_keeps_a_block_and_zeroes_again);
    tcase_add_test(t, texts);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
