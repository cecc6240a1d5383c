#include "registry/provider.h"
#include "registry/routing.h"
#include "registry/rules.h"
#include "registry/url.h"

#include "tests/unit/registry_data.h"

static struct arena a;
static struct provider p;
static bool written;
static struct err e;

static bool parse(const char *text)
{
    arena_free(&a);
    e.text[0] = '\0';
    return provider_from_url(str_from(text), &a, &p, &e);
}

static enum unusable judged(const char *text)
{
    ck_assert_msg(parse(text), "%s: %s", text, e.text);
    return p.unusable;
}

#define IS(s, text) ck_assert_msg(str_is((s), (text)), "\"" STR_FMT "\"", STR_ARG(s))

START_TEST(every_parameter_of_2_7)
{
    ck_assert(parse("dubbo://192.0.2.2:21327/reg.api.OrderService?accesslog=true&actives=5"
                    "&anyhost=true&application=demo-2.7&cluster=failfast&connections=2"
                    "&custom=a-b.c&deprecated=true&document=http%3A%2F%2Fx%2Fy%3Fa%3Db&dubbo=2.0.2"
                    "&dubbo.tag=gray&dynamic=true&executes=10&find.executes=3&generic=false"
                    "&get.loadbalance=roundrobin&get.retries=3&get.timeout=700&group=g1"
                    "&interface=reg.api.OrderService&loadbalance=leastactive&metadata-type=remote"
                    "&methods=next,whoami&owner=me&pid=4013&release=2.7.23&retries=1&revision=1.0.0"
                    "&service.name=ServiceBean:g1/reg.api.OrderService:1.0.0&side=provider&tag=blue"
                    "&timeout=2500&timestamp=1796103915040&token=s3cret&version=1.0.0&warmup=1000"
                    "&weight=50"));
    IS(p.host, "192.0.2.2");
    ck_assert_uint_eq(p.port, 21327);
    ck_assert_int_eq(p.unusable, USABLE);
    IS(p.tag, "gray");
    ck_assert_int_eq(p.addr.sa.sa_family, AF_UNSPEC);
    IS(p.interface, "reg.api.OrderService");
    IS(p.path, "reg.api.OrderService");
    IS(p.version, "1.0.0");
    IS(p.group, "g1");
    IS(p.release, "2.7.23");
    IS(p.application, "demo-2.7");
    IS(p.token, "s3cret");
    IS(p.loadbalance, "leastactive");
    IS(p.tag, "gray");
    IS(p.methods, "next,whoami");
    ck_assert_uint_eq(p.timeout_ms, 2500);
    ck_assert_uint_eq(p.weight, 50);
    ck_assert_uint_eq(p.warmup_ms, 1000);
    ck_assert_uint_eq(p.timestamp_ms, UINT64_C(1796103915040));
    ck_assert_uint_eq(p.payload, 8388608);
    ck_assert_uint_eq(p.connections, 2);
    IS(p.params->others,
       "accesslog=true&actives=5&cluster=failfast&custom=a-b.c"
       "&document=http%3A%2F%2Fx%2Fy%3Fa%3Db&executes=10&find.executes=3&get.retries=3&owner=me"
       "&retries=1&service.name=ServiceBean:g1/reg.api.OrderService:1.0.0&tag=blue");
    ck_assert(p.dynamic && p.deprecated);
    ck_assert_uint_eq(p.n_method_params, 1);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("get"), &written), 700);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("put"), &written), 2500);
}
END_TEST

START_TEST(defaults)
{
    ck_assert(parse("dubbo://h:20880/a.B"));
    IS(p.interface, "a.B");
    ck_assert_uint_eq(p.weight, 100);
    ck_assert_uint_eq(p.warmup_ms, 600000);
    ck_assert_uint_eq(p.timeout_ms, 0);
    ck_assert_uint_eq(p.timestamp_ms, 0);
    ck_assert_uint_eq(p.payload, 8 << 20);
    ck_assert(p.dynamic && !p.deprecated && !p.unlisted);
    ck_assert_uint_eq(p.n_method_params, 0);
    ck_assert_ptr_null(p.params);
}
END_TEST

/* Every registered URL is taken, and what is printed for the saved list reads back the same. */
static int n_usable, n_tri, n_tagged;

static void print_and_read_back(struct str node)
{
    struct str text = STR_NONE;
    struct provider q;
    struct buf first;
    struct buf second;

    arena_free(&a);
    ck_assert(url_decode_node(node, &a, &text, &e));
    ck_assert_msg(provider_from_url(text, &a, &p, &e), "%s", e.text);
    ck_assert(p.port != 0 && p.interface.n != 0 && p.application.n != 0);
    if (p.unusable != USABLE) {
        n_tri += p.unusable == UNUSABLE_PROTOCOL;
        return;
    }
    n_usable++;
    n_tagged += p.tag.n != 0;
    buf_init(&first, URL_MAX);
    buf_init(&second, URL_MAX);
    provider_print(&p, NULL, 0, &first);
    ck_assert_msg(provider_from_url(buf_str(&first), &a, &q, &e), "%s", e.text);
    ck_assert(provider_same(&p, &q));
    provider_print(&q, NULL, 0, &second);
    ck_assert(str_eq(buf_str(&first), buf_str(&second)));
    ck_assert_uint_eq(p.n_method_params, q.n_method_params);
    ck_assert_uint_eq(p.timestamp_ms, q.timestamp_ms);
    IS(q.token, p.token.n != 0 ? "s3cret" : "");
    buf_free(&first);
    buf_free(&second);
}

START_TEST(registered_urls_of_all_lines)
{
    ck_assert_int_eq(each_node("providers.txt", print_and_read_back), 23);
    ck_assert_int_eq(n_tri, 2);
    ck_assert_int_eq(n_tagged, 5);
    ck_assert_int_eq(n_usable, 20); /* one of the others is disabled */
}
END_TEST

START_TEST(print_keeps_everything)
{
    struct buf b;

    ck_assert(parse("dubbo://[fd00::2]:1/x/y?default.a.timeout=9&a.weight=0&b.timeout=3&token=a=b%"
                    "&payload=0&heartbeat=5&dynamic=false&interface=i.J&version=0.0.0&weight=0"
                    "&warmup=0&timestamp=5&timeout=1&connections=3&deprecated=true"));
    buf_init(&b, URL_MAX);
    provider_print(&p, NULL, 0, &b);
    ck_assert(buf_is(&b, "dubbo://[fd00::2]:1/x/y?side=provider&interface=i.J&token=a=b%"
                         "&timeout=1&weight=0&warmup=0&timestamp=5&payload=-1"
                         "&heartbeat=5&connections=3&dynamic=false&deprecated=true&a.timeout=9"
                         "&a.weight=0&b.timeout=3"));
    buf_free(&b);
}
END_TEST

/* Found by fuzz_url: without a query '&' belongs to the path, and a path may be empty. */
START_TEST(print_keeps_strange_names)
{
    static const char *const urls[] = {
        "dubbo://h:1/a&b=c",
        "dubbo://h:1?interface=a?b/c",
        "dubbo://h:1//a",
        "dubbo://h:1",
    };

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct provider q;
        struct buf b;

        ck_assert(parse(urls[i]));
        buf_init(&b, URL_MAX);
        provider_print(&p, NULL, 0, &b);
        ck_assert(provider_from_url(buf_str(&b), &a, &q, &e));
        ck_assert_msg(provider_same(&p, &q) && str_eq(p.interface, q.interface), "%s", urls[i]);
        buf_free(&b);
    }
}
END_TEST

START_TEST(not_for_us)
{
    ck_assert_int_eq(judged("tri://127.0.0.1:50051/a.B"), UNUSABLE_PROTOCOL);
    ck_assert_int_eq(judged("tri://127.0.0.1:50051/a.B?ext.protocol=dubbo"), USABLE);
    ck_assert_int_eq(judged("tri://127.0.0.1:50051/a.B?ext.protocol=rest,dubbo,"), USABLE);
    ck_assert_int_eq(judged("rest://h:1/a.B?ext.protocol=dubbo2"), UNUSABLE_PROTOCOL);
    ck_assert_int_eq(judged("override://h:1/a.B?category=providers"), UNUSABLE_PROTOCOL);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?disabled=true"), UNUSABLE_DISABLED);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?disabled=false"), USABLE);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?enabled=false"), UNUSABLE_DISABLED);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?ssl-enabled=true"), UNUSABLE_TLS);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?dubbo.tag=gray"), USABLE);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?dubbo.tag="), USABLE);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?tag=gray"), USABLE); /* means nothing in any line */
    ck_assert_int_eq(judged("dubbo://h:1/a.B?serialization=hessian2"), USABLE);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?serialization=nativejava"), UNUSABLE_SERIALIZATION);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?serialization=fastjson&release=2.7.23"), USABLE);
    ck_assert_int_eq(judged("dubbo://h:1/a.B?prefer.serialization=fastjson2&release=3.2.15"),
                     USABLE);
    ck_assert_str_eq(unusable_name(UNUSABLE_SERIALIZATION), "serialization");
    ck_assert_str_eq(unusable_name(UNUSABLE_ADDRESS), "address");
}
END_TEST

START_TEST(refused)
{
    static const char *const bad[] = {
        "garbage",
        "dubbo://h/a.B",
        "dubbo://h:0/a.B",
        "dubbo://h:70000/a.B",
        "dubbo://h 1:1/a.B",
        "dubbo://h1,h2:1/a.B",
        "dubbo://[zz::1]:1/a.B",
        "override://127.0.0.1/a.B?category=providers&disabled=true",
        "dubbo://h:1/a.B?category=configurators",
        "empty://0.0.0.0/a.B?category=providers",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_msg(!parse(bad[i]), "taken: %s", bad[i]);
        ck_assert(e.text[0] != '\0');
    }
}
END_TEST

START_TEST(numbers_that_are_none)
{
    ck_assert(parse("dubbo://h:1/a.B?weight=abc&timeout=99999999999&warmup=-1&timestamp=x"
                    "&payload=-5&a.timeout=-3&a.weight=-3&b.weight=x"));
    ck_assert_uint_eq(p.weight, 100);
    ck_assert_uint_eq(p.timeout_ms, 0);
    ck_assert_uint_eq(p.warmup_ms, 0);
    ck_assert_uint_eq(p.timestamp_ms, 0);
    ck_assert_uint_eq(p.payload, UINT32_MAX);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("a"), &written), 0);
    ck_assert_uint_eq(provider_weight(&p, STR("a"), 0), 0); /* Dubbo: less than 0 is 0 */
    ck_assert_uint_eq(provider_weight(&p, STR("b"), 0), 100);
}
END_TEST

START_TEST(method_parameters)
{
    ck_assert(parse("dubbo://h:1/a.B?z.timeout=1&a.weight=5&default.a.timeout=7&m.timeout=3"
                    "&default.m.timeout=4&timeout=50&x.y.timeout=9&.timeout=8&a.timeout=6"));
    ck_assert_uint_eq(p.n_method_params, 3);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("a"), &written), 6);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("m"), &written), 3);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("z"), &written), 1);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("x"), &written), 50);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR(""), &written), 50);
    ck_assert_uint_eq(provider_weight(&p, STR("a"), 0), 5);
    ck_assert_uint_eq(provider_weight(&p, STR("z"), 0), 100);
}
END_TEST

START_TEST(how_methods_are_balanced)
{
    uint32_t nodes = 0;
    struct str arguments;
    struct provider q;
    struct buf text;

    ck_assert(
        parse("dubbo://h:1/a.B?loadbalance=random&get.loadbalance=consistenthash&hash.nodes=80"
              "&get.hash.nodes=x&get.hash.arguments=0,2&default.put.hash.nodes=7&hash.timeout=5"));
    buf_init(&text, URL_MAX);
    provider_print(&p, NULL, 0, &text);
    for (int i = 0; i < 2; i++) { /* as it came, and out of the saved list */
        q = p;
        IS(provider_loadbalance(&q, STR("get")), "consistenthash");
        IS(provider_loadbalance(&q, STR("put")), "random");
        provider_hash(&q, STR("get"), &nodes, &arguments);
        ck_assert_uint_eq(nodes, 80);
        IS(arguments, "0,2");
        provider_hash(&q, STR("put"), &nodes, &arguments);
        ck_assert_uint_eq(nodes, 7);
        IS(arguments, "");
        provider_hash(&q, STR("hash"), &nodes, &arguments);
        ck_assert_uint_eq(nodes, 80);
        ck_assert_uint_eq(provider_timeout_ms(&q, STR("hash"), &written), 5);
        ck_assert_uint_eq(provider_timeout_ms(&q, STR("get"), &written), 0);
        ck_assert_msg(provider_from_url(buf_str(&text), &a, &p, &e), "%s", e.text);
    }
    buf_free(&text);
}
END_TEST

static bool matches(const char *url, const char *key)
{
    struct refkey k;

    ck_assert(parse(url));
    ck_assert_msg(refkey_parse(str_from(key), &k, &e), "%s: %s", key, e.text);
    return provider_matches(&p, &k);
}

START_TEST(configurators_are_written_over_the_url)
{
    static const char *const urls[] = {
        "override://h:1/a.B?category=configurators&weight=7&m.timeout=30&default.x=1",
        "override://h:2/a.B?disabled=true",
        "absent://0.0.0.0/a.B?timeout=5&methods=m",
    };
    const char *url = "dubbo://h:1/a.B?weight=50&timeout=9&m.timeout=3";
    const struct conf_consumer me = {STR("10.0.0.9"), STR("gw"), {STR("a.B"), STR_NONE, STR_NONE}};
    struct rules *over = rules_new(STR("x"));
    struct ruleset set = {.n = 0};
    struct provider other;
    struct routing_party party;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        ck_assert_int_eq(rules_add_url(over, RULE_NODE_CONFIGURATORS, str_from(urls[i]), me.ip, &e),
                         RULE_OK);
    ruleset_add(&set, over, STR_NONE);
    ck_assert(provider_from_url_under(str_from(url), &set, &me, &a, &p, &party, &e));
    ck_assert(str_is(party.protocol, "dubbo") && str_is(party.host, "h") && party.port == 1);
    ck_assert_uint_eq(party.n_params, 5); /* as written over */
    ck_assert_int_eq(p.unusable, USABLE);
    ck_assert_uint_eq(p.weight, 7);
    ck_assert_uint_eq(p.timeout_ms, 9);
    ck_assert_uint_eq(provider_timeout_ms(&p, STR("m"), &written), 30);
    ck_assert(written);
    (void)provider_timeout_ms(&p, STR("other"), &written);
    ck_assert(!written); /* it had one of its own */
    ck_assert(str_is(p.methods, "m"));
    ck_assert(provider_from_url_under(STR("dubbo://h:2/a.B"), &set, &me, &a, &other, NULL, &e));
    ck_assert_int_eq(other.unusable, UNUSABLE_DISABLED);
    ck_assert_uint_eq(provider_timeout_ms(&other, STR("m"), &written), 5);
    ck_assert(written);
    /* what is no provider stays none */
    ck_assert(!provider_from_url_under(STR("dubbo://h/a.B"), &set, &me, &a, &other, NULL, &e));
    rules_put(over);
}
END_TEST

START_TEST(matching)
{
    const char *bare = "dubbo://h:1/a.B";
    const char *full = "dubbo://h:1/orders/v1?interface=a.B&version=1.0&group=g1";
    const char *by_default = "dubbo://h:1/a.B?default.group=g1&default.version=1.0";

    ck_assert(matches(bare, "a.B"));
    ck_assert(matches(bare, "a.B:0.0.0"));
    ck_assert(matches(bare, "a.B:*@*"));
    ck_assert(!matches(bare, "a.B:1.0"));
    ck_assert(!matches(bare, "a.B@g1"));
    ck_assert(!matches(bare, "a.C"));
    ck_assert(matches("dubbo://h:1/a.B?version=0.0.0", "a.B"));
    ck_assert(matches("dubbo://h:1/a.B?interface=*", "a.C"));
    ck_assert(matches(full, "a.B:1.0@g1"));
    ck_assert(matches(full, "a.B:*@g0, g1"));
    ck_assert(matches(full, "a.B:1.0@*"));
    ck_assert(!matches(full, "a.B"));
    ck_assert(!matches(full, "a.B:1.0"));
    ck_assert(!matches(full, "a.B:1@g1"));
    ck_assert(!matches(full, "a.B:1.0@g,g11"));
    ck_assert(!matches(bare, "a.B@a,b"));
    ck_assert(matches(by_default, "a.B:1.0@g1"));
}
END_TEST

START_TEST(simplified_url_has_its_interface_in_the_path)
{
    ck_assert(matches("dubbo://192.0.2.2:21353/reg.api.OrderService?application=simp-27"
                      "&group=g1&release=2.7.23&version=1.0.0",
                      "reg.api.OrderService:1.0.0@g1"));
}
END_TEST

START_TEST(fixed_addresses)
{
    struct refkey k = {STR("a.B"), STR("1.0.0"), STR("g1")};

    arena_free(&a);
    ck_assert(provider_from_address(STR("10.0.0.5:20880"), &k, &a, &p, &e));
    IS(p.path, "a.B");
    IS(p.interface, "a.B");
    IS(p.version, "1.0.0");
    IS(p.group, "g1");
    ck_assert(
        provider_from_address(STR("dubbo://10.0.0.5:20880/x?group=g2&weight=7"), &k, &a, &p, &e));
    IS(p.path, "x");
    IS(p.group, "g2");
    ck_assert_uint_eq(p.weight, 7);
    k.version = k.group = STR("*");
    ck_assert(provider_from_address(STR("dubbo://[::1]:1"), &k, &a, &p, &e));
    IS(p.host, "::1");
    ck_assert(p.version.n == 0 && p.group.n == 0);
    ck_assert(!provider_from_address(STR("10.0.0.5"), &k, &a, &p, &e));
}
END_TEST

/* The table of docs/REGISTRY.md section 8.1. */
START_TEST(warm_up)
{
    static const struct {
        uint64_t up_ms;
        uint32_t weight;
    } rows[] = {{0, 1},       {1, 1},       {1000, 1},    {60000, 10},   {150000, 25},
                {300000, 50}, {599000, 99}, {599999, 99}, {600000, 100}, {86400000, 100}};
    const uint64_t start = UINT64_C(1796103915040);

    ck_assert(parse("dubbo://h:1/a.B?timestamp=1796103915040&m.weight=50&zero.weight=0"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ck_assert_uint_eq(provider_weight(&p, STR("x"), start + rows[i].up_ms), rows[i].weight);
    ck_assert_uint_eq(provider_weight(&p, STR("m"), start + 300000), 25);
    ck_assert_uint_eq(provider_weight(&p, STR("zero"), start + 300000), 0);
    ck_assert_uint_eq(provider_weight(&p, STR("x"), start - 5000), 1);      /* clock ahead */
    ck_assert_uint_eq(provider_weight(&p, STR("x"), start - 3600000), 100); /* clock wrong */
    p.warmup_ms = 0;
    ck_assert_uint_eq(provider_weight(&p, STR("x"), start + 1), 100);
    p.warmup_ms = 600000;
    p.timestamp_ms = 0;
    ck_assert_uint_eq(provider_weight(&p, STR("x"), start), 100);
    p.timestamp_ms = start;
    p.weight = INT32_MAX;
    ck_assert_uint_le(provider_weight(&p, STR("x"), start + 599999), INT32_MAX);
    ck_assert_uint_ge(provider_weight(&p, STR("x"), start + 599999), 2147000000);
}
END_TEST

TEST_MAIN("registry_provider", every_parameter_of_2_7, defaults, registered_urls_of_all_lines,
          print_keeps_everything, print_keeps_strange_names, not_for_us, refused,
          numbers_that_are_none, method_parameters, how_methods_are_balanced,
          configurators_are_written_over_the_url, matching,
          simplified_url_has_its_interface_in_the_path, fixed_addresses, warm_up)
