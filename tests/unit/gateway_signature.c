#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "codec/json_args.h"
#include "gateway/signature.h"

static const char node[] =
    "{\"methods\":["
    "{\"name\":\"put\",\"parameterTypes\":[\"a.Person\"],\"returnType\":\"void\"},"
    "{\"name\":\"list\",\"parameterTypes\":[\"java.util.List<java.lang.String>\"],\"returnType\":\"void\"},"
    "{\"name\":\"lists\",\"parameterTypes\":[\"java.util.List<a.Person>[]\"],\"returnType\":\"void\"},"
    "{\"name\":\"map\",\"parameterTypes\":[\"java.util.Map<java.lang.Long,java.util.List<byte[]>>\"],"
    "\"returnType\":\"java.lang.Float\"},"
    "{\"name\":\"tree\",\"parameterTypes\":[\"java.util.TreeMap<java.lang.String,java.util.Date>\"],"
    "\"returnType\":\"void\"},"
    "{\"name\":\"box\",\"parameterTypes\":[\"a.Box<a.Person>\"],\"returnType\":\"void\"}],"
    "\"types\":[{\"type\":\"a.Person\",\"properties\":{\"name\":\"java.lang.String\",\"age\":\"int\","
    "\"birthday\":\"java.util.Date\",\"at\":\"java.time.LocalDateTime\",\"photo\":\"byte[]\","
    "\"balance\":\"java.math.BigDecimal\",\"color\":\"a.Color\",\"parent\":\"a.Person\","
    "\"tags\":\"java.util.List<java.lang.String>\",\"queue\":\"java.util.Queue<java.lang.String>\","
    "\"byName\":\"java.util.Map<java.lang.String,a.Person>\",\"any\":\"java.lang.Object\"}},"
    "{\"type\":\"a.Box\",\"properties\":{\"data\":\"java.lang.Object\",\"n\":\"long\"}},"
    "{\"type\":\"a.Color\",\"enums\":[\"RED\"]}]}";

static struct definition *d;
static struct args_opts opts;
static struct args_error error;

static void setup(void)
{
    struct err e = {0};

    d = definition_read(str_from(node), &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    opts = (struct args_opts){.max_depth = 128};
}

static void teardown(void)
{
    definition_put(d);
}

static const struct jtype *parameter(const char *method)
{
    const struct signature *s = NULL;

    ck_assert_uint_eq(signatures_named(signatures_of(d), str_from(method), &s), 1);
    return &s->types[0];
}

static void append(const struct jtype *type, const char *json, struct buf *out)
{
    const struct arg arg = {.json = str_from(json), .type = type};

    ck_assert_msg(arg_encode(&arg, &opts, out, &error) == ARGS_OK, "%s: %s", json, error.detail);
}

/* The same bytes as these values, each by its type, inside a map. */
struct part {
    const char *type; /* NULL: natural value */
    const char *json;
};

static void expect_bytes(const struct jtype *type, const char *json, const char *head,
                         const struct part *parts, size_t n, const char *tail)
{
    struct arena a;
    struct buf got;
    struct buf want;
    struct err e;

    arena_init(&a);
    buf_init(&got, 1 << 20);
    buf_init(&want, 1 << 20);
    append(type, json, &got);
    buf_add(&want, head, strlen(head));
    for (size_t i = 0; i < n; i++) {
        struct jtype t;

        if (parts[i].type != NULL)
            ck_assert(jtype_parse(str_from(parts[i].type), &a, &t, &e));
        append(parts[i].type != NULL ? &t : NULL, parts[i].json, &want);
    }
    buf_add(&want, tail, strlen(tail));
    ck_assert_msg(got.len == want.len && memcmp(got.data, want.data, got.len) == 0, "%s", json);
    buf_free(&got);
    buf_free(&want);
    arena_free(&a);
}

START_TEST(properties_by_their_types)
{
    static const struct {
        const char *key, *type, *json;
    } rows[] = {
        {"name", "java.lang.String", "5"},
        {"age", "int", "\"41\""},
        {"birthday", "java.util.Date", "\"2018-01-29T12:00:00Z\""},
        {"at", "java.time.LocalDateTime", "\"2018-01-29T12:00:00\""},
        {"photo", "byte[]", "\"AQID/w==\""},
        {"balance", "java.math.BigDecimal", "10000000.00"},
        {"color", "java.lang.String", "\"RED\""},
        {"tags", "java.lang.String[]", "[1,true,\"x\"]"},
        {"any", NULL, "{\"birthday\":\"2018-01-29\"}"},
        {"queue", NULL, "[1]"},
        {"unknown", NULL, "5"},
        {"age", NULL, "null"}, /* the property stays as it is */
        {"birthday", NULL, "null"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char json[256];
        char key[64];

        snprintf(key, sizeof(key), "\"%s\"", rows[i].key);
        snprintf(json, sizeof(json), "{%s:%s}", key, rows[i].json);
        const struct part parts[] = {{NULL, key}, {rows[i].type, rows[i].json}};

        expect_bytes(parameter("put"), json, "H", parts, 2, "Z");
    }
}
END_TEST

START_TEST(nested_in_each_other)
{
    struct buf got;
    struct buf want;

    buf_init(&got, 4096);
    buf_init(&want, 4096);
    append(parameter("put"),
           "{\"parent\":{\"parent\":{\"age\":\"7\"}},\"byName\":{\"x\":{\"age\":\"7\"}}}", &got);
    append(NULL, "{\"parent\":{\"parent\":{\"age\":7}},\"byName\":{\"x\":{\"age\":7}}}", &want);
    ck_assert(got.len == want.len && memcmp(got.data, want.data, got.len) == 0);
    buf_truncate(&got, 0);
    buf_truncate(&want, 0);
    append(parameter("lists"), "[[{\"age\":\"7\"}],[null]]", &got);
    append(NULL, "[[{\"age\":7}],[null]]", &want);
    ck_assert(got.len == want.len && memcmp(got.data, want.data, got.len) == 0);
    buf_truncate(&got, 0);
    buf_truncate(&want, 0);
    append(parameter("list"), "[1,2.50,null]", &got);
    append(NULL, "[\"1\",\"2.50\",null]", &want);
    ck_assert(got.len == want.len && memcmp(got.data, want.data, got.len) == 0);
    buf_free(&got);
    buf_free(&want);
}
END_TEST

START_TEST(what_does_not_fit)
{
    static const char *const rows[][4] = {
        {"put", "{\"birthday\":\"x\"}", "/birthday", "java.util.Date"},
        {"put", "{\"photo\":\"no base 64!\"}", "/photo", "byte[]"},
        {"put", "{\"age\":1099511627776}", "/age", "int"},
        {"put", "{\"parent\":{\"age\":4.5}}", "/parent/age", "int"},
        {"put", "{\"color\":\"BLUE!\"}", "/color", "a.Color"},
        {"put", "{\"color\":{}}", "/color", "a.Color"},
        {"put", "{\"parent\":\"RED\"}", "/parent", "a.Person"},
        {"put", "{\"tags\":[{}]}", "/tags/0", "java.lang.String"},
        {"put", "{\"tags\":\"a\"}", "/tags", "java.util.List"},
        {"put", "{\"byName\":{\"x\":{\"age\":true}}}", "/byName/x/age", "int"},
        {"put", "{\"name\":\"a\",\"name\":\"b\"}", "/name", "twice"},
        {"put", "{\"parent\":{\"class\":\"x.Y\"}}", "/parent/class", "class"},
        {"map", "{\"1\":[\"AA==\",7]}", "/1/1", "byte[]"},
        {"list", "[[1]]", "/0", "java.lang.String"},
        {"box", "{\"n\":true}", "/n", "long"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct arg arg = {.json = str_from(rows[i][1]), .type = parameter(rows[i][0])};
        struct buf out;

        buf_init(&out, 4096);
        ck_assert_msg(arg_encode(&arg, &opts, &out, &error) != ARGS_OK, "%s", rows[i][1]);
        ck_assert_msg(strcmp(error.pointer, rows[i][2]) == 0, "%s: %s", rows[i][1], error.pointer);
        ck_assert_msg(strstr(error.detail, rows[i][3]) != NULL, "%s: %s", rows[i][1], error.detail);
        ck_assert_uint_eq(out.len, 0);
        buf_free(&out);
    }
}
END_TEST

/* The reader bounds the depth; nothing else does. */
START_TEST(depth)
{
    struct buf json;
    struct buf out;

    buf_init(&json, 65536);
    buf_init(&out, 65536);
    for (int i = 0; i < 128; i++)
        buf_add_str(&json, STR("{\"parent\":"));
    buf_add_str(&json, STR("null"));
    for (int i = 0; i < 128; i++)
        buf_add_u8(&json, '}');
    struct arg arg = {.json = buf_str(&json), .type = parameter("put")};

    ck_assert_int_eq(arg_encode(&arg, &opts, &out, &error), ARGS_OK);
    opts.max_depth = 127;
    ck_assert_int_eq(arg_encode(&arg, &opts, &out, &error), ARGS_BAD_JSON);
    buf_free(&json);
    buf_free(&out);
}
END_TEST

START_TEST(names_on_the_wire)
{
    ck_assert(str_is(parameter("map")->name, "java.util.Map"));
    ck_assert(str_is(parameter("lists")->name, "java.util.List[]"));
    ck_assert(str_is(parameter("box")->name, "a.Box"));
    ck_assert(str_is(parameter("tree")->name, "java.util.TreeMap"));
    ck_assert_int_eq(parameter("tree")->element->kind, JTYPE_DATE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_signature");
    TCase *t = tcase_create("signature");
    SRunner *r = NULL;
    int failed = 0;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, properties_by_their_types);
    tcase_add_test(t, nested_in_each_other);
    tcase_add_test(t, what_does_not_fit);
    tcase_add_test(t, depth);
    tcase_add_test(t, names_on_the_wire);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
