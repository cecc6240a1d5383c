/*
 * Date and time texts (docs/JSON.md part A1): what is taken, to which instant, and what is not.
 */
#include <stdlib.h>

#include <check.h>

#include "codec/date_parse.h"

START_TEST(instants)
{
    static const struct {
        const char *text;
        int32_t zone; /* of the options */
        int64_t ms;
    } rows[] = {
        {"2018-01-29T12:00:00Z", 3600, INT64_C(1517227200000)},
        {"2018-01-29T20:00:00+08:00", 0, INT64_C(1517227200000)},
        {"2018-01-29t20:00:00+0800", 0, INT64_C(1517227200000)},
        {"2018-01-29 04:00:00-08", 0, INT64_C(1517227200000)},
        {"2018-01-29T12:00:00+00:00[Europe/London]", 0, INT64_C(1517227200000)},
        {"2018-01-29 12:00:00", 0, INT64_C(1517227200000)},
        {"2018-01-29 20:00:00", 28800, INT64_C(1517227200000)},
        {"2018-01-29 12:00:00.123", 0, INT64_C(1517227200123)},
        {"2018-01-29T12:00:00.123456789z", 0, INT64_C(1517227200123)},
        {"2018-01-29T12:00:00.1Z", 0, INT64_C(1517227200100)},
        {"2018-01-29T12:00Z", 0, INT64_C(1517227200000)},
        {"2018-01-29", 0, INT64_C(1517184000000)},
        {"2018-01-29", 28800, INT64_C(1517155200000)},
        {"1970-01-01T00:00:00Z", 0, 0},
        {"1969-12-31T23:59:59.999Z", 0, -1},
        {"0001-01-01T00:00:00Z", 0, INT64_C(-62135596800000)},
        {"0000-02-29T00:00:00Z", 0, INT64_C(-62162121600000)},
        {"9999-12-31T23:59:59.999Z", 0, INT64_C(253402300799999)},
        {"2000-02-29T00:00:00-18:00", 0, INT64_C(951847200000)},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct date_fields d;

        ck_assert_msg(date_parse(str_from(rows[i].text), &d), "%s", rows[i].text);
        ck_assert_msg(date_millis(&d, rows[i].zone) == rows[i].ms, "%s: %lld", rows[i].text,
                      (long long)date_millis(&d, rows[i].zone));
    }
}
END_TEST

START_TEST(parts)
{
    struct date_fields d;

    ck_assert(date_parse(STR("2018-01-29"), &d));
    ck_assert_uint_eq(d.parts, DATE_HAS_DATE);
    ck_assert(date_parse(STR("23:59"), &d));
    ck_assert_uint_eq(d.parts, DATE_HAS_TIME);
    ck_assert(d.hour == 23 && d.minute == 59 && d.second == 0);
    ck_assert(date_parse(STR("23:59:58.000000001+05:30"), &d));
    ck_assert_uint_eq(d.parts, DATE_HAS_TIME | DATE_HAS_ZONE);
    ck_assert(d.nano == 1 && d.offset_s == 19800);
    ck_assert(date_parse(STR("2018-01-29T01:02:03-01:02:03[America/New_York]"), &d));
    ck_assert_uint_eq(d.parts, DATE_HAS_DATE | DATE_HAS_TIME | DATE_HAS_ZONE);
    ck_assert_int_eq(d.offset_s, -3723);
    ck_assert(str_is(d.zone, "America/New_York"));
}
END_TEST

START_TEST(refusals)
{
    static const char *const bad[] = {
        "",
        "2018",
        "2018-01",
        "2018-1-29",
        "2018-01-32",
        "2018-00-10",
        "2018-13-10",
        "2018-02-29",
        "1900-02-29",
        "2018-04-31",
        "2018-01-29T",
        "2018-01-29 ",
        "2018-01-29Z",
        "2018-01-29  12:00:00",
        "2018-01-29_12:00:00",
        "2018-01-29T24:00:00Z",
        "2018-01-29T12:60:00Z",
        "2018-01-29T12:00:60Z",
        "2018-01-29T12",
        "2018-01-29T12:0",
        "2018-01-29T12:00:0",
        "2018-01-29T12:00:00.",
        "2018-01-29T12:00:00.Z",
        "2018-01-29T12:00:00.1234567891Z",
        "2018-01-29T12:00:00Zx",
        "2018-01-29T12:00:00+",
        "2018-01-29T12:00:00+8",
        "2018-01-29T12:00:00+19:00",
        "2018-01-29T12:00:00+18:01",
        "2018-01-29T12:00:00+08:60",
        "2018-01-29T12:00:00[Europe/London]",
        "2018-01-29T12:00:00Z[]",
        "2018-01-29T12:00:00Z[x",
        "-018-01-29",
        "2018-+1-29",
        "2018--1-29",
        "+2018-01-29",
        "12018-01-29",
        "20180129",
        "1517227200000",
        "Mon, 29 Jan 2018 12:00:00 GMT",
        "12:-1",
        " 12:00",
    };
    struct date_fields d;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!date_parse(str_from(bad[i]), &d), "%s", bad[i]);
    ck_assert(!date_parse(STR_NONE, &d));
    ck_assert(!date_parse((struct str){"2018-01-29\0", 11}, &d));
}
END_TEST

START_TEST(durations)
{
    static const struct {
        const char *text;
        int64_t seconds;
        int32_t nanos;
    } good[] = {
        {"PT0S", 0, 0},
        {"PT1.5S", 1, 500000000},
        {"PT-0.5S", -1, 500000000},
        {"PT-1.5S", -2, 500000000},
        {"PT-1S", -1, 0},
        {"P1D", 86400, 0},
        {"P1DT2H3M4.000000005S", 93784, 5},
        {"PT8H6M12.345S", 29172, 345000000},
        {"PT-6H+3M", -21420, 0},
        {"PT100M", 6000, 0},
    };
    static const char *const bad[] = {
        "",     "P",    "PT",  "1D",    "PT1",    "PT1.S", "PT.5S",  "PT5X",   "P1H",
        "PT1D", "P1DT", "PTS", "PT1S2", "PT1S1S", "P1Y",   "PT1M1H", "PT1,5S", "PT1.0000000001S"};
    int64_t s = 0;
    int32_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        ck_assert_msg(date_parse_duration(str_from(good[i].text), &s, &n), "%s", good[i].text);
        ck_assert_msg(s == good[i].seconds && n == good[i].nanos, "%s: %lld %d", good[i].text,
                      (long long)s, n);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!date_parse_duration(str_from(bad[i]), &s, &n), "%s", bad[i]);
    ck_assert(!date_parse_duration(STR_NONE, &s, &n));
}
END_TEST

START_TEST(periods_and_offsets)
{
    static const char *const bad[] = {"",      "P",     "1Y",   "P1",           "P1H",
                                      "P1Y1Y", "P1D1Y", "PT1H", "P99999999999Y"};
    int32_t v[3];
    int32_t s = 0;

    ck_assert(date_parse_period(STR("P1Y2M3D"), v));
    ck_assert(v[0] == 1 && v[1] == 2 && v[2] == 3);
    ck_assert(date_parse_period(STR("P2W-1D"), v));
    ck_assert(v[0] == 0 && v[1] == 0 && v[2] == 13);
    ck_assert(date_parse_period(STR("P-5M"), v));
    ck_assert(v[0] == 0 && v[1] == -5 && v[2] == 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!date_parse_period(str_from(bad[i]), v), "%s", bad[i]);

    ck_assert(date_parse_offset(STR("Z"), &s) && s == 0);
    ck_assert(date_parse_offset(STR("+08:00"), &s) && s == 28800);
    ck_assert(date_parse_offset(STR("-18:00"), &s) && s == -64800);
    ck_assert(date_parse_offset(STR("-00:30:15"), &s) && s == -1815);
    ck_assert(!date_parse_offset(STR("08:00"), &s));
    ck_assert(!date_parse_offset(STR("+18:00:01"), &s));
    ck_assert(!date_parse_offset(STR("+08:00x"), &s));
    ck_assert(!date_parse_offset(STR_NONE, &s));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_date_parse");
    TCase *t = tcase_create("texts");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, instants);
    tcase_add_test(t, parts);
    tcase_add_test(t, refusals);
    tcase_add_test(t, durations);
    tcase_add_test(t, periods_and_offsets);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
