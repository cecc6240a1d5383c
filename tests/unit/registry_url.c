#include "base/fatal.h"
#include "registry/url.h"

#include "tests/unit/registry_data.h"

static struct url u;
static struct err e;

static bool parse(const char *text)
{
    e.text[0] = '\0';
    return url_parse(str_from(text), &u, &e);
}

static bool fails(const char *text)
{
    bool ok = parse(text);

    if (ok || e.text[0] == '\0')
        fprintf(stderr, "taken, or refused without a sentence: %s\n", text);
    return !ok && e.text[0] != '\0';
}

#define IS(s, text) ck_assert_msg(str_is((s), (text)), "\"" STR_FMT "\"", STR_ARG(s))

/* Decoding a registered node and encoding it again gives the same bytes. */
static void round_trip(struct str node)
{
    struct arena a;
    struct buf again;
    struct str text = STR_NONE;

    arena_init(&a);
    buf_init(&again, URL_NODE_MAX);
    ck_assert_msg(url_decode_node(node, &a, &text, &e), "%s", e.text);
    url_encode(text, &again);
    ck_assert(str_eq(buf_str(&again), node));
    ck_assert_msg(url_parse(text, &u, &e), "%s", e.text);
    ck_assert(url_host_ok(u.host));
    buf_free(&again);
    arena_free(&a);
}

START_TEST(registered_nodes_survive_a_round_trip)
{
    ck_assert_int_eq(each_node("providers.txt", round_trip), 23);
    ck_assert_int_eq(each_node("others.txt", round_trip), 11);
}
END_TEST

START_TEST(all_parts)
{
    ck_assert(parse("zookeeper://me:s3:c@[fd00::2]:2181/a/b?k=v=w&empty=&bare&&k2=%41+b"));
    IS(u.scheme, "zookeeper");
    IS(u.user, "me");
    IS(u.password, "s3:c");
    IS(u.host, "fd00::2");
    IS(u.authority, "[fd00::2]:2181");
    ck_assert_uint_eq(u.port, 2181);
    IS(u.path, "a/b");
    ck_assert_uint_eq(u.n_params, 4);
    IS(url_param(&u, STR("k")), "v=w");
    IS(url_param(&u, STR("k2")), "%41+b"); /* values stay as they are */
    ck_assert_ptr_nonnull(url_param(&u, STR("bare")).p);
    ck_assert_ptr_nonnull(url_param(&u, STR("empty")).p);
    ck_assert_ptr_null(url_param(&u, STR("none")).p);
}
END_TEST

START_TEST(authority_forms)
{
    ck_assert(parse("dubbo://h"));
    IS(u.host, "h");
    ck_assert_uint_eq(u.port, 0);
    ck_assert(parse("dubbo://h:1?a=b://c/d"));
    IS(u.host, "h");
    ck_assert_uint_eq(u.path.n, 0);
    IS(url_param(&u, STR("a")), "b://c/d");
    ck_assert(parse("dubbo://fd00::2:20880/p")); /* unbracketed: the last colon */
    IS(u.host, "fd00::2");
    ck_assert_uint_eq(u.port, 20880);
    ck_assert(parse("dubbo://[fe80::1%eth0]:1/p"));
    IS(u.host, "fe80::1%eth0");
    ck_assert(parse("zookeeper://h1:2181,h2:2182"));
    IS(u.authority, "h1:2181,h2:2182");
}
END_TEST

START_TEST(no_urls)
{
    char long_one[URL_MAX + 2];

    ck_assert(fails(""));
    ck_assert(fails("h:1"));
    ck_assert(fails("://h:1"));
    ck_assert(fails("du bbo://h:1"));
    ck_assert(fails("dubbo://"));
    ck_assert(fails("dubbo:///path"));
    ck_assert(fails("dubbo://:1"));
    ck_assert(fails("dubbo://h:0"));
    ck_assert(fails("dubbo://h:65536"));
    ck_assert(fails("dubbo://h:"));
    ck_assert(fails("dubbo://h:-1"));
    ck_assert(fails("dubbo://[::1:20880"));
    ck_assert(fails("dubbo://[::1]x:20880"));
    ck_assert(fails("dubbo://[]:1"));
    ck_assert(fails("dubbo://h:1/\x01"));
    ck_assert(fails("dubbo://h:1/\xff"));
    ck_assert(!url_parse((struct str){"dubbo://h:1/\0", 13}, &u, &e));

    memset(long_one, 'a', sizeof(long_one));
    memcpy(long_one, "dubbo://h:1/", 12);
    ck_assert(!url_parse((struct str){long_one, URL_MAX + 1}, &u, &e));
    ck_assert(url_parse((struct str){long_one, URL_MAX}, &u, &e));
}
END_TEST

START_TEST(number_of_parameters_is_bounded)
{
    struct buf b;

    buf_init(&b, URL_MAX);
    buf_add_str(&b, STR("dubbo://h:1/?"));
    for (int i = 0; i < URL_PARAMS_MAX; i++)
        buf_printf(&b, "k%d&", i);
    ck_assert(url_parse(buf_str(&b), &u, &e));
    ck_assert_uint_eq(u.n_params, URL_PARAMS_MAX);
    buf_add_str(&b, STR("one=more"));
    ck_assert(!url_parse(buf_str(&b), &u, &e));
    buf_free(&b);
}
END_TEST

START_TEST(default_keys_yield_to_plain_ones)
{
    ck_assert(parse("dubbo://h:1/p?default.timeout=5&timeout=7&default.group=g&x=1&x=2"));
    IS(url_param(&u, STR("timeout")), "7");
    IS(url_param(&u, STR("group")), "g");
    IS(url_param(&u, STR("x")), "2"); /* Java maps: the last one */
    ck_assert(parse("dubbo://h:1/p?timeout=7&default.timeout=5"));
    IS(url_param(&u, STR("timeout")), "7");
}
END_TEST

START_TEST(percent_coding)
{
    struct buf b;

    buf_init(&b, 1000);
    url_encode(STR("aZ09.-*_ /?=&%+~$\xc3\xa4"), &b);
    ck_assert(buf_is(&b, "aZ09.-*_+%2F%3F%3D%26%25%2B%7E%24%C3%A4"));
    buf_truncate(&b, 0);
    ck_assert(url_decode(STR("a+b%2fc%25%C3%a4"), &b));
    ck_assert(buf_is(&b, "a b/c%\xc3\xa4"));
    ck_assert(!url_decode(STR("%"), &b));
    ck_assert(!url_decode(STR("%4"), &b));
    ck_assert(!url_decode(STR("%4g"), &b));
    ck_assert(!url_decode(STR("%-1"), &b));
    buf_free(&b);
}
END_TEST

START_TEST(addresses_are_masked)
{
    static const char *const cases[][2] = {
        {"zookeeper://h:1", "zookeeper://h:1"},
        {"zookeeper://u:p@h:1?backup=i:2", "zookeeper://***@h:1?backup=i:2"},
        {"zookeeper://u:p@q@h:1", "zookeeper://***@h:1"},
        {"zookeeper://u:p/q@h:1", "zookeeper://***@h:1"},
        {"u:p@h", "***@h"},
        {"", ""},
        {":", ":"},
        {"zookeeper://", "zookeeper://"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;

        buf_init(&b, 256);
        url_print_masked(str_from(cases[i][0]), &b);
        ck_assert_msg(str_is(buf_str(&b), cases[i][1]), "%s: " STR_FMT, cases[i][0],
                      STR_ARG(buf_str(&b)));
        buf_free(&b);
    }
}
END_TEST

START_TEST(hosts)
{
    ck_assert(url_host_ok(STR("10.0.0.1")));
    ck_assert(url_host_ok(STR("my_host-1.example.com")));
    ck_assert(url_host_ok(STR("::1")));
    ck_assert(url_host_ok(STR("fe80::1%eth0")));
    ck_assert(url_host_ok(STR("::ffff:10.0.0.1")));
    ck_assert(!url_host_ok(STR("")));
    ck_assert(!url_host_ok(STR("a b")));
    ck_assert(!url_host_ok(STR("h1,h2")));
    ck_assert(!url_host_ok(STR("-x")));
    ck_assert(!url_host_ok(STR("a:b")));
    ck_assert(!url_host_ok(STR("1:2:3")));
    ck_assert(!url_host_ok(STR("::1%")));
    ck_assert(!url_host_ok(STR("::1%a/b")));
    ck_assert(!url_host_ok(STR("b\xc3\xbc"
                               "cher")));
}
END_TEST

START_TEST(texts)
{
    ck_assert(url_text_ok(STR("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")));
    ck_assert(url_text_ok(STR("\xf4\x8f\xbf\xbf")));
    ck_assert(!url_text_ok(STR("\xed\xa0\x80")));     /* surrogate */
    ck_assert(!url_text_ok(STR("\xc0\xaf")));         /* overlong */
    ck_assert(!url_text_ok(STR("\xe0\x9f\xbf")));     /* overlong */
    ck_assert(!url_text_ok(STR("\xf0\x8f\xbf\xbf"))); /* overlong */
    ck_assert(!url_text_ok(STR("\xf4\x90\x80\x80"))); /* above U+10FFFF */
    ck_assert(!url_text_ok(STR("\xe2\x82")));         /* cut */
    ck_assert(!url_text_ok(STR("a\x7f")));
    ck_assert(!url_text_ok(STR("a\n")));
}
END_TEST

TEST_MAIN("registry_url", registered_nodes_survive_a_round_trip, all_parts, authority_forms,
          no_urls, number_of_parameters_is_bounded, default_keys_yield_to_plain_ones,
          percent_coding, addresses_are_masked, hosts, texts)
