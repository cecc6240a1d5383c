/*
 * Bodies of generic requests (docs/PROTOCOL.md sections 5 and 16).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "codec/invoke.h"

#define PREFIX                                                                                     \
    "05322e302e321b64656d6f2e73616d706c652e6170692e526963685365727669636505302e302e300724696e766f" \
    "6b6530384c6a6176612f6c616e672f537472696e673b5b4c6a6176612f6c616e672f537472696e673b5b4c6a6176" \
    "612f6c616e672f4f626a6563743b"

static const struct args_opts opts = {.max_depth = 128};
static struct args_error error;
static struct arena arena;
static struct buf out;

static void up(void)
{
    arena_init(&arena);
    buf_init(&out, 65536);
}

static void down(void)
{
    arena_free(&arena);
    buf_free(&out);
}

static struct arg arg(const char *type, const char *json)
{
    struct jtype *t = NULL;
    struct err e = {0};

    if (type != NULL) {
        t = arena_alloc(&arena, sizeof(*t));
        ck_assert_msg(jtype_parse(str_from(type), &arena, t, &e), "%s", e.text);
    }
    return (struct arg){.json = str_from(json), .type = t};
}

static void check_bytes(const char *want)
{
    char *hex = malloc(2 * out.len + 1);

    ck_assert_ptr_nonnull(hex);
    hex[0] = '\0';
    for (size_t i = 0; i < out.len; i++)
        snprintf(hex + 2 * i, 3, "%02x", out.data[i]);
    ck_assert_str_eq(hex, want);
    free(hex);
}

/* The smallest request, as recorded. */
START_TEST(no_arguments)
{
    invoke_prefix(STR("demo.sample.api.RichService"), STR_NONE, &out);
    ck_assert_int_eq(invoke_middle(STR("noArgs"), NULL, 0, &opts, &out, &error), ARGS_OK);
    invoke_attachments_begin(&out);
    ck_assert(invoke_attachment(STR("generic"), STR("true"), &out));
    invoke_attachments_end(&out);
    check_bytes(PREFIX "066e6f41726773"
                       "70075b737472696e67"
                       "70075b6f626a656374"
                       "480767656e65726963"
                       "04747275655a");
}
END_TEST

/* One text, as recorded. */
START_TEST(one_text)
{
    const struct arg a = arg("java.lang.String", "\"h\xc3\xa9\\ud83d\\ude00\"");

    invoke_prefix(STR("demo.sample.api.RichService"), STR("0.0.0"), &out);
    ck_assert_int_eq(invoke_middle(STR("echoString"), &a, 1, &opts, &out, &error), ARGS_OK);
    invoke_attachments_begin(&out);
    ck_assert(invoke_attachment(STR("generic"), STR("true"), &out));
    invoke_attachments_end(&out);
    check_bytes(PREFIX "0a6563686f537472696e67"
                       "71075b737472696e67106a6176612e6c616e672e537472696e67"
                       "71075b6f626a656374"
                       "0468c3a9eda0bdedb880"
                       "480767656e6572696304747275655a");
}
END_TEST

START_TEST(version_and_names)
{
    invoke_prefix(STR("a.B"), STR("1.2"), &out);
    ck_assert_mem_eq(out.data,
                     "\x05"
                     "2.0.2\x03"
                     "a.B\x03"
                     "1.2\x07$invoke",
                     6 + 4 + 4 + 8);
}
END_TEST

/* Without all types the provider looks the method up by name: field 7 is null. */
START_TEST(types_are_all_or_none)
{
    const struct arg args[2] = {arg("long", "1"), arg(NULL, "1")};

    ck_assert_int_eq(invoke_middle(STR("m"), args, 2, &opts, &out, &error), ARGS_OK);
    check_bytes("016d4e72075b6f626a656374e191");
    buf_truncate(&out, 0);
    ck_assert_int_eq(invoke_middle(STR("m"), args, 1, &opts, &out, &error), ARGS_OK);
    check_bytes("016d71075b737472696e67046c6f6e6771075b6f626a656374e1");
}
END_TEST

START_TEST(eight_arguments_and_more)
{
    struct arg args[9];

    for (size_t i = 0; i < ARRAY_LEN(args); i++)
        args[i] = arg("int", "0");
    ck_assert_int_eq(invoke_middle(STR("m"), args, 9, &opts, &out, &error), ARGS_OK);
    ck_assert_mem_eq(out.data, "\x01mV\x07[string\x99\x03int", 2 + 1 + 8 + 1 + 4);
    ck_assert_mem_eq(out.data + out.len - 9 - 10, "V\x07[object\x99\x90", 11);
}
END_TEST

/* A class that two arguments use is defined once: the tables run through the whole body. */
START_TEST(definitions_span_arguments)
{
    const struct arg args[2] = {arg("java.sql.Date", "0"), arg("java.sql.Date", "0")};

    ck_assert_int_eq(invoke_middle(STR("m"), args, 2, &opts, &out, &error), ARGS_OK);
    ck_assert_mem_eq(out.data + out.len - 12, "\x60\x4b\0\0\0\0\x60\x4b\0\0\0\0", 12);
}
END_TEST

START_TEST(errors_name_the_argument)
{
    const struct arg args[3] = {arg("int", "1"), arg("int[]", "[1,2,\"x\"]"), arg("int", "2")};
    struct arg broken[2] = {arg(NULL, "{\"a\":{}}"), arg(NULL, "{\"a\":1,\"a\":2}")};

    buf_add_u8(&out, '!');
    ck_assert_int_eq(invoke_middle(STR("m"), args, 3, &opts, &out, &error), ARGS_BAD_ARGUMENT);
    ck_assert_uint_eq(error.arg, 1);
    ck_assert_str_eq(error.pointer, "/2");
    ck_assert_str_eq(error.detail, "\"x\" is not a int");
    check_bytes("21");
    /* keys of one argument do not count for the next */
    ck_assert_int_eq(invoke_middle(STR("m"), broken, 2, &opts, &out, &error), ARGS_BAD_JSON);
    ck_assert_uint_eq(error.arg, 1);
    broken[1] = broken[0];
    ck_assert_int_eq(invoke_middle(STR("m"), broken, 2, &opts, &out, &error), ARGS_OK);
}
END_TEST

START_TEST(limit_of_the_output)
{
    const struct arg a = arg("java.lang.String", "\"0123456789\"");
    struct buf small;

    for (size_t limit = 0; limit < 64; limit++) {
        enum args_result r = ARGS_OK;

        buf_init(&small, limit);
        r = invoke_middle(STR("m"), &a, 1, &opts, &small, &error);
        if (r == ARGS_OK) {
            ck_assert_uint_le(small.len, limit);
            ck_assert_uint_eq(small.len, 2 + 26 + 9 + 11);
        } else {
            ck_assert_int_eq(r, ARGS_TOO_LARGE);
            ck_assert(small.len == 0 && error.result == r && error.detail[0] != '\0');
        }
        ck_assert_int_eq(r == ARGS_OK, limit >= 2 + 26 + 9 + 11);
        buf_free(&small);
    }
}
END_TEST

START_TEST(attachments)
{
    invoke_attachments_begin(&out);
    ck_assert(!invoke_attachment(STR("a"), STR("\xff"), &out));
    ck_assert(!invoke_attachment(STR("\xed\xa0\x80"), STR("x"), &out));
    ck_assert(invoke_attachment(STR("a"), STR_NONE, &out));
    ck_assert(invoke_attachment(STR("\xc3\xa9"), STR("\xf0\x9f\x98\x80"), &out));
    invoke_attachments_end(&out);
    check_bytes("4801610001c3a902eda0bdedb8805a");
}
END_TEST

START_TEST(attachments_are_found_again)
{
    static char longer[3000];
    struct str value;

    memset(longer, 'x', sizeof(longer));
    ck_assert(!invoke_attachment_find(STR_NONE, STR("a"), &value));
    ck_assert(invoke_attachment(STR("a"), STR_NONE, &out));
    ck_assert(invoke_attachment(STR("\xc3\xa9"), STR("\xf0\x9f\x98\x80z"), &out));
    ck_assert(invoke_attachment(STR("m"), (struct str){longer, 500}, &out));
    ck_assert(invoke_attachment(STR("l"), (struct str){longer, 3000}, &out));
    ck_assert(invoke_attachment(STR("dubbo.tag"), STR("gray"), &out));
    struct str all = buf_str(&out);

    ck_assert(invoke_attachment_find(all, STR("a"), &value) && value.n == 0);
    ck_assert(invoke_attachment_find(all, STR("\xc3\xa9"), &value) && value.n == 7);
    ck_assert(invoke_attachment_find(all, STR("m"), &value) && value.n == 500);
    ck_assert(invoke_attachment_find(all, STR("l"), &value) && value.n == 3000);
    ck_assert(invoke_attachment_find(all, STR("dubbo.tag"), &value) && str_is(value, "gray"));
    ck_assert(!invoke_attachment_find(all, STR("gray"), &value)); /* a value is no name */
    for (size_t n = 0; n < all.n; n++) /* cut anywhere: no byte behind the end is read */
        ck_assert(!invoke_attachment_find(str_sub(all, 0, n), STR("dubbo.tag"), &value));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_invoke");
    TCase *t = tcase_create("bodies");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_checked_fixture(t, up, down);
    tcase_add_test(t, no_arguments);
    tcase_add_test(t, one_text);
    tcase_add_test(t, version_and_names);
    tcase_add_test(t, types_are_all_or_none);
    tcase_add_test(t, eight_arguments_and_more);
    tcase_add_test(t, definitions_span_arguments);
    tcase_add_test(t, errors_name_the_argument);
    tcase_add_test(t, limit_of_the_output);
    tcase_add_test(t, attachments);
    tcase_add_test(t, attachments_are_found_again);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
