/*
 * The JSON reader: what it takes, what it refuses and where, and the slices it gives (docs/JSON.md part C).
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "codec/json_read.h"

/* One letter per token, then the text of numbers and strings. */
static const char *tokens(const char *json)
{
    static const char letters[] = "ntf0s[]{}k.!";
    static char shown[512];
    struct json_reader j;
    size_t n = 0;

    json_begin(&j, str_from(json), 128);
    for (;;) {
        struct json_token t = json_next(&j);

        shown[n++] = letters[t.kind];
        if (t.kind == JSON_TOKEN_NUMBER || t.kind == JSON_TOKEN_STRING ||
            t.kind == JSON_TOKEN_KEY) {
            ck_assert_uint_lt(n + t.text.n, sizeof(shown));
            memcpy(shown + n, t.text.p, t.text.n);
            n += t.text.n;
        }
        ck_assert_uint_lt(n + 2, sizeof(shown));
        if (t.kind == JSON_TOKEN_END || t.kind == JSON_TOKEN_ERROR)
            break;
    }
    shown[n] = '\0';
    return shown;
}

START_TEST(whole_documents)
{
    ck_assert_str_eq(tokens(" null "), "n.");
    ck_assert_str_eq(tokens("[true,\tfalse\r\n]"), "[tf].");
    ck_assert_str_eq(tokens("{\"a\" : [ ] , \"\":{}}"), "{ka[]k{}}.");
    ck_assert_str_eq(tokens("[1.10,-0,9007199254740993,1E+400]"), "[01.100-00"
                                                                  "900719925474099301E+400].");
    ck_assert_str_eq(tokens("\"a\\u0000\\\"\xf4\x8f\xbf\xbf\""), "sa\\u0000\\\"\xf4\x8f\xbf\xbf.");
    ck_assert_str_eq(tokens("\"\\ud83d\\ude00\""), "s\\ud83d\\ude00.");
}
END_TEST

START_TEST(refusals)
{
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "'a'",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1",
        "[",
        "]",
        "}",
        "[}",
        "{]",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\" 1}",
        "{a:1}",
        "{1:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1",
        "{\"a\":",
        "{\"a\"",
        "{\"a",
        "{",
        "1 2",
        "[] []",
        "{} x",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "1.e1",
        "--1",
        "0x1",
        "1_0",
        "NaN",
        "Infinity",
        "\"",
        "\"\\",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\ud800x\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\ud800\"",
        "\"\\udc00\"",
        "\"a\nb\"",
        "\"\x1f\"",
        "\"\x80\"",
        "\"\xc1\xbf\"",
        "\"\xc3\"",
        "\"\xe0\x9f\xbf\"",
        "\"\xed\xa0\x80\"",
        "\"\xf0\x8f\xbf\xbf\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xff\"",
        "\xef\xbb\xbf[]",
        "[1]\x01",
        "/**/1",
        "[1//\n]",
        "\v1",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *got = tokens(bad[i]);
        const char *why = NULL;
        size_t at = 99999;

        ck_assert_msg(got[strlen(got) - 1] == '!', "%s: %s", bad[i], got);
        ck_assert(!json_is_valid(str_from(bad[i]), 128, &at, &why));
        ck_assert_uint_le(at, strlen(bad[i]));
        ck_assert(why != NULL && why[0] != '\0');
    }
    ck_assert(!json_is_valid(STR_NONE, 128, NULL, NULL));
    ck_assert(!json_is_valid((struct str){"\"a\0b\"", 5}, 128, NULL, NULL));
    ck_assert(!json_is_valid((struct str){"1\0", 2}, 128, NULL, NULL));
    ck_assert(!json_is_valid((struct str){"\"\\\0\"", 4}, 128, NULL, NULL));
}
END_TEST

/* Every prefix of a document is refused, and nothing behind it is looked at (a sanitizer would tell). */
START_TEST(prefixes)
{
    static const char text[] =
        "{\"a\":[1.5e3,\"\\ud83d\\ude00\xf0\x9f\x98\x80\",null,{\"b\":true}]}";

    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *part = malloc(n + 1);

        ck_assert_ptr_nonnull(part);
        memcpy(part, text, n);
        part = realloc(part, n != 0 ? n : 1);
        ck_assert_msg(!json_is_valid((struct str){part, n}, 128, NULL, NULL), "%zu", n);
        free(part);
    }
    ck_assert(json_is_valid(STR("{\"a\":[1.5e3,\"\\ud83d\\ude00\",null,{\"b\":true}]}"), 128, NULL,
                            NULL));
}
END_TEST

START_TEST(places)
{
    unsigned line = 0;
    unsigned column = 0;
    size_t at = 0;
    const char *why = NULL;
    struct str text = STR("[1,\n \"\xe4\xb8\xad\", x]");

    ck_assert(!json_is_valid(text, 128, &at, &why));
    ck_assert_uint_eq(at, 12);
    json_position(text, at, &line, &column);
    ck_assert_uint_eq(line, 2);
    ck_assert_uint_eq(column, 7); /* characters, not bytes */
    json_position(text, 0, &line, &column);
    ck_assert(line == 1 && column == 1);
    json_position(STR_NONE, 5, &line, &column);
    ck_assert(line == 1 && column == 1);
}
END_TEST

START_TEST(depth)
{
    static char deep[2000];

    memset(deep, '[', sizeof(deep));
    ck_assert(json_is_valid(STR("[[]]"), 2, NULL, NULL));
    ck_assert(!json_is_valid(STR("[[[]]]"), 2, NULL, NULL));
    ck_assert(json_is_valid(STR("1"), 0, NULL, NULL));
    ck_assert(!json_is_valid(STR("[]"), 0, NULL, NULL));
    ck_assert(json_is_valid(STR("[[],[],{\"a\":{}}]"), 3, NULL, NULL)); /* siblings do not add up */
    for (size_t n = 255; n <= 257; n++) {
        memset(deep, '[', n);
        memset(deep + n, ']', n);
        ck_assert_int_eq(json_is_valid((struct str){deep, 2 * n}, 100000, NULL, NULL), n <= 256);
    }
}
END_TEST

static bool decodes_to(const char *json, struct str want)
{
    struct buf out;
    bool same = false;

    buf_init(&out, 1000);
    same = json_string_decode(str_from(json), &out) && str_eq(buf_str(&out), want);
    buf_free(&out);
    return same;
}

START_TEST(strings)
{
    struct buf out;

    ck_assert(decodes_to("\"\"", STR_NONE));
    ck_assert(decodes_to(" \"plain\" ", STR("plain")));
    ck_assert(decodes_to("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR("\"\\/\b\f\n\r\t")));
    ck_assert(decodes_to("\"\\u0041\\u00e9\\u4e2D\\uD83D\\ude00!\"",
                         STR("A\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80!")));
    ck_assert(decodes_to("\"a\\u0000b\"", (struct str){"a\0b", 3}));
    buf_init(&out, 1000);
    ck_assert(!json_string_decode(STR("5"), &out));
    ck_assert(!json_string_decode(STR("\"a\" 1"), &out));
    ck_assert(!json_string_decode(STR("\"a"), &out));
    ck_assert(!json_string_decode(STR("[]"), &out));
    ck_assert_uint_eq(out.len, 0);
    buf_free(&out);
}
END_TEST

START_TEST(members)
{
    struct str v = STR_NONE;
    struct str object = STR(" {\"a\": [1, {\"b\":2}] , \"b\" :\"x\",\"\\u0063\":{}, \"a\":null}");

    ck_assert(json_member(object, STR("b"), &v));
    ck_assert(str_is(v, "\"x\"")); /* of this object, not of one inside it */
    ck_assert(json_member(object, STR("c"), &v));
    ck_assert(str_is(v, "{}"));
    ck_assert(json_member(object, STR("a"), &v));
    ck_assert(str_is(v, "null")); /* the last one */
    v = STR("kept");
    ck_assert(!json_member(object, STR("d"), &v));
    ck_assert(!json_member(object, STR(""), &v));
    ck_assert(!json_member(STR("[\"a\",1]"), STR("a"), &v));
    ck_assert(!json_member(STR("5"), STR("a"), &v));
    ck_assert(!json_member(STR_NONE, STR("a"), &v));
    ck_assert(str_is(v, "kept"));
    ck_assert(json_member(STR("{\"\":1}"), STR_NONE, &v));
    ck_assert(str_is(v, "1"));
    ck_assert(json_member(STR("{\"\\ud83d\\ude00\":7}"), STR("\xf0\x9f\x98\x80"), &v));
    ck_assert(str_is(v, "7"));
}
END_TEST

START_TEST(slices)
{
    static const char *const want[] = {"1", "\"a,]\"", "[2,[3]]", "{\"x\":[4]}", "null"};
    struct str array = STR("[ 1 ,\"a,]\", [2,[3]]\n,{\"x\":[4]},null ]");
    struct json_each e = {0};
    struct json_each o = {0};
    struct json_each none = {0};
    struct json_token key;
    struct str v;
    size_t n = 0;

    for (; json_array_next(&e, array, &v); n++)
        ck_assert_msg(n < ARRAY_LEN(want) && str_is(v, want[n]), "%zu: " STR_FMT, n, STR_ARG(v));
    ck_assert_uint_eq(n, ARRAY_LEN(want));
    ck_assert(!json_array_next(&none, STR("[]"), &v));

    for (n = 0; json_object_next(&o, STR("{\"a\":1 , \"\\n\": [2] }"), &key, &v); n++) {
        ck_assert(json_string_is(&key, n == 0 ? STR("a") : STR("\n")));
        ck_assert(!json_string_is(&key, STR("b")));
        ck_assert(str_is(v, n == 0 ? "1" : "[2]"));
    }
    ck_assert_uint_eq(n, 2);
    none = (struct json_each){0};
    ck_assert(!json_object_next(&none, STR("[1]"), &key, &v));
    none = (struct json_each){0};
    ck_assert(!json_array_next(&none, STR("{\"a\":1}"), &v));
}
END_TEST

START_TEST(kinds)
{
    ck_assert_int_eq(json_kind_of(STR(" [")), JSON_TOKEN_BEGIN_ARRAY);
    ck_assert_int_eq(json_kind_of(STR("{}")), JSON_TOKEN_BEGIN_OBJECT);
    ck_assert_int_eq(json_kind_of(STR("\"x\"")), JSON_TOKEN_STRING);
    ck_assert_int_eq(json_kind_of(STR("-1.5")), JSON_TOKEN_NUMBER);
    ck_assert_int_eq(json_kind_of(STR("null")), JSON_TOKEN_NULL);
    ck_assert_int_eq(json_kind_of(STR("x")), JSON_TOKEN_ERROR);
    ck_assert_int_eq(json_kind_of(STR_NONE), JSON_TOKEN_ERROR);
}
END_TEST

START_TEST(skipping)
{
    struct json_reader j;
    struct json_token t;

    json_begin(&j, STR("[{\"a\":[1,2,{}]},3]"), 128);
    t = json_next(&j);
    t = json_next(&j);
    ck_assert_int_eq(t.kind, JSON_TOKEN_BEGIN_OBJECT);
    ck_assert(json_skip(&j, &t));
    t = json_next(&j);
    ck_assert(t.kind == JSON_TOKEN_NUMBER && str_is(t.text, "3"));
    ck_assert(json_skip(&j, &t)); /* a scalar is passed already */
    ck_assert_int_eq(json_next(&j).kind, JSON_TOKEN_END_ARRAY);

    json_begin(&j, STR("[1,x]"), 128);
    t = json_next(&j);
    ck_assert(!json_skip(&j, &t));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_json_read");
    TCase *t = tcase_create("reader");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, whole_documents);
    tcase_add_test(t, refusals);
    tcase_add_test(t, prefixes);
    tcase_add_test(t, places);
    tcase_add_test(t, depth);
    tcase_add_test(t, strings);
    tcase_add_test(t, members);
    tcase_add_test(t, slices);
    tcase_add_test(t, kinds);
    tcase_add_test(t, skipping);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
