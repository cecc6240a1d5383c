#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "gateway/overload.h"

static const char node[] =
    "{\"methods\":["
    "{\"name\":\"over\",\"parameterTypes\":[\"java.lang.String\"],\"returnType\":\"float\"},"
    "{\"name\":\"over\",\"parameterTypes\":[\"int\"],\"returnType\":\"java.lang.String\"},"
    "{\"name\":\"over\",\"parameterTypes\":[\"java.lang.Integer\",\"java.lang.String\"],\"returnType\":\"void\"},"
    "{\"name\":\"num\",\"parameterTypes\":[\"long\"],\"returnType\":\"void\"},"
    "{\"name\":\"num\",\"parameterTypes\":[\"java.lang.Long\"],\"returnType\":\"void\"},"
    "{\"name\":\"num\",\"parameterTypes\":[\"double\"],\"returnType\":\"void\"},"
    "{\"name\":\"num\",\"parameterTypes\":[\"java.lang.Object\"],\"returnType\":\"void\"},"
    "{\"name\":\"pojo\",\"parameterTypes\":[\"a.Cat\"],\"returnType\":\"void\"},"
    "{\"name\":\"pojo\",\"parameterTypes\":[\"a.Dog\"],\"returnType\":\"void\"},"
    "{\"name\":\"pojo\",\"parameterTypes\":[\"a.Color\"],\"returnType\":\"void\"},"
    "{\"name\":\"list\",\"parameterTypes\":[\"java.util.List<java.lang.Long>\"],\"returnType\":\"void\"},"
    "{\"name\":\"list\",\"parameterTypes\":[\"java.lang.String[]\"],\"returnType\":\"void\"},"
    "{\"name\":\"same\",\"parameterTypes\":[\"java.util.List<java.lang.Long>\"],\"returnType\":\"void\"},"
    "{\"name\":\"same\",\"parameterTypes\":[\"java.util.Set<java.lang.Long>\"],\"returnType\":\"void\"},"
    "{\"name\":\"one\",\"parameterTypes\":[\"int\"],\"returnType\":\"void\"},"
    "{\"name\":\"none\",\"parameterTypes\":[],\"returnType\":\"void\"}],"
    "\"types\":[{\"type\":\"a.Cat\",\"properties\":{\"name\":\"java.lang.String\",\"lives\":\"int\"}},"
    "{\"type\":\"a.Dog\",\"properties\":{\"name\":\"java.lang.String\",\"bark\":\"byte[]\"}},"
    "{\"type\":\"a.Color\",\"properties\":{},\"enums\":[\"RED\",\"GREEN\"]}]}";

static struct definition *d;

static void setup(void)
{
    struct err e = {0};

    d = definition_read(str_from(node), &e);
    ck_assert_msg(d != NULL, "%s", e.text);
}

static void teardown(void)
{
    definition_put(d);
}

static const char *chosen_of(const char *method, const struct arg *args, size_t n)
{
    static char text[128];
    const struct signature *first = NULL;
    const struct signature *s = NULL;
    size_t found = signatures_named(signatures_of(d), str_from(method), &first);

    ck_assert_uint_gt(found, 0);
    switch (overload_choose(first, found, args, n, &s)) {
    case OVERLOAD_OK:
        snprintf(text, sizeof(text), STR_FMT, STR_ARG(s->text));
        return text;
    case OVERLOAD_ARITY:
        return "arity";
    case OVERLOAD_NO_FIT:
        return "no fit";
    case OVERLOAD_AMBIGUOUS:
        return "ambiguous";
    }
    return "";
}

static const char *chosen(const char *method, const char *json)
{
    const struct arg arg = {.json = str_from(json)};

    return chosen_of(method, &arg, 1);
}

START_TEST(one_argument)
{
    static const char *const rows[][3] = {
        {"over", "\"m\"", "over(java.lang.String)"},
        {"over", "5", "over(int)"},
        {"over", "5000000000", "no fit"},
        {"over", "true", "no fit"},
        {"over", "null", "over(java.lang.String)"},
        {"over", " 5 ", "over(int)"},
        {"num", "5", "num(long)"},
        {"num", "5.5", "num(double)"},
        {"num", "1e3", "num(double)"},
        {"num", "null", "num(java.lang.Long)"},
        {"num", "true", "num(java.lang.Object)"},
        {"num", "\"x\"", "num(java.lang.Object)"},
        {"num", "[1]", "num(java.lang.Object)"},
        {"pojo", "{\"name\":\"a\",\"lives\":9}", "pojo(a.Cat)"},
        {"pojo", "{\"name\":\"a\",\"bark\":\"AA==\"}", "pojo(a.Dog)"},
        {"pojo", "{\"name\":\"a\"}", "ambiguous"},
        {"pojo", "{}", "ambiguous"},
        {"pojo", "\"GREEN\"", "pojo(a.Color)"},
        {"pojo", "\"BLUE\"", "no fit"},
        {"list", "[1,2]", "list(java.util.List)"},
        {"list", "[\"a\"]", "list(java.lang.String[])"},
        {"list", "[]", "ambiguous"},
        {"same", "[1]", "ambiguous"},
        {"same", "1", "no fit"},
        {"one", "\"7\"", "one(int)"},
        {"one", "{}", "one(int)"},
        {"none", "1", "arity"},
        {"over", "{", "no fit"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *got = chosen(rows[i][0], rows[i][1]);

        ck_assert_msg(strcmp(got, rows[i][2]) == 0, "%s %s: got %s, want %s", rows[i][0],
                      rows[i][1], got, rows[i][2]);
    }
}
END_TEST

START_TEST(number_of_arguments)
{
    const struct arg two[] = {{.json = STR("5")}, {.json = STR("\"w\"")}, {.json = STR("1")}};

    ck_assert_str_eq(chosen_of("over", two, 2), "over(java.lang.Integer,java.lang.String)");
    ck_assert_str_eq(chosen_of("over", two, 3), "arity");
    ck_assert_str_eq(chosen_of("over", two, 0), "arity");
    ck_assert_str_eq(chosen_of("none", two, 0), "none()");
}
END_TEST

START_TEST(given_types_decide)
{
    struct arena a;
    struct err e;
    struct jtype t;
    struct arg arg = {.json = STR("5"), .type = &t};

    arena_init(&a);
    ck_assert(jtype_parse(STR("java.lang.Long"), &a, &t, &e));
    ck_assert_str_eq(chosen_of("num", &arg, 1), "num(java.lang.Long)");
    ck_assert_str_eq(chosen_of("over", &arg, 1), "arity");
    arena_free(&a);
}
END_TEST

/* The table of docs/REGISTRY.md section 7.4, in tenths. */
START_TEST(scores)
{
    static const struct {
        const char *type, *json;
        unsigned want;
    } rows[] = {
        {"java.lang.String", "null", 10},
        {"java.lang.Object", "null", 1},
        {"int", "null", 0},
        {"java.lang.String", "\"a\"", 50},
        {"char", "\"a\"", 30},
        {"char", "\"ab\"", 0},
        {"java.util.Date", "\"2020-02-29\"", 20},
        {"java.util.Date", "\"x\"", 0},
        {"java.math.BigDecimal", "\"1.5\"", 10},
        {"java.math.BigDecimal", "\"x\"", 0},
        {"long", "\"15\"", 10},
        {"java.lang.Object", "\"a\"", 10},
        {"long", "1", 50},
        {"int", "1", 40},
        {"java.lang.Long", "1", 40},
        {"java.lang.Integer", "1", 30},
        {"int", "2147483648", 0},
        {"short", "32768", 0},
        {"short", "1", 20},
        {"byte", "127", 20},
        {"byte", "128", 0},
        {"double", "1", 20},
        {"java.math.BigInteger", "1", 20},
        {"java.util.Date", "1", 10},
        {"java.lang.String", "1", 0},
        {"java.lang.Object", "1", 10},
        {"double", "1.5", 50},
        {"java.lang.Double", "1.5", 40},
        {"float", "1.5", 30},
        {"java.math.BigDecimal", "1.5", 30},
        {"long", "1.5", 0},
        {"boolean", "true", 50},
        {"java.lang.Boolean", "true", 40},
        {"java.lang.String", "true", 0},
        {"java.util.Map", "{}", 30},
        {"java.lang.Object", "{}", 10},
        {"int", "{}", 0},
        {"int[]", "[1,2]", 40},
        {"int[]", "[\"a\"]", 0},
        {"java.util.Set", "[{}]", 40},
        {"java.lang.Object", "[]", 10},
        {"java.lang.String", "[]", 0},
    };
    struct arena a;
    struct err e;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jtype t;

        ck_assert(jtype_parse(str_from(rows[i].type), &a, &t, &e));
        unsigned got = overload_score(&t, str_from(rows[i].json));

        ck_assert_msg(got == rows[i].want, "%s %s: got %u, want %u", rows[i].type, rows[i].json,
                      got, rows[i].want);
    }
    arena_free(&a);
}
END_TEST

START_TEST(tables_are_made_once)
{
    const struct signatures *s = signatures_of(d);
    const struct signature *first = NULL;

    ck_assert_ptr_eq(s, signatures_of(d));
    ck_assert_uint_eq(signatures_named(s, STR("over"), &first), 3);
    ck_assert(first[0].returns_float != first[1].returns_float);
    ck_assert_uint_eq(signatures_named(s, STR("nothing"), &first), 0);
    ck_assert_uint_eq(signatures_named(s, STR(""), &first), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_overload");
    TCase *t = tcase_create("overload");
    SRunner *r = NULL;
    int failed = 0;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, one_argument);
    tcase_add_test(t, number_of_arguments);
    tcase_add_test(t, given_types_decide);
    tcase_add_test(t, scores);
    tcase_add_test(t, tables_are_made_once);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
