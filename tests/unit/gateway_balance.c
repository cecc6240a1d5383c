/*
 * The balancers' shares.  The generator of a worker is seeded, so the counts are the same in every run.
 */
#include <stdlib.h>

#include <check.h>

#include "gateway/balance.h"

enum { DRAWS = 100000 };

static struct endpoint ends[BALANCE_CANDIDATES_MAX];

static struct balance_choice choice(const uint32_t *weights, const unsigned *in_flight, size_t n)
{
    struct balance_choice c = {.n = n};

    for (size_t i = 0; i < n; i++) {
        ends[i] = (struct endpoint){.in_flight = in_flight != NULL ? in_flight[i] : 0};
        c.list[i] = &ends[i];
        c.weight[i] = weights[i];
        c.total += weights[i];
    }
    return c;
}

static void draw(const struct balancer *b, const struct balance_choice *c, unsigned *counts)
{
    struct wctx w = {.random = 42};
    const struct balance_call call = {.method = STR("m")};

    for (int i = 0; i < DRAWS; i++) {
        size_t at = b->pick(&w, c, &call);

        ck_assert_uint_lt(at, c->n);
        counts[at]++;
    }
}

static bool about(unsigned count, double share)
{
    return abs((int)count - (int)(share * DRAWS)) < DRAWS / 100;
}

START_TEST(random_follows_the_weights)
{
    const uint32_t weights[] = {100, 0, 300, 1, 599};
    struct balance_choice c = choice(weights, NULL, 5);
    unsigned n[5] = {0};

    draw(&balance_random, &c, n);
    ck_assert(about(n[0], .1) && about(n[2], .3) && about(n[4], .599));
    ck_assert_uint_eq(n[1], 0);
    ck_assert_uint_gt(n[3], 0);
}
END_TEST

START_TEST(without_any_weight_all_are_alike)
{
    const uint32_t weights[] = {0, 0, 0, 0};
    struct balance_choice c = choice(weights, NULL, 4);

    for (int i = 0; i < 2; i++) {
        unsigned n[4] = {0};

        draw(i == 0 ? &balance_random : &balance_p2c, &c, n);
        for (int j = 0; j < 4; j++)
            ck_assert_uint_gt(n[j], DRAWS / 5);
    }
}
END_TEST

START_TEST(largest_weights)
{
    const uint32_t weights[] = {INT32_MAX, INT32_MAX};
    struct balance_choice c = choice(weights, NULL, 2);
    unsigned n[2] = {0};

    draw(&balance_random, &c, n);
    ck_assert(about(n[0], .5));
}
END_TEST

START_TEST(p2c_prefers_the_less_loaded)
{
    const uint32_t weights[] = {100, 100};
    const unsigned in_flight[] = {10, 0};
    struct balance_choice c = choice(weights, in_flight, 2);
    unsigned n[2] = {0};

    /* the loaded one wins only when both draws hit it */
    draw(&balance_p2c, &c, n);
    ck_assert(about(n[0], .25) && about(n[1], .75));
}
END_TEST

START_TEST(p2c_measures_load_by_weight)
{
    const uint32_t weights[] = {100, 300};
    const unsigned even[] = {1, 5};  /* 2/100 = 6/300: alike, the first draw counts */
    const unsigned light[] = {1, 6}; /* 2/100 < 7/300 */
    struct balance_choice c = choice(weights, even, 2);
    unsigned n[2] = {0};
    unsigned m[2] = {0};

    draw(&balance_p2c, &c, n);
    ck_assert(about(n[0], .25));
    c = choice(weights, light, 2);
    draw(&balance_p2c, &c, m);
    ck_assert(about(m[0], 1 - .75 * .75));
}
END_TEST

START_TEST(names)
{
    ck_assert_ptr_eq(balance_find(STR("p2c")), &balance_p2c);
    ck_assert_ptr_eq(balance_find(STR("random")), &balance_random);
    ck_assert_ptr_null(balance_find(STR("roundrobin")));
    ck_assert_ptr_null(balance_find(STR_NONE));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_balance");
    TCase *t = tcase_create("shares");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, random_follows_the_weights);
    tcase_add_test(t, without_any_weight_all_are_alike);
    tcase_add_test(t, largest_weights);
    tcase_add_test(t, p2c_prefers_the_less_loaded);
    tcase_add_test(t, p2c_measures_load_by_weight);
    tcase_add_test(t, names);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
