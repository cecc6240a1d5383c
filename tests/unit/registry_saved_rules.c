#include <unistd.h>

#include "registry/rules.h"
#include "registry/store.h"

#include "tests/unit/registry_data.h"

/* Published rules in the file of saved lists, and back to the same rules. */

static char dir[] = "/tmp/registry_saved_rules.XXXXXX";
static char file[64];
static struct buf seen;
static struct err e;

static void on_registry(void *ctx, const struct store_registry *r)
{
    (void)ctx;
    buf_printf(&seen, "R " STR_FMT " " STR_FMT "\n", STR_ARG(r->name), STR_ARG(r->consumer_ip));
}

static void on_entry(void *ctx, const struct store_entry *s)
{
    (void)ctx;
    buf_printf(&seen, "E " STR_FMT "\n", STR_ARG(s->key.interface));
}

static void on_rule(void *ctx, const struct store_rule *v)
{
    (void)ctx;
    buf_printf(&seen, "U " STR_FMT " " STR_FMT " <" STR_FMT ">\n", STR_ARG(v->registry),
               STR_ARG(v->node), STR_ARG(v->text));
}

static void on_definition(void *ctx, const struct store_definition *d)
{
    (void)ctx;
    buf_printf(&seen, "D " STR_FMT "\n", STR_ARG(d->application));
}

static struct store_reader reader = {.on_registry = on_registry,
                                     .on_entry = on_entry,
                                     .on_rule = on_rule,
                                     .on_definition = on_definition};

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/references.json", dir);
    buf_init(&seen, STORE_BYTES_MAX);
}

static void finish(void)
{
    unlink(file);
    ck_assert_int_eq(rmdir(dir), 0);
    buf_free(&seen);
}

static struct store_writer *begin(void)
{
    struct store_writer *w = store_begin(dir, &e);

    ck_assert_msg(w != NULL, "%s", e.text);
    return w;
}

static void expect(const char *text)
{
    buf_truncate(&seen, 0);
    ck_assert_int_eq(store_load(dir, &reader, &e), STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 0);
    ck_assert_msg(str_is(buf_str(&seen), text), STR_FMT, STR_ARG(buf_str(&seen)));
}

START_TEST(rules_come_back)
{
    const struct store_registry r = {
        .name = STR("main"), .max_zxid = 1, .consumer_ip = STR("10.0.0.1")};
    const struct store_entry s = {.registry = STR("main"), .key = {.interface = STR("a.B")}};
    const struct store_definition d = {
        .registry = STR("main"), .key = s.key, .application = STR("app"), .text = STR("{}")};
    struct store_rule v = {STR("main"), STR("a.B::.condition-router"),
                           STR("force: true\nname: \"\\\xc3\xa4\"\n\t],\"sum\":\n")};
    struct store_writer *w = NULL;

    start();
    w = begin();
    ck_assert(store_put_registry(w, &r));
    ck_assert(store_put_entry(w, &s));
    ck_assert(store_put_rule(w, &v));
    v = (struct store_rule){STR("main"), STR("a.B/routers"), STR_NONE};
    ck_assert(store_put_rule(w, &v));
    ck_assert(store_put_definition(w, &d));
    ck_assert(store_commit(w, &e));
    expect("R main 10.0.0.1\nE a.B\n"
           "U main a.B::.condition-router <force: true\nname: \"\\\xc3\xa4\"\n\t],\"sum\":\n>\n"
           "U main a.B/routers <>\nD app\n");
    finish();
}
END_TEST

START_TEST(what_would_not_come_back_is_not_written)
{
    static char text[STORE_RULE_MAX + 1];
    struct store_rule v = {STR("main"), STR("x.tag-router"), STR("a\xff")};
    struct store_writer *w = NULL;

    start();
    memset(text, 'x', sizeof(text));
    w = begin();
    ck_assert(!store_put_rule(w, &v)); /* no UTF-8 */
    v.text = (struct str){text, sizeof(text)};
    ck_assert(!store_put_rule(w, &v));
    v.text.n--;
    ck_assert(store_put_rule(w, &v));
    v = (struct store_rule){STR("main"), STR("x\n"), STR("a")};
    ck_assert(!store_put_rule(w, &v));
    v.node = (struct str){text, STORE_RULE_NODE_MAX + 1};
    ck_assert(!store_put_rule(w, &v));
    ck_assert(store_commit(w, &e));
    buf_truncate(&seen, 0);
    ck_assert_int_eq(store_load(dir, &reader, &e), STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 0);
    ck_assert_uint_eq(seen.len, strlen("U main x.tag-router <>\n") + STORE_RULE_MAX);
    finish();
}
END_TEST

START_TEST(rules_that_cannot_be_are_left_out)
{
    struct buf b;

    start();
    buf_init(&b, 65536);
    buf_add_str(&b, STR("{\"format\":1,\"saved_ms\":1,\"registries\":[\n"
                        "{\"name\":\"m\",\"max_zxid\":1,\"root_czxid\":1,\"consumer_ip\":7}\n"
                        "],\"rules\":[\n"
                        "{\"registry\":\"m\",\"node\":\"a\"},\n"
                        "{\"registry\":\"m\",\"node\":\"a\",\"text\":7},\n"
                        "{\"registry\":\"m\",\"text\":\"x\"},\n"
                        "{\"registry\":\"m\",\"node\":\"a\\nb\",\"text\":\"x\"},\n"
                        "{\"registry\":\"m\",\"node\":\"a\",\"text\":\"x\\u0000\"},\n"
                        "{\"registry\":\"m\",\"node\":\"a\",\"text\":\"x\"}\n"
                        "],\n"));
    buf_printf(&b, "\"sum\":\"%016llx\"}\n",
               (unsigned long long)store_sum(STORE_SUM_START, buf_str(&b)));
    ck_assert_int_eq(store_read(buf_str(&b), &reader, &e), STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 6);
    ck_assert_msg(str_is(buf_str(&seen), "U m a <x>\n"), STR_FMT, STR_ARG(buf_str(&seen)));
    buf_free(&b);
    finish();
}
END_TEST

START_TEST(routers_and_configurators_of_2_6)
{
    static const char *const urls[] = {
        "route://0.0.0.0/a.B?category=routers&router=condition&priority=2&rule=%3D%3E%20zone%3Dx",
        "route://0.0.0.0/a.B?category=routers&router=condition&priority=1&rule=host%3D%24host%3D%3E"};
    struct rules *r = rules_new(STR("/dubbo/a.B/routers"));
    struct rules *again = NULL;

    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(rules_add_url(r, RULE_NODE_CONDITION,
                                       arena_str(&r->arena, str_from(urls[i])), STR("10.0.0.1"),
                                       &e),
                         RULE_OK);
    ck_assert_int_eq(rules_add_url(r, RULE_NODE_CONDITION, STR("no rule"), STR("10.0.0.1"), &e),
                     RULE_BAD);
    r = rules_finish(r);
    again = rules_from_saved_urls(r->name, RULE_NODE_CONDITION, r->text, STR("10.0.0.1"));
    ck_assert_uint_eq(again->n_conditions, 2);
    ck_assert_uint_eq(again->hash, r->hash);
    ck_assert_int_eq(again->conditions[0].priority, 1);
    ck_assert(str_eq(again->text, r->text));
    rules_put(again);
    rules_put(r);
    ck_assert_ptr_null(rules_from_saved_urls(STR("x"), RULE_NODE_CONDITION, STR_NONE, STR_NONE));
    ck_assert_ptr_null(
        rules_from_saved_urls(STR("x"), RULE_NODE_CONFIGURATORS, STR("no rule\n"), STR_NONE));
    again = rules_from_saved_urls(STR("x"), RULE_NODE_CONFIGURATORS,
                                  STR("no rule\noverride://0.0.0.0/a.B?weight=7\n"), STR_NONE);
    ck_assert_uint_eq(again->overrides.n, 1);
    ck_assert(str_is(again->text, "override://0.0.0.0/a.B?weight=7\n"));
    rules_put(again);
}
END_TEST

START_TEST(nodes_of_2_7)
{
    static const char text[] = "force: true\nconditions:\n  - '=> zone = west'\n";
    struct rules *r = NULL;

    ck_assert_int_eq(
        rules_from_node(STR("a.B::.condition-router"), RULE_NODE_CONDITION, str_from(text), &r, &e),
        RULE_OK);
    ck_assert(str_is(r->text, text));
    rules_put(r);
}
END_TEST

TEST_MAIN("registry_saved_rules", rules_come_back, what_would_not_come_back_is_not_written,
          rules_that_cannot_be_are_left_out, routers_and_configurators_of_2_6, nodes_of_2_7)
