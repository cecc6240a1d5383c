/*
 * Java type names as people write them (docs/PROTOCOL.md section 5, docs/OPERATIONS.md section 1.4 E-type).
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "codec/jtype.h"

static struct arena arena;
static struct err error;

static void up(void)
{
    arena_init(&arena);
}

static void down(void)
{
    arena_free(&arena);
}

static bool parse(const char *text, struct jtype *t)
{
    error = (struct err){0};
    return jtype_parse(str_from(text), &arena, t, &error);
}

START_TEST(kinds)
{
    static const struct {
        const char *text;
        enum jtype_kind kind;
        bool primitive;
    } rows[] = {
        {"boolean", JTYPE_BOOLEAN, true},
        {"byte", JTYPE_BYTE, true},
        {"short", JTYPE_SHORT, true},
        {"int", JTYPE_INT, true},
        {"long", JTYPE_LONG, true},
        {"float", JTYPE_FLOAT, true},
        {"double", JTYPE_DOUBLE, true},
        {"char", JTYPE_CHAR, true},
        {"java.lang.Boolean", JTYPE_BOOLEAN, false},
        {"java.lang.Byte", JTYPE_BYTE, false},
        {"java.lang.Short", JTYPE_SHORT, false},
        {"java.lang.Integer", JTYPE_INT, false},
        {"java.lang.Long", JTYPE_LONG, false},
        {"java.lang.Float", JTYPE_FLOAT, false},
        {"java.lang.Double", JTYPE_DOUBLE, false},
        {"java.lang.Character", JTYPE_CHAR, false},
        {"java.lang.String", JTYPE_STRING, false},
        {"java.lang.CharSequence", JTYPE_STRING, false},
        {"java.lang.Number", JTYPE_NUMBER, false},
        {"java.math.BigDecimal", JTYPE_BIG_DECIMAL, false},
        {"java.math.BigInteger", JTYPE_BIG_INTEGER, false},
        {"java.util.Date", JTYPE_DATE, false},
        {"java.sql.Timestamp", JTYPE_VALUE, false},
        {"java.time.ZonedDateTime", JTYPE_VALUE, false},
        {"java.util.UUID", JTYPE_VALUE, false},
        {"java.lang.Object", JTYPE_OBJECT, false},
        {"java.util.List", JTYPE_LIST, false},
        {"java.util.HashSet", JTYPE_LIST, false},
        {"java.util.concurrent.ConcurrentMap", JTYPE_MAP, false},
        {"java.util.Queue", JTYPE_UNSUPPORTED, false},
        {"java.util.Optional", JTYPE_UNSUPPORTED, false},
        {"demo.sample.api.Person", JTYPE_OTHER, false},
        {"a.B$C", JTYPE_OTHER, false},
        {"a.b_1.$x", JTYPE_OTHER, false},
    };
    struct jtype t;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ck_assert_msg(parse(rows[i].text, &t), "%s: %s", rows[i].text, error.text);
        ck_assert_int_eq(t.kind, rows[i].kind);
        ck_assert_int_eq(t.primitive, rows[i].primitive);
        ck_assert_uint_eq(t.dims, 0);
        ck_assert_ptr_null(t.element);
        ck_assert(str_is(t.name, rows[i].text));
    }
    ck_assert(parse(" int ", &t) && str_is(t.name, "int"));
}
END_TEST

START_TEST(arrays)
{
    static const struct {
        const char *text;
        const char *name;
        const char *innermost;
        unsigned dims;
        enum jtype_kind kind;
    } rows[] = {
        {"int[]", "int[]", "int", 1, JTYPE_INT},
        {"[I", "int[]", "int", 1, JTYPE_INT},
        {"[[Z", "boolean[][]", "boolean", 2, JTYPE_BOOLEAN},
        {"[Ljava.lang.String;", "java.lang.String[]", "java.lang.String", 1, JTYPE_STRING},
        {"java.lang.String...", "java.lang.String[]", "java.lang.String", 1, JTYPE_STRING},
        {"int[]...", "int[][]", "int", 2, JTYPE_INT},
        {"demo.Person[][][]", "demo.Person[][][]", "demo.Person", 3, JTYPE_OTHER},
        {"byte[]", "byte[]", "byte", 1, JTYPE_BYTE},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jtype t;
        const struct jtype *e = &t;

        ck_assert_msg(parse(rows[i].text, &t), "%s: %s", rows[i].text, error.text);
        ck_assert_int_eq(t.kind, JTYPE_ARRAY);
        ck_assert_uint_eq(t.dims, rows[i].dims);
        ck_assert_msg(str_is(t.name, rows[i].name), STR_FMT, STR_ARG(t.name));
        for (unsigned d = rows[i].dims; d > 0; d--) {
            ck_assert_int_eq(e->kind, JTYPE_ARRAY);
            ck_assert(!e->primitive);
            e = e->element;
            ck_assert_ptr_nonnull(e);
        }
        ck_assert_int_eq(e->kind, rows[i].kind);
        ck_assert(str_is(e->name, rows[i].innermost));
    }
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"Long", "\"Long\" is not a full Java type; did you mean \"java.lang.Long\"?"},
        {"string", "did you mean \"java.lang.String\"?"},
        {"Intger", "did you mean \"java.lang.Integer\"?"},
        {"Integer", "did you mean \"java.lang.Integer\"?"},
        {"BigDecimal", "did you mean \"java.math.BigDecimal\"?"},
        {"Date", "did you mean"},
        {"LocalDate", "did you mean \"java.time.LocalDate\"?"},
        {"java.util.List<X>", "leave the type arguments out; write java.util.List"},
        {"Ljava/lang/String;", "is a JVM descriptor"},
        {"Ljava.lang.String;", "is a JVM descriptor"},
        {"I", "is not a full Java type"},
        {"[", "\"[\""},
        {"[X", "\"[X\""},
        {"[Lint", "\"[Lint\""},
        {"", "missing"},
        {"   ", "missing"},
        {"a..b", "a..b"},
        {".a", ".a"},
        {"a.", "a."},
        {"a.1b", "a.1b"},
        {"java lang.String", "java lang.String"},
        {"java.lang.String,int", "java.lang.String,int"},
        {"java.lang.String\n", NULL}, /* blanks around are cut */
        {"a-b.C", "a-b.C"},
        {"int[", "int["},
        {"[]", "[]"},
        {"...", "..."},
        {"int[][][][][][][][][][][][][][][][][]", "int[]"},
    };
    struct jtype t;
    char longest[600];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool ok = parse(rows[i].text, &t);

        ck_assert_msg(ok == (rows[i].says == NULL), "%s", rows[i].text);
        ck_assert_msg(rows[i].says == NULL || strstr(error.text, rows[i].says) != NULL, "%s: %s",
                      rows[i].text, error.text);
    }
    memset(longest, 'a', sizeof(longest) - 1);
    longest[1] = '.';
    longest[sizeof(longest) - 1] = '\0';
    ck_assert(!parse(longest, &t));
    longest[512] = '\0';
    ck_assert(parse(longest, &t));
    ck_assert_uint_eq(t.name.n, 512);
}
END_TEST

START_TEST(texts_are_copied)
{
    char text[] = "demo.Person[]";
    struct jtype t;

    ck_assert(parse(text, &t));
    memset(text, 'x', sizeof(text) - 1);
    ck_assert(str_is(t.name, "demo.Person[]"));
    ck_assert(str_is(t.element->name, "demo.Person"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_jtype");
    TCase *t = tcase_create("types");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_checked_fixture(t, up, down);
    tcase_add_test(t, kinds);
    tcase_add_test(t, arrays);
    tcase_add_test(t, refusals);
    tcase_add_test(t, texts_are_copied);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
