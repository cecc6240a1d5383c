#include "registry/network.h"

#include "tests/unit/registry_data.h"

static struct err e;

static union address address(const char *text)
{
    union address a;

    ck_assert_msg(address_from_text(str_from(text), 80, &a), "%s", text);
    return a;
}

static bool contains(const char *network, const char *text)
{
    struct network n;
    union address a = address(text);

    ck_assert_msg(network_parse(str_from(network), &n, &e), "%s", e.text);
    return network_contains(&n, &a);
}

START_TEST(prefixes)
{
    ck_assert(contains("10.0.0.0/8", "10.255.0.1"));
    ck_assert(!contains("10.0.0.0/8", "11.0.0.1"));
    ck_assert(contains("192.168.128.0/17", "192.168.255.255"));
    ck_assert(!contains("192.168.128.0/17", "192.168.127.255"));
    ck_assert(contains("10.1.2.3", "10.1.2.3"));
    ck_assert(!contains("10.1.2.3", "10.1.2.2"));
    ck_assert(contains("0.0.0.0/0", "1.2.3.4"));
    ck_assert(!contains("0.0.0.0/0", "::1"));
    ck_assert(contains("fd00::/8", "fdff::1"));
    ck_assert(!contains("fd00::/8", "fc00::1"));
    ck_assert(contains("2001:db8::/33", "2001:db8:7fff::1"));
    ck_assert(!contains("2001:db8::/33", "2001:db8:8000::1"));
    ck_assert(contains("::/0", "::1"));
    ck_assert(contains("10.0.0.0/8", "::ffff:10.0.0.1"));
}
END_TEST

START_TEST(no_networks)
{
    static const char *const bad[] = {
        "",        "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/-1", "10.0.0.1/8",  "host/8",
        "::1/129", "fd00::1/64",  "10.0.0.0/8x", "/8",          "10.0.0.0/8/8"};
    struct network n;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        e.text[0] = '\0';
        ck_assert_msg(!network_parse(str_from(bad[i]), &n, &e), "taken: %s", bad[i]);
        ck_assert(e.text[0] != '\0');
    }
}
END_TEST

static bool allowed(const char *text)
{
    union address a = address(text);

    return network_allows(NULL, 0, &a);
}

START_TEST(default_policy)
{
    static const char *const yes[] = {"10.0.0.1",    "127.0.0.1",       "::1",
                                      "192.0.2.2",   "8.8.8.8",         "fd00::2",
                                      "2001:db8::1", "100.100.100.201", "127.1"};
    static const char *const no[] = {"0.0.0.0",
                                     "0.1.2.3",
                                     "169.254.169.254",
                                     "169.254.0.1",
                                     "100.100.100.200",
                                     "224.0.0.1",
                                     "239.255.255.255",
                                     "255.255.255.255",
                                     "::",
                                     "fe80::1",
                                     "febf::1",
                                     "ff02::1",
                                     "fd00:ec2::254",
                                     "::ffff:169.254.169.254",
                                     "::ffff:0.0.0.0"};
    const union address none = {.sa.sa_family = AF_UNSPEC};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        ck_assert_msg(allowed(yes[i]), "%s", yes[i]);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        ck_assert_msg(!allowed(no[i]), "%s", no[i]);
    ck_assert(!network_allows(NULL, 0, &none));
}
END_TEST

START_TEST(configured_networks)
{
    struct network n[2];
    union address inside = address("169.254.7.7");
    union address other = address("192.168.0.1");
    union address unspecified = address("0.0.0.0");

    ck_assert(network_parse(STR("10.0.0.0/8"), &n[0], &e));
    ck_assert(network_parse(STR("169.254.0.0/16"), &n[1], &e));
    ck_assert(network_allows(n, 2, &inside)); /* asked for */
    ck_assert(!network_allows(n, 1, &inside));
    ck_assert(!network_allows(n, 2, &other));
    ck_assert(network_parse(STR("0.0.0.0/0"), &n[0], &e));
    ck_assert(network_allows(n, 1, &other));
    ck_assert(!network_allows(n, 1, &unspecified));
}
END_TEST

START_TEST(texts)
{
    union address a = address("127.1");
    struct buf b;

    buf_init(&b, 100);
    ck_assert_uint_eq(a.v4.sin_port, htons(80));
    address_print(&a, &b);
    ck_assert(buf_is(&b, "127.0.0.1"));
    a = address("fd00::2");
    buf_truncate(&b, 0);
    address_print(&a, &b);
    ck_assert(buf_is(&b, "fd00::2"));
    ck_assert(!address_from_text(STR("localhost"), 1, &a));
    ck_assert(!address_from_text(STR(""), 1, &a));
    ck_assert(!address_from_text((struct str){"1.2.3.4\0", 8}, 1, &a));
    ck_assert(!address_from_text(STR("fe80::1%no_such_if"), 1, &a));
    buf_truncate(&b, 0);
    address_print(&a, &b);
    ck_assert(buf_is(&b, "?"));
    buf_free(&b);
}
END_TEST

TEST_MAIN("registry_network", prefixes, no_networks, default_policy, configured_networks, texts)
