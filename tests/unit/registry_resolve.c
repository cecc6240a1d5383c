#include <arpa/inet.h>

#include "base/clock.h"
#include "registry/resolve.h"

#include "tests/unit/registry_data.h"

static int asked;
static bool fails;
static uint64_t lookup_takes_ms;
static uint64_t now_ms = 1000000;

/* In place of that of base/: the test decides what time it is. */
uint64_t clock_ms(void)
{
    return now_ms;
}

static bool fake(const char *name, union address *out, struct err *e)
{
    asked++;
    now_ms += lookup_takes_ms;
    if (fails) {
        err_set(e, "%s: no", name);
        return false;
    }
    *out = (union address){.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)}};
    return true;
}

static union address got;
static struct err e;

START_TEST(numeric_hosts_ask_nobody)
{
    struct resolver *r = resolver_new(fake);

    ck_assert(resolve(r, STR("10.0.0.9"), 20880, &got, &e));
    ck_assert_uint_eq(got.v4.sin_addr.s_addr, htonl(0x0a000009));
    ck_assert_uint_eq(got.v4.sin_port, htons(20880));
    ck_assert(resolve(r, STR("::1"), 7, &got, &e));
    ck_assert_int_eq(got.sa.sa_family, AF_INET6);
    ck_assert_uint_eq(got.v6.sin6_port, htons(7));
    ck_assert(!resolve(r, STR("not a host"), 7, &got, &e));
    ck_assert_int_eq(asked, 0);
    resolver_free(r);
}
END_TEST

START_TEST(one_question_per_name)
{
    struct resolver *r = resolver_new(fake);

    for (uint16_t port = 1; port < 100; port++) {
        ck_assert(resolve(r, STR("h"), port, &got, &e));
        ck_assert_uint_eq(got.v4.sin_port, htons(port));
    }
    ck_assert_int_eq(asked, 1);
    ck_assert(resolve(r, STR("i"), 1, &got, &e));
    ck_assert_int_eq(asked, 2);
    resolver_free(r);
}
END_TEST

START_TEST(negative_answers_are_kept)
{
    struct resolver *r = resolver_new(fake);

    fails = true;
    for (int i = 0; i < 5; i++) {
        e.text[0] = '\0';
        ck_assert(!resolve(r, STR("h"), 1, &got, &e));
        ck_assert_str_eq(e.text, "h: no");
    }
    ck_assert_int_eq(asked, 1);
    resolver_free(r);
}
END_TEST

START_TEST(a_dead_name_server_costs_one_wait)
{
    struct resolver *r = resolver_new(fake);

    fails = true;
    lookup_takes_ms = RESOLVE_SLOW_MS;
    ck_assert(!resolve(r, STR("a"), 1, &got, &e));
    ck_assert(!resolve(r, STR("b"), 1, &got, &e));
    ck_assert(!resolve(r, STR("c"), 1, &got, &e));
    ck_assert_int_eq(asked, 1);
    now_ms += RESOLVE_NEGATIVE_MS;
    lookup_takes_ms = 0;
    fails = false;
    ck_assert(resolve(r, STR("b"), 1, &got, &e));
    resolver_free(r);
}
END_TEST

START_TEST(times_to_live)
{
    struct resolver *r = resolver_new(fake);

    ck_assert(resolve(r, STR("h"), 1, &got, &e));
    now_ms += RESOLVE_POSITIVE_MS - 1;
    ck_assert(resolve(r, STR("h"), 1, &got, &e));
    ck_assert_int_eq(asked, 1);
    now_ms += 1;
    fails = true;
    ck_assert(resolve(r, STR("h"), 1, &got, &e)); /* asked in vain: the known address stays */
    ck_assert_int_eq(asked, 2);
    ck_assert_uint_eq(got.v4.sin_addr.s_addr, htonl(0x0a000001));
    now_ms += RESOLVE_NEGATIVE_MS - 1;
    ck_assert(resolve(r, STR("h"), 1, &got, &e));
    ck_assert_int_eq(asked, 2);
    now_ms += 1;
    ck_assert(resolve(r, STR("h"), 1, &got, &e));
    ck_assert_int_eq(asked, 3);
    resolver_free(r);
}
END_TEST

START_TEST(the_cache_is_bounded)
{
    struct resolver *r = resolver_new(fake);
    char name[32];

    for (int i = 0; i < RESOLVE_ENTRIES_MAX + 10; i++) {
        snprintf(name, sizeof(name), "h%d", i);
        ck_assert(resolve(r, str_from(name), 1, &got, &e));
    }
    asked = 0;
    ck_assert(resolve(r, str_from(name), 1, &got, &e)); /* the newest is there */
    ck_assert_int_eq(asked, 0);
    ck_assert(resolve(r, STR("h0"), 1, &got, &e)); /* the oldest went */
    ck_assert_int_eq(asked, 1);
    resolver_free(r);
}
END_TEST

START_TEST(the_system_knows_localhost)
{
    struct resolver *r = resolver_new(NULL);

    ck_assert_msg(resolve(r, STR("localhost"), 1, &got, &e), "%s", e.text);
    ck_assert(got.sa.sa_family == AF_INET || got.sa.sa_family == AF_INET6);
    resolver_free(r);
    resolver_free(NULL);
}
END_TEST

TEST_MAIN("registry_resolve", numeric_hosts_ask_nobody, one_question_per_name,
          negative_answers_are_kept, a_dead_name_server_costs_one_wait, times_to_live,
          the_cache_is_bounded, the_system_knows_localhost)
