#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "base/clock.h"

START_TEST(texts_of_times)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {UINT64_C(1768465812345), "2026-01-15T08:30:12.345Z"},
        {UINT64_C(951782400007), "2000-02-29T00:00:00.007Z"},
        {UINT64_C(1735689599999), "2024-12-31T23:59:59.999Z"},
        {UINT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[TIME_TEXT_LEN + 1];

        time_text(rows[i].ms, out);
        ck_assert_str_eq(out, rows[i].text);
    }
}
END_TEST

START_TEST(units)
{
    uint64_t us = clock_us();
    uint64_t ms = clock_ms();
    time_t wall = time(NULL);

    ck_assert_uint_le(us / 1000, ms);
    ck_assert_uint_lt(ms - us / 1000, 1000);
    ck_assert_uint_lt(wall_ms() / 1000 - (uint64_t)wall, 2);
    usleep(20000);
    ck_assert_uint_ge(clock_ms() - ms, 19);
    ck_assert_uint_ge(clock_us() - us, 19000);
    ck_assert_uint_lt(clock_us() - us, 5000000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_clock");
    TCase *t = tcase_create("base_clock");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, texts_of_times);
    tcase_add_test(t, units);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
