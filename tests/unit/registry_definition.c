#include "registry/definition.h"

#include "tests/unit/registry_data.h"

static struct arena a;
static struct definition_view v;
static struct err e;

static struct str file(const char *name)
{
    char path[128];
    char *text = NULL;
    FILE *in = NULL;
    size_t n = 0;

    snprintf(path, sizeof(path), "tests/data/registry/%s", name);
    in = fopen(path, "re");
    ck_assert_msg(in != NULL, "%s: run this from the top of the tree", path);
    text = arena_alloc(&a, DEFINITION_NODE_MAX);
    n = fread(text, 1, DEFINITION_NODE_MAX, in);
    fclose(in);
    return (struct str){text, n};
}

static const struct definition_type *type(const char *name)
{
    for (size_t i = 0; i < v.n_types; i++) {
        if (str_is(v.types[i].name, name))
            return &v.types[i];
    }
    return NULL;
}

static struct str property(const char *of, const char *name)
{
    const struct definition_type *t = type(of);

    ck_assert_msg(t != NULL, "no type %s", of);
    for (size_t i = 0; i < t->n_properties; i++) {
        if (str_is(t->properties[i].name, name))
            return t->properties[i].type;
    }
    return STR_NONE;
}

#define IS(s, text) ck_assert_msg(str_is((s), (text)), "\"" STR_FMT "\"", STR_ARG(s))

static const char methods[] =
    "java.util.List<reg.api.Order> find(reg.api.Query,int,java.lang.Integer)\n"
    "reg.api.Order get(java.lang.String)\n"
    "reg.api.Order get(long)\n"
    "reg.api.Order get(java.lang.Long,boolean)\n"
    "java.util.Map<java.lang.String,java.util.List<reg.api.Order>> "
    "group(java.util.Map<java.lang.String,reg.api.Query>,java.util.Set<reg.api.Status>)\n"
    "reg.api.Status next(reg.api.Status,java.util.Date)\n"
    "reg.api.Page page(reg.api.Page)\n"
    "java.lang.String ping()\n"
    "void put(reg.api.Order[],byte[],int[])\n"
    "java.math.BigDecimal total(java.util.Collection<java.math.BigDecimal>,java.lang.Object)\n"
    "java.lang.String whoami()\n";

static void print_methods(struct buf *out)
{
    for (size_t i = 0; i < v.n_methods; i++) {
        definition_print_method(&v.methods[i], out);
        buf_add_u8(out, '\n');
    }
}

/* Both lines describe one service: the same comes of them. */
static void check_order_service(void)
{
    struct buf b;

    buf_init(&b, 65536);
    print_methods(&b);
    ck_assert(buf_is(&b, methods));
    buf_free(&b);
    IS(property("reg.api.Order", "parent"), "reg.api.Order");
    IS(property("reg.api.Order", "code"), "java.lang.String");
    IS(property("reg.api.Order", "at"), "java.time.LocalDateTime");
    IS(property("reg.api.Order", "items"), "java.util.List<reg.api.Order$Item>");
    IS(property("reg.api.Order", "ext"), "java.util.Map<java.lang.String,java.lang.Object>");
    IS(property("reg.api.Order$Item", "qty"), "int");
    IS(property("reg.api.Order$Item", "sku"), "java.lang.String");
    IS(property("reg.api.Page", "rows"), "java.util.List<java.lang.Object>");
    IS(property("reg.api.Page", "first"), "java.lang.Object");
    IS(property("reg.api.Query", "status"), "reg.api.Status");
    IS(property("reg.api.Query", "ids"), "int[]");
    ck_assert_uint_eq(type("reg.api.Status")->n_enums, 3);
    IS(type("reg.api.Status")->enums[2], "SHIPPED");
    ck_assert_ptr_null(type("java.time.LocalDate"));
    ck_assert_uint_eq(v.n_types, 5);
}

START_TEST(nested_types_of_2_7)
{
    ck_assert_msg(definition_parse(file("definition-2.7.json"), &a, &v, &e), "%s", e.text);
    check_order_service();
}
END_TEST

START_TEST(flat_types_of_3_2)
{
    ck_assert_msg(definition_parse(file("definition-3.2.json"), &a, &v, &e), "%s", e.text);
    check_order_service();
}
END_TEST

START_TEST(what_is_printed_reads_the_same)
{
    struct definition *d = definition_read(file("definition-2.7.json"), &e);
    struct definition *same = definition_read(file("definition-3.2.json"), &e);
    struct definition *again = NULL;

    ck_assert_ptr_nonnull(d);
    ck_assert_ptr_nonnull(same);
    ck_assert(definition_equal(d, same));
    ck_assert_uint_lt(d->n, 2600);
    again = definition_read((struct str){d->text, d->n}, &e);
    ck_assert_ptr_nonnull(again);
    ck_assert(definition_equal(d, again));
    ck_assert(definition_parse((struct str){again->text, again->n}, &a, &v, &e));
    check_order_service();
    definition_put(d);
    definition_put(same);
    definition_put(again);
}
END_TEST

static const char *named(const char *text)
{
    struct str out = STR_NONE;

    return definition_type_name(str_from(text), &a, &out) ? out.p : "-";
}

START_TEST(type_names)
{
    static const char *const pairs[][2] = {
        {"int", "int"},
        {"byte[]", "byte[]"},
        {"a.b.Outer.In", "a.b.Outer$In"},
        {"a.b.Outer.In.Deep[][]", "a.b.Outer$In$Deep[][]"},
        {"a.b.Outer$In", "a.b.Outer$In"},
        {"a.b.Outer.in.Deep", "a.b.Outer$in$Deep"},
        {"a.b.Outer$in$Deep", "a.b.Outer$in$Deep"},
        {"java.util.Map.Entry<K, V>", "java.util.Map$Entry<java.lang.Object,java.lang.Object>"},
        {"java.util.List<? extends a.B.C>", "java.util.List<a.B$C>"},
        {"java.util.List<? super a.X>", "java.util.List<a.X>"},
        {"java.util.List<?>", "java.util.List<java.lang.Object>"},
        {"java.util.Map<java.lang.String,java.util.List<a.X[]>>",
         "java.util.Map<java.lang.String,java.util.List<a.X[]>>"},
        {"T", "java.lang.Object"},
        {"Outer.In", "Outer$In"},
        {"Outer$In", "Outer$In"},
        {"T[]", "java.lang.Object[]"},
        {"", "-"},
        {"a..B", "-"},
        {"a.B.", "-"},
        {"a.B<", "-"},
        {"a.B<>", "-"},
        {"a.B[", "-"},
        {"a.B\"", "-"},
        {"a.B c", "-"},
        {"a.1B", "-"},
        {"a.B<a.C<a.C<a.C<a.C<a.C<a.C<a.C<a.C<a.C<a.C>>>>>>>>>>", "-"},
    };

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        ck_assert_str_eq(named(pairs[i][0]), pairs[i][1]);
}
END_TEST

START_TEST(references_that_lead_nowhere)
{
    const char *text =
        "{\"methods\":[{\"name\":\"m\",\"parameterTypes\":[\"a.P\"],\"returnType\":\"void\"}],"
        "\"types\":[{\"type\":\"a.P\",\"properties\":{"
        "\"loop\":{\"$ref\":\"$.types[0].properties.loop\"},"
        "\"none\":{\"$ref\":\"$.types[7].properties.x\"},"
        "\"bad\":{\"$ref\":\"$.types[x\"},"
        "\"self\":{\"$ref\":\"a.P\"},"
        "\"root\":{\"$ref\":\"$\"},"
        "\"no-name\":\"int\",\"num\":7,"
        "\"ok\":\"int\"}}]}";

    ck_assert_msg(definition_parse(str_from(text), &a, &v, &e), "%s", e.text);
    ck_assert_uint_eq(v.types[0].n_properties, 2);
    IS(property("a.P", "self"), "a.P");
    IS(property("a.P", "ok"), "int");
}
END_TEST

static bool refused(struct buf *b, const char *sentence)
{
    e.text[0] = '\0';
    bool bad = !definition_parse(buf_str(b), &a, &v, &e) && strstr(e.text, sentence) != NULL;

    if (!bad)
        fprintf(stderr, "got \"%s\"\n", e.text);
    buf_truncate(b, 0);
    return bad;
}

START_TEST(limits)
{
    struct buf b;

    buf_init(&b, 2 * DEFINITION_NODE_MAX);
    ck_assert(refused(&b, "no service definition"));
    buf_add_str(&b, STR("[]"));
    ck_assert(refused(&b, "no list of methods"));
    buf_add_str(&b, STR("{\"methods\":["));
    for (int i = 0; i <= DEFINITION_METHODS_MAX; i++)
        buf_printf(&b, "%s{\"name\":\"m%d\",\"parameterTypes\":[]}", i != 0 ? "," : "", i);
    buf_add_str(&b, STR("]}"));
    ck_assert(refused(&b, "more methods"));
    buf_add_str(&b, STR("{\"methods\":[],\"types\":["));
    for (int i = 0; i <= DEFINITION_TYPES_MAX; i++)
        buf_printf(&b, "%s{\"type\":\"a.T%d\",\"properties\":{\"x\":\"int\"}}", i != 0 ? "," : "",
                   i);
    buf_add_str(&b, STR("]}"));
    ck_assert(refused(&b, "more types"));
    buf_add_str(&b, STR("{\"methods\":[],\"types\":["));
    for (int i = 0; i <= DEFINITION_NESTING_MAX; i++)
        buf_add_str(&b, STR("{\"type\":\"a.T\",\"properties\":{\"x\":"));
    buf_add_str(&b, STR("1"));
    for (int i = 0; i <= DEFINITION_NESTING_MAX; i++)
        buf_add_str(&b, STR("}}"));
    buf_add_str(&b, STR("]}"));
    ck_assert(refused(&b, "deeper"));
    while (b.len <= DEFINITION_NODE_MAX)
        buf_add_u8(&b, ' ');
    ck_assert(refused(&b, "longer"));
    buf_free(&b);
}
END_TEST

/* What 2.6.6 (and, with a heading, 2.7 where the command is allowed) answered, and what nobody should. */
START_TEST(telnet_of_2_6)
{
    static const struct {
        const char *text, *methods;
    } table[] = {
        {"java.lang.String over(java.lang.String)\r\n"
         "java.lang.String over(java.lang.Integer,java.lang.String)\r\n"
         "java.lang.String over(int)\r\n"
         "java.util.Map echoPersonMap(java.util.Map)\r\n"
         "demo.sample.api.Person[] echoPersonArray(demo.sample.api.Person[])\r\n"
         "byte[] echoBytes(byte[])\r\n"
         "void nothing()\r\ndubbo>",
         "byte[] echoBytes(byte[])\n"
         "demo.sample.api.Person[] echoPersonArray(demo.sample.api.Person[])\n"
         "java.util.Map echoPersonMap(java.util.Map)\n"
         "void nothing()\n"
         "java.lang.String over(int)\n"
         "java.lang.String over(java.lang.String)\n"
         "java.lang.String over(java.lang.Integer,java.lang.String)\n"},
        {"reg.api.OrderService (as provider):\r\n"
         "\treg.api.Order get(java.lang.Long,boolean)\r\n"
         "\treg.api.Outer$In get(long)\r\n\r\n\r\ndubbo>",
         "reg.api.Outer$In get(long)\nreg.api.Order get(java.lang.Long,boolean)\n"},
        {"void a()\nvoid a()\nvoid b(int)\ndubbo>", "void a()\nvoid b(int)\n"},
        /* no Java: left out */
        {"void a()\r\nvoid b(int,)\r\nvoid c(,int)\r\nvoid d(int\r\nvoid e(int)x\r\n"
         "void f(i\"nt)\r\nvoid g\x01()\r\nvoid h(\xff)\r\n f()\r\nvoid 1()\r\nvoid  i()\r\n"
         "a(()b()\r\ndubbo>x\r\ndubbo>",
         "void a()\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct buf b;

        buf_init(&b, 4096);
        ck_assert_msg(definition_parse_telnet(str_from(table[i].text), &a, &v, &e), "%zu: %s", i,
                      e.text);
        print_methods(&b);
        ck_assert_msg(buf_is(&b, table[i].methods), "%zu: " STR_FMT, i, STR_ARG(buf_str(&b)));
        buf_free(&b);
    }
}
END_TEST

START_TEST(telnet_without_methods)
{
    static const struct {
        const char *text, *why;
    } table[] = {
        {"Command: ls disabled for security reasons, please enable support by listing the commands "
         "through 'telnet'\r\ndubbo>",
         "the answer is \"Command: ls disabled for security reasons, please enable support by "
         "listing the \""},
        {"Unsupported command: ls\r\ndubbo>", "the answer is \"Unsupported command: ls\""},
        {"No such service demo.Nobody\r\ndubbo>", "the answer is \"No such service demo.Nobody\""},
        {"\x1b[31m\r\ndubbo>", "the answer is \"?[31m\""},
        {"dubbo>", "the answer has no methods"},
        {"\r\n\r\ndubbo>", "the answer has no methods"},
        {"", "the answer has no prompt at its end"},
        {"void a()\r\n", "the answer has no prompt at its end"},
        {"void a()\r\nvoid b()dubbo>", "the answer has no prompt at its end"},
        {"void a()\r\ndubbo> ", "the answer has no prompt at its end"},
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        ck_assert(!definition_parse_telnet(str_from(table[i].text), &a, &v, &e));
        ck_assert_str_eq(e.text, table[i].why);
        ck_assert_uint_eq(v.n_methods, 0);
        ck_assert_ptr_null(definition_read_telnet(str_from(table[i].text), &e));
    }
}
END_TEST

static bool telnet_of(struct buf *b, const char *more)
{
    buf_printf(b, "%s\r\ndubbo>", more);
    return definition_parse_telnet(buf_str(b), &a, &v, &e);
}

START_TEST(telnet_limits)
{
    struct buf b;

    buf_init(&b, 2 * DEFINITION_NODE_MAX);
    for (int i = 0; i < DEFINITION_METHODS_MAX; i++)
        buf_printf(&b, "void m%d()\r\n", i);
    ck_assert(telnet_of(&b, ""));
    ck_assert_uint_eq(v.n_methods, DEFINITION_METHODS_MAX);
    ck_assert(!telnet_of(&b, "\r\nvoid more()"));
    ck_assert(strstr(e.text, "more methods than") != NULL);

    buf_truncate(&b, 0);
    buf_printf(&b, "void a(int");
    for (int i = 1; i < DEFINITION_PARAMS_MAX; i++)
        buf_printf(&b, ",int");
    ck_assert(telnet_of(&b, ")"));
    ck_assert_uint_eq(v.methods[0].n_params, DEFINITION_PARAMS_MAX);
    buf_truncate(&b, b.len - sizeof(")\r\ndubbo>") + 1);
    ck_assert(!telnet_of(&b, ",int)"));

    buf_truncate(&b, 0);
    for (int i = 0; i <= DEFINITION_NAME_MAX; i++)
        buf_add_u8(&b, 'a');
    ck_assert(!telnet_of(&b, " f()"));

    buf_truncate(&b, 0);
    buf_printf(&b, "void a()\r\n");
    while (b.len <= DEFINITION_NODE_MAX)
        buf_add_u8(&b, ' ');
    ck_assert(!telnet_of(&b, ""));
    ck_assert(strstr(e.text, "longer than") != NULL);
    buf_free(&b);
}
END_TEST

TEST_MAIN("definition", nested_types_of_2_7, flat_types_of_3_2, what_is_printed_reads_the_same,
          type_names, references_that_lead_nowhere, limits, telnet_of_2_6, telnet_without_methods,
          telnet_limits)
