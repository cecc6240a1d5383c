/*
 * Types with a form of their own (docs/JSON.md part A1, docs/HESSIAN2.md section 8): the bytes of each class,
 * and the text that the reading half makes of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "codec/hs2_json.h"
#include "codec/json_args.h"

enum { OUT_MAX = 65536 };

static struct args_opts opts;
static struct args_error error;
static struct buf bytes;
static struct buf text;

static void up(void)
{
    opts = (struct args_opts){.max_depth = 128};
    buf_init(&bytes, OUT_MAX);
    buf_init(&text, OUT_MAX);
}

static void down(void)
{
    buf_free(&bytes);
    buf_free(&text);
}

static bool encode(const char *type, const char *json)
{
    struct arena a;
    struct jtype t;
    struct err e = {0};
    bool ok = false;

    arena_init(&a);
    ck_assert_msg(jtype_parse(str_from(type), &a, &t, &e), "%s", e.text);
    const struct arg arg = {.json = str_from(json), .type = &t};

    buf_truncate(&bytes, 0);
    ok = arg_encode(&arg, &opts, &bytes, &error) == ARGS_OK;
    arena_free(&a);
    return ok;
}

/* What the bytes read as, "" when they do not read. */
static const char *decoded(void)
{
    static const struct reply_opts raw = {.keep_class = true, .no_rebuild = true, .max_depth = 128};
    struct hs2_reader r;
    struct hs2_json j = {.r = &r, .opts = &raw, .out = &text};

    hs2_init(&r);
    buf_init(&j.scratch, OUT_MAX);
    buf_truncate(&text, 0);
    hs2_begin(&r, bytes.data, bytes.len, 128);
    if (hs2_json(&j) != HS2_JSON_OK || r.p != r.end)
        buf_truncate(&text, 0);
    buf_add_u8(&text, '\0');
    hs2_free(&r);
    buf_free(&j.scratch);
    return (const char *)text.data;
}

START_TEST(there_and_back)
{
    static const struct {
        const char *type;
        const char *json;
        const char *back;
    } rows[] = {
        {"java.util.Date", "\"2018-01-29T20:00:00+08:00\"", "\"2018-01-29T12:00:00.000Z\""},
        {"java.util.Date", "1517227200000", "\"2018-01-29T12:00:00.000Z\""},
        {"java.util.Date", "\"1517227200000\"", "\"2018-01-29T12:00:00.000Z\""},
        {"java.util.Date", "-62167219200001", "-62167219200001"},
        {"java.sql.Date", "\"2018-01-29\"", "\"2018-01-29T00:00:00.000Z\""},
        {"java.sql.Time", "1", "\"1970-01-01T00:00:00.001Z\""},
        {"java.sql.Timestamp", "\"2018-01-29 12:00:00.123\"", "\"2018-01-29T12:00:00.123Z\""},
        {"java.util.Calendar", "0", "\"1970-01-01T00:00:00.000Z\""},
        {"java.time.LocalDate", "\"2018-01-29\"", "\"2018-01-29\""},
        {"java.time.LocalTime", "\"12:00\"", "\"12:00\""},
        {"java.time.LocalTime", "\"23:59:59.000001\"", "\"23:59:59.000001\""},
        {"java.time.LocalDateTime", "\"2018-01-29 12:00:00\"", "\"2018-01-29T12:00\""},
        {"java.time.LocalDateTime", "\"2018-01-29T12:00:01\"", "\"2018-01-29T12:00:01\""},
        {"java.time.Instant", "\"2018-01-29T12:00:00.123456789Z\"",
         "\"2018-01-29T12:00:00.123456789Z\""},
        {"java.time.Instant", "1517227200001", "\"2018-01-29T12:00:00.001Z\""},
        {"java.time.Instant", "-1", "\"1969-12-31T23:59:59.999Z\""},
        {"java.time.Instant", "\"1969-12-31T23:59:59.5Z\"", "\"1969-12-31T23:59:59.500Z\""},
        {"java.time.Duration", "\"PT-1.5S\"", "\"PT-1.5S\""},
        {"java.time.Duration", "\"P1DT1M\"", "\"PT24H1M\""},
        {"java.time.Period", "\"P1Y2M3D\"", "\"P1Y2M3D\""},
        {"java.time.Year", "2018", "\"2018\""},
        {"java.time.YearMonth", "\"2018-01\"", "\"2018-01\""},
        {"java.time.MonthDay", "\"--02-29\"", "\"--02-29\""},
        {"java.time.ZoneId", "\"Europe/Paris\"", "\"Europe/Paris\""},
        {"java.time.ZoneOffset", "\"-05:30\"", "\"-05:30\""},
        {"java.time.OffsetDateTime", "\"2018-01-29T12:00:00+08:00\"", "\"2018-01-29T12:00+08:00\""},
        {"java.time.OffsetTime", "\"12:00:00Z\"", "\"12:00Z\""},
        {"java.time.ZonedDateTime", "\"2018-01-29T12:00:00+01:00[Europe/Paris]\"",
         "\"2018-01-29T12:00+01:00[Europe/Paris]\""},
        {"java.time.ZonedDateTime", "\"2018-01-29T12:00:00Z\"", "\"2018-01-29T12:00Z\""},
        {"java.util.UUID", "\"00112233-4455-6677-8899-aabbccDDeeff\"",
         "\"00112233-4455-6677-8899-aabbccDDeeff\""},
        {"java.util.Locale", "\"zh-CN\"", "\"zh_CN\""},
        {"java.util.Locale", "\"zh_CN\"", "\"zh_CN\""},
        {"java.util.concurrent.atomic.AtomicLong", "9007199254740993", "9007199254740993"},
        {"java.util.concurrent.atomic.AtomicInteger", "-5", "-5"},
        {"java.util.concurrent.atomic.AtomicBoolean", "true", "true"},
        {"java.util.concurrent.atomic.AtomicBoolean", "\"false\"", "false"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ck_assert_msg(encode(rows[i].type, rows[i].json), "%s %s: %s", rows[i].type, rows[i].json,
                      error.detail);
        ck_assert_msg(strcmp(decoded(), rows[i].back) == 0, "%s %s: %s, want %s", rows[i].type,
                      rows[i].json, decoded(), rows[i].back);
        ck_assert(encode(rows[i].type, "null") && bytes.len == 1 && bytes.data[0] == 'N');
        ck_assert(!encode(rows[i].type, "{}"));
        ck_assert_int_eq(error.result, ARGS_BAD_ARGUMENT);
        ck_assert(!encode(rows[i].type, "[]"));
        ck_assert(!encode(rows[i].type, "\"\\u0000\""));
    }
}
END_TEST

START_TEST(refusals)
{
    static const char *const rows[][2] = {
        {"java.util.Date", "\"x\""},
        {"java.util.Date", "\"12:00\""},
        {"java.util.Date", "1.5"},
        {"java.util.Date", "true"},
        {"java.util.Date", "9223372036854775808"},
        {"java.sql.Timestamp", "\"2018-02-30\""},
        {"java.time.LocalDate", "\"2018-01-29T12:00\""},
        {"java.time.LocalDate", "0"},
        {"java.time.LocalTime", "\"12:00Z\""},
        {"java.time.LocalDateTime", "\"2018-01-29\""},
        {"java.time.LocalDateTime", "\"2018-01-29T12:00:00Z\""},
        {"java.time.Instant", "\"12:00:00Z\""},
        {"java.time.Duration", "5"},
        {"java.time.Duration", "\"P1Y\""},
        {"java.time.Period", "\"PT1H\""},
        {"java.time.Year", "1000000000"},
        {"java.time.Year", "2018.5"},
        {"java.time.YearMonth", "\"2018-13\""},
        {"java.time.YearMonth", "\"2018-00\""},
        {"java.time.YearMonth", "\"2018-1\""},
        {"java.time.MonthDay", "\"--13-01\""},
        {"java.time.MonthDay", "\"--02-30\""},
        {"java.time.MonthDay", "\"--04-31\""},
        {"java.time.MonthDay", "\"02-29\""},
        {"java.time.MonthDay", "\"-002-01\""},
        {"java.time.ZoneOffset", "\"+19:00\""},
        {"java.time.OffsetDateTime", "\"2018-01-29T12:00:00\""},
        {"java.time.OffsetTime", "\"12:00\""},
        {"java.time.ZonedDateTime", "\"2018-01-29T12:00:00\""},
        {"java.util.UUID", "\"00112233-4455-6677-8899-aabbccDDeef\""},
        {"java.util.UUID", "\"00112233x4455-6677-8899-aabbccDDeeff\""},
        {"java.util.UUID", "\"g0112233-4455-6677-8899-aabbccDDeeff\""},
        {"java.util.Locale", "5"},
        {"java.util.Locale", "\"zh CN\""},
        {"java.time.ZoneId", "\"\""},
        {"java.time.ZoneId", "\"a b\""},
        {"java.time.ZonedDateTime", "\"2018-01-29T12:00:00+01:00[a b]\""},
        {"java.util.Locale",
         "\"0123456789012345678901234567890123456789012345678901234567890123\""},
        {"java.util.concurrent.atomic.AtomicInteger", "2147483648"},
        {"java.util.concurrent.atomic.AtomicLong", "1.5"},
        {"java.util.concurrent.atomic.AtomicBoolean", "1"},
        {"java.util.concurrent.atomic.AtomicBoolean", "\"yes\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ck_assert_msg(!encode(rows[i][0], rows[i][1]), "%s %s", rows[i][0], rows[i][1]);
        ck_assert_int_eq(error.result, ARGS_BAD_ARGUMENT);
        ck_assert(strstr(error.detail, rows[i][0]) != NULL);
        ck_assert_uint_eq(bytes.len, 0);
    }
}
END_TEST

static void check_bytes(const char *type, const char *json, const char *want)
{
    char hex[1024];

    ck_assert_msg(encode(type, json), "%s: %s", type, error.detail);
    for (size_t i = 0; i < bytes.len; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes.data[i]);
    ck_assert_msg(strcmp(hex, want) == 0, "%s %s: got %s", type, json, hex);
}

/* Names and fields as hessian-lite has them: a reader of another make must know them too. */
START_TEST(classes_on_the_wire)
{
    check_bytes("java.sql.Date", "0", "430d6a6176612e73716c2e44617465910576616c7565604b00000000");
    check_bytes("java.util.Calendar", "0",
                "433030636f6d2e616c69626162612e636f6d2e63617563686f2e6865737369616e2e696f2e"
                "43616c656e64617248616e646c659204747970650464617465604e4b00000000");
    check_bytes("java.time.Instant", "1",
                "433035636f6d2e616c69626162612e636f6d2e63617563686f2e6865737369616e2e696f2e"
                "6a617661382e496e7374616e7448616e646c6592077365636f6e6473056e616e6f7360e0"
                "49000f4240");
    check_bytes("java.util.UUID", "\"00112233-4455-6677-8899-aabbccddeeff\"",
                "430e6a6176612e7574696c2e55554944910576616c756560302430303131323233332d3434"
                "35352d363637372d383839392d616162626363646465656666");
}
END_TEST

/* A class is defined once in a message, however often it is used. */
START_TEST(definitions_are_shared)
{
    size_t one = 0;

    ck_assert(encode("java.time.LocalDateTime", "\"2018-01-29T12:00:01\""));
    one = bytes.len;
    ck_assert(encode("java.time.LocalDateTime[]",
                     "[\"2018-01-29T12:00:01\",null,\"2018-01-29T12:00:01\"]"));
    ck_assert_uint_lt(bytes.len, one + 20);
    ck_assert_str_eq(decoded(), "[\"2018-01-29T12:00:01\",null,\"2018-01-29T12:00:01\"]");
}
END_TEST

START_TEST(zone_of_the_options)
{
    opts.utc_offset_s = 28800;
    ck_assert(encode("java.util.Date", "\"2018-01-29 20:00:00\""));
    ck_assert_str_eq(decoded(), "\"2018-01-29T12:00:00.000Z\"");
    ck_assert(encode("java.util.Date", "\"2018-01-29T12:00:00Z\""));
    ck_assert_str_eq(decoded(), "\"2018-01-29T12:00:00.000Z\"");
    ck_assert(encode("java.util.Date", "1517227200000"));
    ck_assert_str_eq(decoded(), "\"2018-01-29T12:00:00.000Z\"");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_value_write");
    TCase *t = tcase_create("classes");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_checked_fixture(t, up, down);
    tcase_add_test(t, there_and_back);
    tcase_add_test(t, refusals);
    tcase_add_test(t, classes_on_the_wire);
    tcase_add_test(t, definitions_are_shared);
    tcase_add_test(t, zone_of_the_options);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
