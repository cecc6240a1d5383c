/*
 * Results of groups put together.
 */
#include <stdarg.h>
#include <stdlib.h>

#include <check.h>

#include "gateway/merge.h"

#include "tests/unit/gateway_kit.h"

/* "~" stands for a result that was null. */
static const char *merged(size_t n, ...)
{
    static char text[4096];
    struct buf out = {.data = (uint8_t *)text, .cap = sizeof(text), .limit = sizeof(text)};
    struct str texts[8];
    struct arena a;
    enum merge_result r = MERGE_OK;
    va_list ap;

    arena_init(&a);
    va_start(ap, n);
    for (size_t i = 0; i < n; i++) {
        texts[i] = str_from(va_arg(ap, const char *));
        if (str_is(texts[i], "~"))
            texts[i] = STR_NONE;
    }
    va_end(ap);
    buf_add_u8(&out, '!'); /* what was there before stays */
    r = merge_json(texts, n, &a, &out);
    arena_free(&a);
    text[out.len] = '\0';
    ck_assert_int_eq(text[0], '!');
    ck_assert(r == MERGE_OK || out.len == 1);
    return r == MERGE_NULL ? "NULL" : r == MERGE_MISMATCH ? "MISMATCH" : text + 1;
}

START_TEST(lists)
{
    ck_assert_str_eq(merged(3, "[1,2]", "[]", "[{\"a\":[3]},null]"), "[1,2,{\"a\":[3]},null]");
    ck_assert_str_eq(merged(2, " [ ] ", "[ 1 ]"), "[1]");
    ck_assert_str_eq(merged(2, "[]", "[]"), "[]");
    ck_assert_str_eq(merged(2, "[1]", "[1]"), "[1,1]"); /* a set cannot be told from a list */
}
END_TEST

START_TEST(objects)
{
    ck_assert_str_eq(merged(2, "{\"a\":1,\"b\":{\"x\":1}}", "{\"c\":[2],\"b\":{\"y\":2}}"),
                     "{\"a\":1,\"c\":[2],\"b\":{\"y\":2}}");
    ck_assert_str_eq(merged(3, "{}", "{\"a\":1}", "{\"a\":null}"), "{\"a\":null}");
    ck_assert_str_eq(merged(2, "{}", "{ }"), "{}");
    ck_assert_str_eq(merged(2, "{\"a\":1,\"a\":2}", "{\"a\\n\":3}"), "{\"a\":2,\"a\\n\":3}");
}
END_TEST

START_TEST(nulls_and_single_ones)
{
    ck_assert_str_eq(merged(2, "~", "~"), "NULL");
    ck_assert_str_eq(merged(2, "null", "~"), "NULL");
    ck_assert_str_eq(merged(3, "~", "[1]", "null"), "[1]");
    ck_assert_str_eq(merged(2, "~", "7"), "7");
    ck_assert_str_eq(merged(1, "\"x\""), "\"x\"");
}
END_TEST

START_TEST(what_cannot_be_merged)
{
    ck_assert_str_eq(merged(2, "1", "2"), "MISMATCH");
    ck_assert_str_eq(merged(2, "[1]", "{}"), "MISMATCH");
    ck_assert_str_eq(merged(3, "[1]", "~", "\"x\""), "MISMATCH");
}
END_TEST

START_TEST(many_members)
{
    enum { N = 20000 };
    struct buf one;
    struct buf two;
    struct buf out;
    struct arena a;

    arena_init(&a);
    buf_init(&one, 1 << 20);
    buf_init(&two, 1 << 20);
    buf_init(&out, 1 << 20);
    for (unsigned i = 0; i < N; i++) {
        buf_printf(&one, "%c\"k%u\":1", i == 0 ? '{' : ',', i);
        buf_printf(&two, "%c\"k%u\":2", i == 0 ? '{' : ',', i * 2);
    }
    buf_add_u8(&one, '}');
    buf_add_u8(&two, '}');
    const struct str texts[] = {buf_str(&one), buf_str(&two)};

    ck_assert_int_eq(merge_json(texts, 2, &a, &out), MERGE_OK);
    ck_assert(str_starts(buf_str(&out), STR("{\"k1\":1,\"k3\":1,")));
    ck_assert(str_ends(buf_str(&out), STR(",\"k39996\":2,\"k39998\":2}")));
    buf_free(&one);
    buf_free(&two);
    buf_free(&out);
    arena_free(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_merge");
    TCase *t = tcase_create("merge");

    tcase_add_test(t, lists);
    tcase_add_test(t, objects);
    tcase_add_test(t, nulls_and_single_ones);
    tcase_add_test(t, what_cannot_be_merged);
    tcase_add_test(t, many_members);
    suite_add_tcase(s, t);
    return kit_run(s);
}
