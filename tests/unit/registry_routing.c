/*
 * What rules make of lists of providers: 145 cases computed by Dubbo's own classes of four lines
 * (tests/data/rule-vectors.json), each read as each line reads it.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <jansson.h>

#include "registry/configurator.h"
#include "registry/routing.h"

static const char *const line_names[] = {"2.6", "2.7", "3.2", "3.3"};
static json_t *vectors;

static struct str get(const json_t *v, const char *name)
{
    const char *s = json_string_value(json_object_get(v, name));

    return s != NULL ? str_from(s) : STR_NONE;
}

static struct routing_party party(struct str text, struct arena *a, bool tags)
{
    struct routing_party p = {0};
    struct url *u = arena_alloc(a, sizeof(*u));
    struct err e;
    struct url_param *params = NULL;

    ck_assert_msg(url_parse(text, u, &e), "%s", e.text);
    params = arena_alloc(a, (u->n_params + 1) * sizeof(*params));
    for (size_t i = 0; i < u->n_params; i++) {
        if (tags || !str_is(u->params[i].key, "dubbo.tag"))
            params[p.n_params++] = u->params[i];
    }
    p.protocol = u->scheme;
    p.host = u->host;
    p.port = u->port;
    p.path = u->path;
    p.params = params;
    return p;
}

/* ---------------------------------------------------------------- a call */

struct test_call {
    struct str args;
    struct str attachments;
};

static bool argument(void *ctx, unsigned index, struct str *out)
{
    const struct test_call *c = ctx;
    struct str rest = c->args;

    if (rest.n == 0)
        return false;
    for (unsigned i = 0; i < index; i++) {
        if (str_find(rest, '|') == rest.n)
            return false;
        (void)str_cut(rest, '|', &rest);
    }
    *out = str_cut(rest, '|', &rest);
    return true;
}

static bool attachment(void *ctx, struct str name, struct str *out)
{
    const struct test_call *c = ctx;
    struct str rest = c->attachments;

    while (rest.n != 0) {
        struct str value = STR_NONE;
        struct str key = str_cut(str_cut(rest, ',', &rest), ':', &value);

        if (!str_eq(key, name))
            continue;
        *out = value;
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- filters */

static void check_set(const json_t *v, const char *line, const json_t *expected, uint64_t set)
{
    const json_t *options = json_object_get(expected, "one_of");
    uint64_t want = 0;
    size_t i = 0;
    json_t *x = NULL;

    if (options != NULL) {
        json_array_foreach(options, i, x)
        {
            size_t j = 0;
            json_t *n = NULL;

            want = 0;
            json_array_foreach(x, j, n)
            {
                want |= UINT64_C(1) << json_integer_value(n);
            }
            if (want == set)
                return;
        }
    } else {
        json_array_foreach(expected, i, x)
        {
            want |= UINT64_C(1) << json_integer_value(x);
        }
    }
    ck_assert_msg(want == set, "%s on %s: %llx, not %llx", get(v, "id").p, line,
                  (unsigned long long)set, (unsigned long long)want);
}

static enum rule_result read_rule(const json_t *v, enum dubbo_line line, struct arena *a,
                                  struct condition_rule *condition, struct tag_rule *tag,
                                  struct err *e)
{
    struct str kind = get(v, "kind");

    if (str_is(kind, "cond"))
        return condition_rule_from_text(get(v, "rule"), str_is(get(v, "force"), "true"), a,
                                        condition, e);
    if (str_is(kind, "yaml-cond"))
        return condition_rule_from_yaml(get(v, "rule"), line, a, condition, e);
    if (str_is(kind, "yaml-tag"))
        return tag_rule_from_yaml(get(v, "rule"), line, a, tag, e);
    return RULE_NONE;
}

/* "$invoke" is seen by rules as it is up to 2.7, and as the method that is meant from 3.x on. */
static struct str method_of(const json_t *v, enum dubbo_line line)
{
    struct str method = get(v, "method");
    struct str rest = STR_NONE;

    return line >= DUBBO_32 && str_is(method, "$invoke") ? str_cut(get(v, "args"), '|', &rest)
                                                         : method;
}

static void filter(const json_t *v, enum dubbo_line line, const json_t *expected)
{
    struct arena a;
    struct condition_rule condition = {0};
    struct tag_rule tag = {0};
    struct err e = {0};
    struct routing_party consumer;
    struct routing_party providers[16];
    const json_t *list = json_object_get(v, "providers");
    bool tags = strstr(json_string_value(json_object_get(v, "kind")), "tag") != NULL;
    struct test_call tc = {get(v, "args"), get(v, "att")};
    struct str force = STR_NONE;
    uint64_t set = (UINT64_C(1) << json_array_size(list)) - 1;

    arena_init(&a);
    enum rule_result result = read_rule(v, line, &a, &condition, &tag, &e);
    const struct str name = STR("the rule");
    const struct routing_condition conditions[] = {{.rule = &condition, .name = &name}};
    const struct routing_tags tag_rules[] = {{STR("prov"), &name, &tag},
                                             {STR("prov2"), &name, &tag}};
    const struct routing_rules rules = {
        .conditions = conditions,
        .n_conditions = result == RULE_OK && !tags ? 1 : 0,
        .tags = tag_rules,
        .n_tags = result == RULE_OK && tags ? 2 : 0,
        .line = line,
    };

    if (json_is_string(expected)) {
        ck_assert_msg(result == RULE_BAD, "%s on %s", get(v, "id").p, line_names[line]);
        arena_free(&a);
        return;
    }
    consumer = party(get(v, "consumer"), &a, tags);
    for (size_t i = 0; i < json_array_size(list); i++)
        providers[i] = party(str_from(json_string_value(json_array_get(list, i))), &a, tags);
    (void)attachment(&tc, STR("dubbo.force.tag"), &force);
    struct routing_call call = {.method = method_of(v, line),
                                .argument = argument,
                                .attachment = attachment,
                                .ctx = &tc,
                                .force_tag = str_is(force, "true"),
                                .random = 0};
    const struct routing *r = routing_build(&rules, &consumer, providers, json_array_size(list),
                                            &a);

    (void)attachment(&tc, STR("dubbo.tag"), &call.tag);
    for (call.random = 0; call.random < 100; call.random += 7) {
        uint64_t s = set;
        uint64_t explained = set;
        struct routing_blame blame;

        routing_select(r, &call, &s);
        routing_explain(r, &call, &explained, &blame);
        ck_assert_uint_eq(explained, s);
        ck_assert(blame.nobody == (s == 0));
        ck_assert(s != 0 || blame.name == &name || rules.n_conditions + rules.n_tags == 0);
        ck_assert(s != 0 || (blame.n_before > 0 && blame.n_before <= json_array_size(list)));
        check_set(v, line_names[line], expected, s);
    }
    arena_free(&a);
}

/* ---------------------------------------------------------------- configurators */

static void check_params(const json_t *v, const char *line, const json_t *expected,
                         const struct conf_url *u)
{
    ck_assert_msg(json_object_size(expected) == u->n, "%s on %s: %zu parameters", get(v, "id").p,
                  line, u->n);
    for (size_t i = 0; i < u->n; i++) {
        char key[64];

        ck_assert(str_copy(u->params[i].key, key, sizeof(key)));
        ck_assert_msg(str_eq(get(expected, key), u->params[i].value), "%s on %s: %s=" STR_FMT,
                      get(v, "id").p, line, key, STR_ARG(u->params[i].value));
    }
}

static void configure(const json_t *v, enum dubbo_line line, const json_t *expected)
{
    struct arena a;
    struct configurators c = {0};
    struct err e = {0};
    const json_t *list = json_object_get(v, "providers");
    struct conf_consumer me = {
        .ip = STR("192.0.2.1"), .application = STR("gw"), .key = {.interface = STR("a.B")}};
    enum rule_result result = RULE_OK;

    arena_init(&a);
    if (str_is(get(v, "kind"), "override"))
        result = configurator_from_url(get(v, "rule"), line, &a, &c, &e);
    else
        result = configurators_from_yaml(get(v, "rule"), line, &a, &c, &e);
    ck_assert_msg(result != RULE_BAD, "%s: %s", get(v, "id").p, e.text);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct routing_party p = party(str_from(json_string_value(json_array_get(list, i))), &a,
                                       true);
        struct url_param params[32];
        struct conf_url u = {
            .host = p.host, .port = p.port, .params = params, .n = p.n_params, .cap = 32};

        memcpy(params, p.params, p.n_params * sizeof(params[0]));
        configurators_apply(&c, &me, line, &u);
        if (json_is_array(expected))
            check_params(v, line_names[line], json_array_get(expected, i), &u);
        else /* f02: Dubbo fails, we take it for what was meant */
            ck_assert_str_eq(get(v, "id").p, "f02");
    }
    arena_free(&a);
}

START_TEST(vector)
{
    const json_t *v = json_array_get(vectors, (size_t)_i);
    struct str kind = get(v, "kind");
    bool conf = str_is(kind, "override") || str_is(kind, "yaml-conf");

    for (int line = DUBBO_26; line <= DUBBO_33; line++) {
        const json_t *expected = json_object_get(json_object_get(v, "results"), line_names[line]);

        if (json_is_string(expected) && strcmp(json_string_value(expected), "N/A") == 0)
            continue; /* 2.6 has no such rules */
        if (conf)
            configure(v, (enum dubbo_line)line, expected);
        else
            filter(v, (enum dubbo_line)line, expected);
    }
}
END_TEST

int main(void)
{
    json_error_t je;
    Suite *s = suite_create("routing");
    TCase *t = tcase_create("vectors");
    SRunner *sr = NULL;
    int failed = 0;

    vectors = json_load_file("tests/data/rule-vectors.json", 0, &je);
    if (vectors == NULL || json_array_size(vectors) != 145) {
        fprintf(stderr, "tests/data/rule-vectors.json: %s\n", je.text);
        return 1;
    }
    tcase_add_loop_test(t, vector, 0, (int)json_array_size(vectors));
    suite_add_tcase(s, t);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    json_decref(vectors);
    return failed != 0;
}
