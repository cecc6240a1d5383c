#include <pthread.h>
#include <stdlib.h>

#include <check.h>

#include "base/stats.h"

START_TEST(bounds_belong_to_the_bucket_below)
{
    static struct hist h;

    hist_add(&h, 0);
    hist_add(&h, 500);
    hist_add(&h, 501);
    hist_add(&h, 1000);
    hist_add(&h, 10000000);
    hist_add(&h, 10000001);
    ck_assert_uint_eq(counter_get(&h.bucket[0]), 2);
    ck_assert_uint_eq(counter_get(&h.bucket[1]), 2);
    ck_assert_uint_eq(counter_get(&h.bucket[HIST_BUCKETS - 2]), 1);
    ck_assert_uint_eq(counter_get(&h.bucket[HIST_BUCKETS - 1]), 1);
    ck_assert_uint_eq(hist_count(&h), 6);
    ck_assert_uint_eq(counter_get(&h.sum_us), 20002002);
}
END_TEST

START_TEST(bounds_rise)
{
    for (int i = 1; i < HIST_BUCKETS - 1; i++)
        ck_assert_uint_gt(hist_bounds_us[i], hist_bounds_us[i - 1]);
}
END_TEST

START_TEST(merging_adds)
{
    static struct hist a;
    static struct hist b;

    hist_add(&a, 100);
    hist_add(&b, 100);
    hist_add(&b, 2000);
    hist_merge(&a, &b);
    ck_assert_uint_eq(hist_count(&a), 3);
    ck_assert_uint_eq(counter_get(&a.bucket[0]), 2);
    ck_assert_uint_eq(counter_get(&a.sum_us), 2200);
    ck_assert_uint_eq(hist_count(&b), 2);
}
END_TEST

enum { STEPS = 200000 };
static struct counter shared;

static void *writer(void *arg)
{
    (void)arg;
    for (int i = 0; i < STEPS; i++)
        counter_add(&shared, UINT64_C(1) << 33); /* both halves of a torn read would show */
    return NULL;
}

START_TEST(readers_see_it_rise)
{
    pthread_t t;
    uint64_t last = 0;

    ck_assert_int_eq(pthread_create(&t, NULL, writer, NULL), 0);
    while (last != (uint64_t)STEPS << 33) {
        uint64_t now = counter_get(&shared);

        ck_assert_uint_ge(now, last);
        ck_assert_uint_eq(now & UINT64_C(0x1ffffffff), 0);
        last = now;
    }
    pthread_join(t, NULL);
    counter_set(&shared, 5);
    ck_assert_uint_eq(counter_get(&shared), 5);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_stats");
    TCase *t = tcase_create("base_stats");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, bounds_belong_to_the_bucket_below);
    tcase_add_test(t, bounds_rise);
    tcase_add_test(t, merging_adds);
    tcase_add_test(t, readers_see_it_rise);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
