/*
 * The balancers' shares.  The generator of a worker is seeded, so the counts are the same in every run.
 */
#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#include "gateway/balance.h"
#include "gateway/cluster.h"

enum { DRAWS = 100000 };

static struct endpoint ends[BALANCE_CANDIDATES_MAX];
static struct ref ref;

/* Nothing is remembered of the tests before. */
static void forget(void)
{
    for (size_t i = 0; i < BALANCE_CANDIDATES_MAX; i++) {
        free(ends[i].loads);
        ends[i] = (struct endpoint){0};
    }
    balance_state_free(ref.balance);
    ref.balance = NULL;
}

static struct balance_choice choice(const uint32_t *weights, const unsigned *in_flight, size_t n)
{
    struct balance_choice c = {.ref = &ref, .n = n};

    for (size_t i = 0; i < n; i++) {
        ends[i].in_flight = in_flight != NULL ? in_flight[i] : 0;
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
    const unsigned even[] = {1, 3};  /* 1/100 = 3/300: alike, the first draw counts */
    const unsigned light[] = {1, 4}; /* 1/100 < 4/300 */
    const unsigned idle[] = {0, 0};  /* their weights alone */
    struct balance_choice c = choice(weights, even, 2);
    unsigned n[2] = {0};
    unsigned m[2] = {0};

    draw(&balance_p2c, &c, n);
    ck_assert(about(n[0], .25));
    c = choice(weights, light, 2);
    draw(&balance_p2c, &c, m);
    ck_assert(about(m[0], 1 - .75 * .75));
    c = choice(weights, idle, 2);
    n[0] = n[1] = 0;
    draw(&balance_p2c, &c, n);
    ck_assert(about(n[0], .25));
}
END_TEST

/* ---------------------------------------------------------------- those that remember */

static struct wctx worker = {.random = 42, .now_ms = 1000000};

/* Who is asked, call after call, as letters. */
static const char *turns(const struct balancer *b, const struct balance_choice *c,
                         const char *method, size_t n)
{
    static char text[64];
    const struct balance_call call = {.method = str_from(method)};

    for (size_t i = 0; i < n; i++)
        text[i] = (char)('A' + (c->list[b->pick(&worker, c, &call)] - ends));
    text[n] = '\0';
    return text;
}

START_TEST(smooth_round_robin)
{
    const uint32_t weights[] = {5, 1, 1};
    const uint32_t equal[] = {100, 100, 100};
    struct balance_choice c = choice(weights, NULL, 3);

    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 14), "AABACAAAABACAA");
    forget();
    c = choice(equal, NULL, 3);
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 7), "ABCABCA");
}
END_TEST

START_TEST(every_method_has_its_turn)
{
    const uint32_t weights[] = {1, 1};
    struct balance_choice c = choice(weights, NULL, 2);
    struct ref other = {0};

    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 1), "A");
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "n", 1), "A");
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 1), "B");
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "n", 2), "BA");
    ck_assert_ptr_null(other.balance);
}
END_TEST

START_TEST(a_new_weight_starts_anew)
{
    const uint32_t before[] = {3, 1};
    const uint32_t after[] = {3, 3};
    struct balance_choice c = choice(before, NULL, 2);

    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 2), "AA"); /* A -2, B 2 */
    c = choice(after, NULL, 2);
    /* A 1, B 3 (not 5): B, which goes to -3; A 4, B 0: A … */
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 4), "BABA");
}
END_TEST

/* Others come and go: the ones that stay keep their turn. */
START_TEST(turns_go_on_in_another_list)
{
    const uint32_t weights[] = {1, 1, 1, 1};
    struct balance_choice c = choice(weights, NULL, 4);

    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 2), "AB");
    c.n = 3; /* D has left; its turn goes to who waits longest */
    c.total = 3;
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 7), "CCABCAB");
}
END_TEST

START_TEST(round_robin_without_weights)
{
    const uint32_t none[] = {0, 0};
    const uint32_t one[] = {0, 7};
    struct balance_choice c = choice(none, NULL, 2);

    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 4), "ABAB");
    c = choice(one, NULL, 2);
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m", 4), "BBBB");
}
END_TEST

/* Names without end share one turn. */
START_TEST(methods_are_bounded)
{
    const uint32_t weights[] = {1, 1};
    struct balance_choice c = choice(weights, NULL, 2);
    char name[16];

    for (int i = 0; i < BALANCE_METHODS_MAX; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        ck_assert_str_eq(turns(&balance_roundrobin, &c, name, 1), "A");
    }
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "more", 1), "A");
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "evenmore", 1), "B");
    ck_assert_str_eq(turns(&balance_roundrobin, &c, "m3", 1), "B");
    ck_assert_uint_eq(ends[0].n_loads, BALANCE_METHODS_MAX + 1);
}
END_TEST

static unsigned begin(const struct balancer *b, const char *method, size_t at)
{
    unsigned slot = balance_begin(&ref, b, str_from(method), &ends[at]);

    ck_assert_uint_ne(slot, BALANCE_NO_SLOT);
    return slot;
}

START_TEST(least_active_counts_the_method)
{
    const uint32_t weights[] = {100, 1, 1};
    struct balance_choice c = choice(weights, NULL, 3);
    unsigned slot = 0;

    begin(&balance_leastactive, "m", 0);
    slot = begin(&balance_leastactive, "m", 2);
    ck_assert_str_eq(turns(&balance_leastactive, &c, "m", 3), "BBB");
    begin(&balance_leastactive, "m", 1);
    begin(&balance_leastactive, "m", 1);
    balance_end(&ends[2], slot, worker.now_ms, 0);
    ck_assert_str_eq(turns(&balance_leastactive, &c, "m", 3), "CCC");
    begin(&balance_leastactive, "n", 0); /* does not count for m */
    begin(&balance_leastactive, "n", 2);
    ck_assert_str_eq(turns(&balance_leastactive, &c, "n", 3), "BBB");
    ck_assert_str_eq(turns(&balance_adaptive, &c, "m", 3), "CCC");
}
END_TEST

START_TEST(least_active_goes_by_weight_among_equals)
{
    const uint32_t weights[] = {100, 300, 600};
    struct balance_choice c = choice(weights, NULL, 3);
    unsigned n[3] = {0};

    balance_end(&ends[1], balance_begin(&ref, &balance_leastactive, STR("m"), &ends[1]), 0, 0);
    ck_assert_uint_eq(balance_begin(&ref, &balance_leastactive, STR("m"), &ends[2]), 0);
    draw(&balance_leastactive, &c, n);
    ck_assert(about(n[0], .25) && about(n[1], .75));
    ck_assert_uint_eq(n[2], 0);
}
END_TEST

START_TEST(others_need_not_be_told)
{
    ref.wish = NULL;
    ck_assert_uint_eq(balance_begin(&ref, NULL, STR("m"), &ends[0]), BALANCE_NO_SLOT);
    ck_assert_uint_eq(balance_begin(&ref, &balance_random, STR("m"), &ends[0]), BALANCE_NO_SLOT);
    ck_assert_ptr_null(ref.balance);
    ref.wish = &balance_leastactive; /* of the provider's URL */
    ref.wish_per_method = true;
    ck_assert_uint_eq(balance_begin(&ref, NULL, STR("m"), &ends[0]), 0);
    ck_assert_uint_eq(balance_begin(&ref, &balance_p2c, STR("m"), &ends[0]), BALANCE_NO_SLOT);
    ref.wish = NULL;
}
END_TEST

static void answered(size_t at, uint64_t us)
{
    balance_end(&ends[at], begin(&balance_shortestresponse, "m", at), worker.now_ms, us);
}

START_TEST(shortest_response)
{
    const uint32_t weights[] = {1, 1, 1};
    struct balance_choice c = choice(weights, NULL, 3);

    answered(0, 3000);
    answered(0, 1000); /* mean 2000 */
    answered(1, 900);
    answered(2, 5000);
    ck_assert_str_eq(turns(&balance_shortestresponse, &c, "m", 3), "BBB");
    begin(&balance_shortestresponse, "m", 1); /* 1800 */
    ck_assert_str_eq(turns(&balance_shortestresponse, &c, "m", 3), "BBB");
    begin(&balance_shortestresponse, "m", 1); /* 2700 */
    ck_assert_str_eq(turns(&balance_shortestresponse, &c, "m", 3), "AAA");
}
END_TEST

START_TEST(shortest_response_forgets)
{
    const uint32_t weights[] = {1, 1};
    struct balance_choice c = choice(weights, NULL, 2);
    const uint64_t start = worker.now_ms;
    uint64_t us = 0;

    answered(0, 1000);
    worker.now_ms += 10000;
    answered(0, 7000); /* mean 4000 */
    answered(1, 5000);
    ck_assert_str_eq(turns(&balance_shortestresponse, &c, "m", 3), "AAA");
    worker.now_ms = start + 30000; /* the first answer is too old now */
    ck_assert_str_eq(turns(&balance_shortestresponse, &c, "m", 3), "BBB");
    worker.now_ms = start + 40000;
    ck_assert(!load_mean_us(&ends[0].loads[0], worker.now_ms, &us));
    worker.now_ms = start;
}
END_TEST

/* Without a good answer: as good as the best, so it is tried, but does not get everything. */
START_TEST(shortest_response_of_a_new_one)
{
    const uint32_t weights[] = {1, 1, 1};
    struct balance_choice c = choice(weights, NULL, 3);
    unsigned n[3] = {0};

    answered(0, 1000);
    answered(1, 3000);
    balance_end(&ends[2], begin(&balance_shortestresponse, "m", 2), worker.now_ms, 0); /* failed */
    for (int i = 0; i < 1000; i++)
        n[turns(&balance_shortestresponse, &c, "m", 1)[0] - 'A']++;
    ck_assert(n[0] > 400 && n[1] == 0 && n[2] > 400);
    begin(&balance_shortestresponse, "m", 2);
    ck_assert_str_eq(turns(&balance_shortestresponse, &c, "m", 3), "AAA");
}
END_TEST

START_TEST(names)
{
    ck_assert_ptr_eq(balance_find(STR("p2c")), &balance_p2c);
    ck_assert_ptr_eq(balance_find(STR("random")), &balance_random);
    ck_assert_ptr_eq(balance_find(STR("roundrobin")), &balance_roundrobin);
    ck_assert_ptr_eq(balance_find(STR("leastactive")), &balance_leastactive);
    ck_assert_ptr_eq(balance_find(STR("shortestresponse")), &balance_shortestresponse);
    ck_assert_ptr_eq(balance_find(STR("adaptive")), &balance_adaptive);
    ck_assert_ptr_null(balance_find(STR("fastest")));
    for (size_t i = 0; balance_names[i] != NULL; i++)
        ck_assert_str_eq(balance_find(str_from(balance_names[i]))->name, balance_names[i]);
    for (size_t i = 0; cluster_names[i] != NULL; i++)
        ck_assert_str_eq(cluster_find(str_from(cluster_names[i]))->name, cluster_names[i]);
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
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_test(t, smooth_round_robin);
    tcase_add_test(t, every_method_has_its_turn);
    tcase_add_test(t, a_new_weight_starts_anew);
    tcase_add_test(t, turns_go_on_in_another_list);
    tcase_add_test(t, round_robin_without_weights);
    tcase_add_test(t, methods_are_bounded);
    tcase_add_test(t, least_active_counts_the_method);
    tcase_add_test(t, least_active_goes_by_weight_among_equals);
    tcase_add_test(t, others_need_not_be_told);
    tcase_add_test(t, shortest_response);
    tcase_add_test(t, shortest_response_forgets);
    tcase_add_test(t, shortest_response_of_a_new_one);
    tcase_add_test(t, names);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
