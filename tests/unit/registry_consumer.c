#include "registry/consumer.h"

#include "tests/unit/registry_data.h"

static const struct refkey full = {{"reg.api.OrderService", 20}, {"1.0.0", 5}, {"g1", 2}};

static bool url_is(const struct refkey *k, const struct consumer_opts *o, const char *expected)
{
    struct buf b;
    bool same = false;

    buf_init(&b, URL_MAX);
    consumer_url(k, o, &b);
    same = buf_is(&b, expected);
    buf_free(&b);
    return same;
}

/* VERSION of the build decides the release, so the expected text is made from it. */
static const char *with_release(const char *before, const char *after)
{
    static char text[URL_MAX];

    snprintf(text, sizeof(text), "%srelease=gateway-%.*s%s", before, (int)strcspn(VERSION, "."),
             VERSION, after);
    return text;
}

START_TEST(exact_form)
{
    const struct consumer_opts o = {
        .ip = STR("192.0.2.2"), .application = STR("dubbogate"), .instance = STR("8080")};
    const struct refkey bare = {full.interface, STR_NONE, STR_NONE};

    ck_assert(url_is(&full, &o,
                     with_release("consumer://192.0.2.2/reg.api.OrderService?application=dubbogate"
                                  "&category=consumers&check=false&dubbo=2.0.2&generic=true"
                                  "&group=g1&instance=8080&interface=reg.api.OrderService&",
                                  "&side=consumer&sticky=false&version=1.0.0")));
    ck_assert(url_is(&bare, &o,
                     with_release("consumer://192.0.2.2/reg.api.OrderService?application=dubbogate"
                                  "&category=consumers&check=false&dubbo=2.0.2&generic=true"
                                  "&instance=8080&interface=reg.api.OrderService&",
                                  "&side=consumer&sticky=false")));
}
END_TEST

START_TEST(values_are_encoded_and_own_ones_stay)
{
    const struct url_param more[] = {
        {STR("owner"), STR("a&b=c d")}, {STR("side"), STR("provider")}, {STR("a key"), STR("")}};
    const struct consumer_opts o = {.ip = STR("fd00::2"),
                                    .application = STR("g\xc3\xa4te"),
                                    .parameters = more,
                                    .n_parameters = ARRAY_LEN(more)};

    ck_assert(url_is(&full, &o,
                     with_release("consumer://[fd00::2]/reg.api.OrderService?a+key="
                                  "&application=g%C3%A4te&category=consumers&check=false"
                                  "&dubbo=2.0.2&generic=true&group=g1"
                                  "&interface=reg.api.OrderService&owner=a%26b%3Dc+d&",
                                  "&side=consumer&sticky=false&version=1.0.0")));
}
END_TEST

START_TEST(the_node_is_a_pure_function_and_reads_back)
{
    const struct consumer_opts o = {
        .ip = STR("192.0.2.2"), .application = STR("dubbogate"), .instance = STR("8080")};
    struct buf once;
    struct buf twice;
    struct buf plain;
    struct arena a;
    struct str text = STR_NONE;
    struct url u;
    struct err e;

    arena_init(&a);
    buf_init(&once, URL_NODE_MAX);
    buf_init(&twice, URL_NODE_MAX);
    buf_init(&plain, URL_NODE_MAX);
    consumer_node(&full, &o, &once);
    consumer_node(&full, &o, &twice);
    consumer_url(&full, &o, &plain);
    ck_assert(str_eq(buf_str(&once), buf_str(&twice)));
    ck_assert_uint_eq(str_find(buf_str(&once), '/'), once.len);
    ck_assert(url_decode_node(buf_str(&once), &a, &text, &e));
    ck_assert(str_eq(text, buf_str(&plain)));
    ck_assert(url_parse(text, &u, &e));
    ck_assert(str_is(url_param(&u, STR("category")), "consumers"));
    ck_assert(!str_contains(text, STR("timestamp")) && !str_contains(text, STR("pid=")));
    buf_free(&once);
    buf_free(&twice);
    buf_free(&plain);
    arena_free(&a);
}
END_TEST

TEST_MAIN("registry_consumer", exact_form, values_are_encoded_and_own_ones_stay,
          the_node_is_a_pure_function_and_reads_back)
