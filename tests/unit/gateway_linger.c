#include "gateway/linger.h"

#include "tests/unit/gateway_kit.h"

static void earn(struct lingering *l, unsigned n)
{
    while (n-- > 0) {
        while (!linger_begin(l, LINGER_MIN))
            ;
        linger_answered(l);
    }
}

START_TEST(with_few_calls_the_loop_may_sleep)
{
    struct lingering l = {0};

    earn(&l, 10);
    for (unsigned n = 0; n < LINGER_MIN; n++)
        ck_assert(!linger_begin(&l, n));
    ck_assert(linger_begin(&l, LINGER_MIN));
    linger_cancel(&l);
    ck_assert_uint_eq(l.n, 0);
}
END_TEST

START_TEST(at_most_so_many_linger)
{
    struct lingering l = {.credit = 1};

    for (unsigned i = 0; i < LINGER_MAX; i++)
        ck_assert(linger_begin(&l, 1000));
    ck_assert(!linger_begin(&l, 1000));
    linger_answered(&l);
    ck_assert(linger_begin(&l, 1000));
    ck_assert_uint_eq(l.n, LINGER_MAX);
}
END_TEST

START_TEST(slow_providers_are_only_probed)
{
    struct lingering l = {0};
    unsigned tried = 0;

    earn(&l, 10 * LINGER_CREDIT);
    ck_assert_uint_eq(l.credit, LINGER_CREDIT);
    for (unsigned i = 0; i < LINGER_CREDIT / LINGER_LOSS; i++) {
        ck_assert(linger_begin(&l, 1000));
        linger_in_vain(&l);
    }
    ck_assert_uint_eq(l.credit, 0);
    for (unsigned i = 0; i < 10 * LINGER_PROBE; i++) {
        if (linger_begin(&l, 1000)) {
            tried++;
            linger_in_vain(&l);
        }
    }
    ck_assert_uint_eq(tried, 10);
    /* the first one that is answered in time lets the next one in at once */
    earn(&l, 1);
    ck_assert(linger_begin(&l, 1000));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_linger");
    TCase *t = tcase_create("linger");

    tcase_add_test(t, with_few_calls_the_loop_may_sleep);
    tcase_add_test(t, at_most_so_many_linger);
    tcase_add_test(t, slow_providers_are_only_probed);
    suite_add_tcase(s, t);
    return kit_run(s);
}
