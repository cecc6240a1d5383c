/*
 * Instances, metadata and mappings: those that real providers wrote (tests/data/dumps), and what nobody should write.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <jansson.h>

#include "base/buf.h"
#include "registry/instance.h"
#include "registry/provider.h"

static struct arena a;

static void setup(void)
{
    arena_init(&a);
}

static void teardown(void)
{
    arena_free(&a);
}

static json_t *dump(const char *name)
{
    char path[256];
    json_error_t e;
    json_t *o = NULL;

    snprintf(path, sizeof(path), "tests/data/dumps/%s.json", name);
    o = json_load_file(path, 0, &e);
    ck_assert_msg(o != NULL, "%s: %s", path, e.text);
    return o;
}

static struct str data(const json_t *tree, const char *path)
{
    const char *text = json_string_value(json_object_get(json_object_get(tree, path), "data"));

    ck_assert_msg(text != NULL, "%s", path);
    return str_from(text);
}

static struct instance parsed(struct str text)
{
    struct instance i;
    struct err e = {0};

    ck_assert_msg(instance_parse(text, &a, &i, &e), "%s", e.text);
    return i;
}

static const char *text(struct str s)
{
    return arena_cstr(&a, s);
}

static const char *url(const struct instance *i, const struct app_service *s)
{
    struct buf b;
    const char *u = NULL;

    buf_init(&b, 65536);
    instance_url(i, s, &b);
    u = text(buf_str(&b));
    buf_free(&b);
    return u;
}

/* ---------------------------------------------------------------- what providers write */

START_TEST(instances_of_all_kinds)
{
    json_t *t = dump("providers-instance-mode-3.2-3.3");
    json_t *v6 = dump("variants-ipv6-path-dynamic-simplified-group-root");
    struct instance local = parsed(data(t, "/services/inst-32-local/192.0.2.2:21340"));
    struct instance remote = parsed(data(t, "/services/inst-33-remote/192.0.2.2:21343"));
    struct instance six = parsed(data(v6, "/root32/v6-32/[fd00::2]:21351"));
    struct instance *clone = instance_clone(&six);

    ck_assert_str_eq(text(local.host), "192.0.2.2");
    ck_assert_uint_eq(local.port, 21340);
    ck_assert_uint_eq(local.ask_port, 21340);
    ck_assert(!local.remote);
    ck_assert_str_eq(text(local.revision), "adf14aaee209ad4c97bf5af0525c3773");
    ck_assert_str_eq(text(local.params), "timestamp=1796103099712");
    ck_assert(remote.remote);
    ck_assert_uint_eq(remote.ask_port, 0);
    ck_assert_str_eq(text(remote.params), "meta-v=1.0.0&timestamp=1796103099022");
    ck_assert_str_eq(text(six.host), "fd00::2");
    ck_assert_uint_eq(six.n_endpoints, 2);
    ck_assert_str_eq(text(clone->host), "fd00::2");
    ck_assert_str_eq(text(clone->params), text(six.params));
    ck_assert_str_eq(text(clone->endpoints[1].protocol), text(six.endpoints[1].protocol));
    ck_assert_uint_eq(clone->endpoints[1].port, six.endpoints[1].port);
    free(clone);
    json_decref(t);
    json_decref(v6);
}
END_TEST

/* The URL that instance and metadata make is the provider that the interface's own node would name. */
START_TEST(metadata_gives_providers)
{
    json_t *t = dump("providers-instance-mode-3.2-3.3");
    struct instance i = parsed(data(t, "/services/inst-33-remote/192.0.2.2:21343"));
    struct app_metadata m;
    const struct app_service *s = NULL;
    struct provider p;
    struct err e = {0};
    size_t skipped = 0;
    size_t n = 0;

    ck_assert(
        metadata_parse(data(t, "/dubbo/metadata/inst-33-remote/6c7e200ff8399b9f5be72ec5d1a7db72"),
                       STR("inst-33-remote"), &a, &m, &skipped, &e));
    ck_assert_uint_eq(m.n, 3);
    ck_assert_uint_eq(skipped, 0);
    ck_assert_ptr_null(metadata_find(&m, STR("reg.api.Order"), &n));
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_nonnull(metadata_find(&m, STR("reg.api.HelloService"), &n));
    ck_assert_uint_eq(n, 1);
    s = metadata_find(&m, STR("reg.api.OrderService"), &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_msg(provider_from_url(str_from(url(&i, s + 1)), &a, &p, &e), "%s", e.text);
    ck_assert_str_eq(text(p.group), "g1");
    ck_assert_str_eq(text(p.version), "1.0.0");
    ck_assert_str_eq(text(p.token), "s3cret");
    ck_assert_str_eq(text(p.tag), "gray");
    ck_assert_str_eq(text(p.application), "inst-33-remote");
    ck_assert_str_eq(text(p.release), "3.3.2");
    ck_assert_uint_eq(p.port, 21343);
    ck_assert_uint_eq(p.weight, 50);
    ck_assert_uint_eq(p.warmup_ms, 1000);
    ck_assert_uint_eq(p.timestamp_ms, 1796103099022);
    bool written = false;

    ck_assert_uint_eq(provider_timeout_ms(&p, STR("get"), &written), 700);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("put"), &written), 2500);
    ck_assert(provider_from_url(str_from(url(&i, s)), &a, &p, &e));
    ck_assert_uint_eq(p.group.n + p.version.n + p.tag.n, 0);
    json_decref(t);
}
END_TEST

/* ---------------------------------------------------------------- ports, hosts, parameters */

static struct app_service service(const char *json)
{
    struct app_metadata m;
    struct err e = {0};
    size_t skipped = 0;

    ck_assert_msg(metadata_parse(arena_printf(&a, "{\"services\":{\"x\":%s}}", json), STR("app"),
                                 &a, &m, &skipped, &e),
                  "%s", e.text);
    ck_assert_uint_eq(m.n, 1);
    return m.services[0];
}

#define INSTANCE(metadata) \
    "{\"address\":\"[::1]\",\"port\":7000,\"payload\":{\"metadata\":{" metadata "}}}"

START_TEST(a_port_is_found)
{
    struct instance i = parsed(STR(
        INSTANCE("\"dubbo.endpoints\":\"[{\\\"port\\\":7001,\\\"protocol\\\":\\\"tri\\\"}]\"")));
    struct instance none = i;
    struct app_service own = service("{\"name\":\"a.B\",\"protocol\":\"dubbo\",\"port\":7002}");
    struct app_service tri = service("{\"name\":\"a.B\",\"protocol\":\"tri\",\"port\":-1}");
    struct app_service rest = service("{\"name\":\"a.B\",\"protocol\":\"rest\",\"path\":\"p/q\"}");

    none.port = 0;
    ck_assert_str_eq(url(&i, &own), "dubbo://[::1]:7002/a.B?interface=a.B&application=app");
    ck_assert_str_eq(url(&i, &tri), "tri://[::1]:7001/a.B?interface=a.B&application=app");
    ck_assert_str_eq(url(&i, &rest), "rest://[::1]:7000/p/q?interface=a.B&application=app");
    ck_assert_str_eq(url(&none, &rest), "");
}
END_TEST

START_TEST(what_a_service_says_itself_wins)
{
    struct instance i = parsed(
        STR(INSTANCE("\"timestamp\":\"5\",\"weight\":\"7\",\"zone\":\"x\"")));
    struct app_service s = service(
        "{\"name\":\"a.B\",\"protocol\":\"dubbo\",\"group\":null,\"version\":\"2\",\"params\":{"
        "\"interface\":\"c.D\",\"version\":\"1\",\"group\":\"g\",\"weight\":\"9\",\"bad\":\"a&b\","
        "\"n\":3}}");

    ck_assert_str_eq(url(&i, &s), "dubbo://[::1]:7000/a.B?interface=a.B&group=g&version=2&"
                                  "application=app&weight=9&timestamp=5&zone=x");
}
END_TEST

/* 3.0 wrote the parameters of its MetadataService by protocol; over another protocol we cannot ask. */
START_TEST(who_can_be_asked)
{
    struct instance old = parsed(STR(INSTANCE("\"dubbo.metadata-service.url-params\":"
                                              "\"{\\\"dubbo\\\":{\\\"port\\\":\\\"7\\\"}}\"")));
    struct instance tri = parsed(
        STR(INSTANCE("\"dubbo.metadata-service.url-params\":"
                     "\"{\\\"protocol\\\":\\\"tri\\\",\\\"port\\\":\\\"7\\\"}\"")));

    ck_assert_uint_eq(old.ask_port, 7);
    ck_assert_uint_eq(tri.ask_port, 0);
}
END_TEST

START_TEST(revision_zero_exports_nothing)
{
    struct instance i = parsed(STR(INSTANCE("\"dubbo.metadata.revision\":\"0\"")));

    ck_assert_uint_eq(i.revision.n, 0);
}
END_TEST

/* ---------------------------------------------------------------- garbage */

static const char *const no_instances[] = {
    "",
    "[]",
    "{",
    "null",
    "{\"address\":5,\"port\":1}",
    "{\"address\":\"a b\",\"port\":1}",
    "{\"address\":\"::1\\n\",\"port\":1}",
    "{\"address\":\"h\",\"port\":1,\"payload\":{\"metadata\":{\"dubbo.metadata.revision\":\"../x\"}}}",
};

START_TEST(no_instance)
{
    struct instance i;
    struct err e = {0};

    ck_assert(!instance_parse(str_from(no_instances[_i]), &a, &i, &e));
    ck_assert_str_ne(e.text, "");
}
END_TEST

START_TEST(services_that_are_none)
{
    static const char json[] =
        "{\"services\":{\"a\":5,\"b\":{},\"c\":{\"name\":\"x.Y\"},\"d\":{\"name\":\"x&y\",\"protocol\":\"dubbo\"},"
        "\"e\":{\"name\":\"x.Y\",\"protocol\":\"dubbo\",\"path\":\"a?b\"},"
        "\"f\":{\"name\":\"x.Y\",\"protocol\":\"dubbo\",\"params\":[1],\"port\":70000}}}";
    struct app_metadata m;
    struct err e = {0};
    size_t skipped = 0;

    ck_assert(metadata_parse(str_from(json), STR("app"), &a, &m, &skipped, &e));
    ck_assert_uint_eq(m.n, 1);
    ck_assert_uint_eq(skipped, 5);
    ck_assert_uint_eq(m.services[0].port, 0);
    ck_assert(!metadata_parse(STR("null"), STR("app"), &a, &m, &skipped, &e));
    ck_assert(!metadata_parse(STR("{\"services\":[]}"), STR("app"), &a, &m, &skipped, &e));
}
END_TEST

START_TEST(mappings)
{
    struct str apps[MAPPING_APPS_MAX];
    struct buf many;

    ck_assert_uint_eq(mapping_parse(STR("a,b , a,,c/d,.."), apps), 2);
    ck_assert_str_eq(text(apps[1]), "b");
    ck_assert_uint_eq(mapping_parse(STR_NONE, apps), 0);
    buf_init(&many, 4096);
    for (size_t i = 0; i < 100; i++)
        buf_printf(&many, "a%zu,", i);
    ck_assert_uint_eq(mapping_parse(buf_str(&many), apps), MAPPING_APPS_MAX);
    buf_free(&many);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("instance");
    TCase *t = tcase_create("instance");
    SRunner *r = NULL;
    int failed = 0;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, instances_of_all_kinds);
    tcase_add_test(t, metadata_gives_providers);
    tcase_add_test(t, a_port_is_found);
    tcase_add_test(t, what_a_service_says_itself_wins);
    tcase_add_test(t, who_can_be_asked);
    tcase_add_test(t, revision_zero_exports_nothing);
    tcase_add_loop_test(t, no_instance, 0, sizeof(no_instances) / sizeof(no_instances[0]));
    tcase_add_test(t, services_that_are_none);
    tcase_add_test(t, mappings);
    suite_add_tcase(suite, t);
    r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
