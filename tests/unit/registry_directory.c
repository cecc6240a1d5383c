#include <malloc.h>
#include <stdarg.h>

#include "base/ref.h"
#include "registry/directory.h"

#include "tests/unit/registry_data.h"

static struct arena a;
static struct provider list[64];
static size_t n;

static void add(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void add(const char *fmt, ...)
{
    char text[2048];
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ck_assert_msg(provider_from_url(str_from(text), &a, &list[n++], &e), "%s: %s", text, e.text);
}

static struct directory *build(void)
{
    const struct refkey k = {STR("a.B"), STR("1.0"), STR("g")};

    return directory_build(&k, list, n, DIRECTORY_REGISTRY);
}

static void start(void)
{
    arena_free(&a);
    n = 0;
}

START_TEST(sorted_by_identity)
{
    start();
    add("dubbo://b:2/p");
    add("dubbo://b:10/p?version=2");
    add("dubbo://b:10/p?version=1");
    add("dubbo://b:10/p?group=g");
    add("dubbo://b:10/o");
    add("dubbo://a:9/p");

    struct directory *d = build();
    static const char *const hosts[] = {"a", "b", "b", "b", "b", "b"};
    static const int ports[] = {9, 2, 10, 10, 10, 10};

    ck_assert_uint_eq(d->n, 6);
    for (size_t i = 0; i < d->n; i++) {
        ck_assert(str_is(d->providers[i].host, hosts[i]));
        ck_assert_int_eq(d->providers[i].port, ports[i]);
    }
    ck_assert(str_is(d->providers[2].path, "o"));
    ck_assert(str_is(d->providers[3].version, "1"));
    ck_assert(str_is(d->providers[5].group, "g"));
    ck_assert(str_is(d->key.interface, "a.B") && str_is(d->key.group, "g"));
    directory_put(d);
}
END_TEST

START_TEST(a_restart_leaves_one_candidate)
{
    for (int order = 0; order < 2; order++) {
        start();
        add("dubbo://h:1/p?timestamp=%d&pid=1", order == 0 ? 100 : 200);
        add("dubbo://h:1/p?timestamp=%d&pid=2", order == 0 ? 200 : 100);
        add("dubbo://other:1/p?timestamp=50");

        struct directory *d = build();

        ck_assert_uint_eq(d->n, 2);
        ck_assert_uint_eq(d->providers[0].timestamp_ms, 200);
        directory_put(d);
    }
}
END_TEST

START_TEST(dubbo_beats_tri_and_listed_beats_unlisted)
{
    start();
    add("tri://h:1/p?timestamp=900");
    add("dubbo://h:1/p?timestamp=1");
    add("dubbo://i:1/p?timestamp=900");
    list[n - 1].unlisted = true;
    add("dubbo://i:1/p?timestamp=1");

    struct directory *d = build();

    ck_assert_uint_eq(d->n, 2);
    ck_assert_int_eq(d->providers[0].unusable, USABLE);
    ck_assert(!d->providers[1].unlisted);
    directory_put(d);
}
END_TEST

START_TEST(counts)
{
    start();
    add("dubbo://a:1/p");
    add("dubbo://b:1/p?disabled=true");
    add("tri://c:1/p");
    add("tri://d:1/p");
    add("dubbo://e:1/p?ssl-enabled=true");

    struct directory *d = build();

    ck_assert_uint_eq(d->n, 5);
    ck_assert_uint_eq(d->n_usable, 1);
    ck_assert_uint_eq(d->n_ignored[USABLE], 0);
    ck_assert_uint_eq(d->n_ignored[UNUSABLE_PROTOCOL], 2);
    ck_assert_uint_eq(d->n_ignored[UNUSABLE_DISABLED], 1);
    ck_assert_uint_eq(d->n_ignored[UNUSABLE_TLS], 1);
    directory_put(d);
}
END_TEST

START_TEST(everything_is_copied)
{
    start();
    add("dubbo://a:1/p?token=t&m.timeout=5&methods=x");
    add("dubbo://b:1/p?token=t&m.timeout=5&methods=x");
    add("dubbo://c:1/p?token=u&m.timeout=6&k.weight=1");

    struct directory *d = build();

    arena_free(&a); /* and now nothing of the input may be used */
    memset(list, 0xee, sizeof(list));
    ck_assert(str_is(d->providers[2].token, "u"));
    bool written = false;

    ck_assert_uint_eq(provider_timeout_ms(&d->providers[1], STR("m"), &written), 5);
    ck_assert_uint_eq(provider_timeout_ms(&d->providers[2], STR("m"), &written), 6);
    ck_assert_uint_eq(provider_weight(&d->providers[2], STR("k"), 0), 1);
    ck_assert_ptr_eq(d->providers[0].token.p, d->providers[1].token.p);
    ck_assert_ptr_eq(d->providers[0].params, d->providers[1].params);
    directory_put(d);
}
END_TEST

START_TEST(empty)
{
    start();

    struct directory *d = build();

    ck_assert_uint_eq(d->n, 0);
    ck_assert_uint_eq(d->n_usable, 0);
    ck_assert(str_is(d->key.version, "1.0"));
    directory_put(d);
    directory_put(NULL);
}
END_TEST

/* The same list but for one change by `change`. */
static bool differs(void (*change)(struct provider *p))
{
    start();
    add("dubbo://a:1/p?m.timeout=5");
    add("dubbo://b:1/p?m.timeout=5");
    list[1].addr.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = 1};

    struct directory *before = build();

    change(&list[1]);

    struct directory *after = build();
    bool same = directory_equal(before, after);

    ck_assert_uint_gt(after->generation, before->generation);
    ck_assert_uint_eq(after->n, 2);
    directory_put(before);
    directory_put(after);
    return !same;
}

static void no_change(struct provider *p)
{
    (void)p;
}
static void change_token(struct provider *p)
{
    p->token = STR("t");
}
static void change_unlisted(struct provider *p)
{
    p->unlisted = true;
}
static void change_timestamp(struct provider *p)
{
    p->timestamp_ms++;
}
static void change_address(struct provider *p)
{
    p->addr.v4.sin_addr.s_addr = 7;
}
static void change_family(struct provider *p)
{
    p->addr.sa.sa_family = AF_UNSPEC;
}
static void change_interface(struct provider *p)
{
    p->interface = STR("q");
}
static void change_payload(struct provider *p)
{
    p->payload++;
}

static struct provider_params *changed_params(struct provider *p)
{
    struct provider_params *q = arena_alloc(&a, sizeof(*q) + sizeof(*q->methods));

    memcpy(q, p->params, sizeof(*q) + sizeof(*q->methods));
    p->params = q;
    return q;
}

static void change_method(struct provider *p)
{
    changed_params(p)->methods[0].timeout_ms++;
}

static void change_hash(struct provider *p)
{
    changed_params(p)->methods[0].hash_arguments = STR("1");
}

static void change_others(struct provider *p)
{
    changed_params(p)->others = STR("zone=east");
}

START_TEST(equality)
{
    ck_assert(!differs(no_change));
    ck_assert(differs(change_token));
    ck_assert(differs(change_unlisted));
    ck_assert(differs(change_timestamp));
    ck_assert(differs(change_address));
    ck_assert(differs(change_family));
    ck_assert(differs(change_interface));
    ck_assert(differs(change_payload));
    ck_assert(differs(change_method));
    ck_assert(differs(change_hash));
    ck_assert(differs(change_others));
}
END_TEST

/* No call would see it; an operator does. */
START_TEST(what_found_a_provider)
{
    start();
    add("dubbo://a:1/p?timestamp=5");
    add("dubbo://a:1/p?timestamp=5");
    list[0].found = FOUND_INTERFACE;
    list[1].found = FOUND_INSTANCE;

    struct directory *both = build();

    ck_assert_str_eq(provider_found_name(&both->providers[0]), "both");
    list[1].unlisted = true;

    struct directory *one = build();

    ck_assert_uint_eq(one->n, 1);
    ck_assert_str_eq(provider_found_name(&one->providers[0]), "interface");
    ck_assert(directory_equal(both, one));
    ck_assert(!directory_told_alike(both, one));
    ck_assert(directory_told_alike(one, one));
    directory_put(both);
    directory_put(one);
}
END_TEST

START_TEST(order_of_the_registry_does_not_matter)
{
    start();
    add("dubbo://a:1/p?timestamp=5&token=x");
    add("dubbo://a:1/p?timestamp=5&token=y");
    add("dubbo://c:1/p");

    struct directory *d = build();
    struct provider first = list[0];

    list[0] = list[2];
    list[2] = first;

    struct directory *again = build();

    ck_assert_uint_eq(d->n, 2);
    ck_assert(directory_equal(d, again));
    directory_put(d);
    directory_put(again);
}
END_TEST

/*
 * Ten providers with URLs of some 450 bytes, as the memory bar of a reference counts them (8 KiB with
 * the views of two workers).  Measured: 3,160 bytes, 2,720 of them the ten structs.
 */
START_TEST(memory_of_ten_providers)
{
    struct directory *d = NULL;
    size_t bytes = 0;

    start();
    for (int i = 0; i < 10; i++)
        add("dubbo://10.20.30.%d:20880/com.example.order.OrderQueryService?application=order-"
            "service&deprecated=false&dubbo=2.0.2&dynamic=true&generic=false&interface=com.example."
            "order.OrderQueryService&methods=getOrder,listOrders,countOrders,findByUser,cancel,"
            "archive&prefer.serialization=fastjson2,hessian2&release=3.2.15&revision=1.0.0"
            "&service-name-mapping=true&side=provider&timeout=2500&timestamp=17961039153%02d"
            "&token=8f14e45fceea167a&version=1.0.0&weight=100&getOrder.timeout=500",
            i, i);
    d = build();
    bytes = malloc_usable_size(d) + d->arena.used;
    fprintf(stderr, "directory of 10 providers: %zu bytes (%zu per provider struct)\n", bytes,
            sizeof(struct provider));
    ck_assert_uint_lt(bytes, 3840);
    directory_put(d);
}
END_TEST

START_TEST(ten_thousand_providers)
{
    enum { MANY = 10000 };
    struct provider *many = calloc(MANY, sizeof(*many));
    struct refkey k = {STR("a.B"), STR_NONE, STR_NONE};
    struct directory *d = NULL;

    start();
    add("dubbo://a:1/a.B?methods=x,y&token=t");
    for (int i = 0; i < MANY; i++) {
        many[i] = list[0];
        many[i].host = arena_printf(&a, "10.1.%d.%d", i * 7919 % MANY / 256, i * 7919 % 256);
        many[i].port = (uint16_t)(1 + i % 5000);
    }
    d = directory_build(&k, many, MANY, DIRECTORY_STATIC);
    ck_assert_uint_eq(d->n_usable, d->n);
    ck_assert_uint_gt(d->n, MANY / 2);
    for (size_t i = 1; i < d->n; i++)
        ck_assert_int_le(str_cmp(d->providers[i - 1].host, d->providers[i].host), 0);
    directory_put(d);
    free(many);
}
END_TEST

TEST_MAIN("registry_directory", sorted_by_identity, a_restart_leaves_one_candidate,
          dubbo_beats_tri_and_listed_beats_unlisted, counts, everything_is_copied, empty, equality,
          what_found_a_provider, order_of_the_registry_does_not_matter, memory_of_ten_providers,
          ten_thousand_providers)
