/*
 * The ring of consistenthash against Dubbo's own class (tests/vectors/consistenthash makes tests/data/consistenthash.json).
 */
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <jansson.h>

#include "base/hash.h"
#include "codec/java_text.h"
#include "gateway/balance.h"
#include "gateway/balance_state.h"
#include "gateway/hash_ring.h"
#include "gateway/refs.h"

enum { ENDS_MAX = 128, ARGS_MAX = 4, KEY_MAX = 4096 };

static json_t *vectors;
static struct arena a;
static struct ref ref;
static struct provider providers[ENDS_MAX];
static struct endpoint ends[ENDS_MAX];
static struct endpoint *usable[ENDS_MAX];

static void forget(void)
{
    balance_state_free(ref.balance);
    ref = (struct ref){0};
}

static void list_of(json_t *ring)
{
    json_t *addresses = json_object_get(ring, "addresses");
    const char *parameters = json_string_value(json_object_get(ring, "parameters"));
    struct err e = {0};

    forget();
    ref.usable = usable;
    ref.n_usable = (uint32_t)json_array_size(addresses);
    for (size_t i = 0; i < ref.n_usable; i++) {
        struct str url = arena_printf(&a, "dubbo://%s/demo.S?interface=demo.S%s",
                                      json_string_value(json_array_get(addresses, i)), parameters);

        ck_assert_msg(provider_from_url(url, &a, &providers[i], &e), "%s", e.text);
        ends[i] = (struct endpoint){.provider = &providers[i]};
        usable[i] = &ends[i];
    }
}

/* ---------------------------------------------------------------- points */

static void check_points(json_t *ring, const struct hash_ring *r)
{
    json_t *points = json_object_get(ring, "points");
    json_t *point = NULL;
    struct buf text;
    uint8_t digest[16];
    char hex[33];
    size_t i = 0;

    json_array_foreach(points, i, point)
    {
        ck_assert_uint_lt(i, r->n);
        ck_assert_int_eq(r->points[i].hash, json_integer_value(json_array_get(point, 0)));
        ck_assert_int_eq(r->points[i].index, json_integer_value(json_array_get(point, 1)));
    }
    buf_init(&text, 1 << 20);
    for (i = 0; i < r->n; i++)
        buf_printf(&text, "%u %u\n", r->points[i].hash, r->points[i].index);
    ck_assert_int_eq(gnutls_hash_fast(GNUTLS_DIG_MD5, text.data, text.len, digest), 0);
    for (i = 0; i < sizeof(digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    ck_assert_str_eq(hex, json_string_value(json_object_get(ring, "md5")));
    buf_free(&text);
}

/* ---------------------------------------------------------------- keys and choices */

static size_t read_args(json_t *list, struct arg *args, struct jtype *types)
{
    json_t *v = NULL;
    size_t i = 0;

    json_array_foreach(list, i, v)
    {
        const char *type = json_string_value(json_object_get(v, "type"));
        struct err e = {0};

        ck_assert_uint_lt(i, ARGS_MAX);
        if (type[0] != '\0')
            ck_assert_msg(jtype_parse(str_from(type), &a, &types[i], &e), "%s", e.text);
        args[i] = (struct arg){.json = str_from(json_string_value(json_object_get(v, "json"))),
                               .type = type[0] != '\0' ? &types[i] : NULL};
    }
    return i;
}

/* String.valueOf() as ours, where the key is made of all arguments in order. */
static void check_text(json_t *pick, const struct arg *args, size_t n, const char *name)
{
    char bytes[KEY_MAX];
    struct buf text = {.data = (uint8_t *)bytes, .cap = KEY_MAX, .limit = KEY_MAX};
    const char *expected = json_string_value(json_object_get(pick, "key"));

    if (n != 1 || strcmp(name, "three") != 0)
        return;
    java_text_add(&args[0], &text);
    bytes[text.len] = '\0';
    ck_assert_str_eq(bytes, expected);
}

static void check_pick(json_t *pick, const char *name)
{
    struct arg args[ARGS_MAX];
    struct jtype types[ARGS_MAX];
    size_t n = read_args(json_object_get(pick, "args"), args, types);
    struct balance_wish wish = {.args = args, .n_args = n};
    const struct balance_call call = {.method = STR("get"), .wish = &wish};
    struct ring_walk walk;
    size_t index = 0;
    const char *key = json_string_value(json_object_get(pick, "key"));

    check_text(pick, args, n, name);
    walk = balance_ring_walk(&ref, &call);
    ck_assert(ring_walk_next(&walk, &index));
    ck_assert_msg((json_int_t)index == json_integer_value(json_object_get(pick, "index")),
                  "%s, key %s: %zu", name, key, index);
    wish.hash_key = str_from(key); /* the key of a route: the same */
    walk = balance_ring_walk(&ref, &call);
    ck_assert(ring_walk_next(&walk, &index));
    ck_assert_int_eq((json_int_t)index, json_integer_value(json_object_get(pick, "index")));
}

START_TEST(dubbo_vectors)
{
    json_t *ring = json_array_get(vectors, (size_t)_i);
    const char *name = json_string_value(json_object_get(ring, "name"));
    json_t *pick = NULL;
    size_t i = 0;
    uint32_t nodes = 0;
    struct str arguments;

    list_of(ring);
    provider_hash(ref.usable[0]->provider, STR("get"), &nodes, &arguments);
    check_points(ring, balance_ring(&ref, nodes != 0 ? nodes : RING_NODES_DEFAULT));
    json_array_foreach(json_object_get(ring, "picks"), i, pick)
    {
        check_pick(pick, name);
    }
    ck_assert_uint_gt(i, 40);
}
END_TEST

/* The operator's numbers win over those of the URL. */
START_TEST(numbers_of_the_operator)
{
    const struct arg args[] = {{.json = STR("\"a\"")}, {.json = STR("\"user-5\"")}};
    const struct balance_wish wish = {
        .args = args, .n_args = 2, .hash_arguments = STR("1"), .hash_nodes = 8};
    const struct balance_call call = {.method = STR("get"), .wish = &wish};
    struct ring_walk w;
    size_t index = 0;

    list_of(json_array_get(vectors, 0));
    w = balance_ring_walk(&ref, &call);
    ck_assert_uint_eq(w.ring->nodes, 8);
    ck_assert(ring_walk_next(&w, &index));
    w = hash_ring_walk(balance_ring(&ref, 8), hash_ring_key(STR("user-5")));
    size_t expected = 0;

    ck_assert(ring_walk_next(&w, &expected));
    ck_assert_uint_eq(index, expected);
}
END_TEST

/* ---------------------------------------------------------------- parts of a list */

static size_t first_but(struct hash_ring *r, uint32_t hash, size_t left_out)
{
    struct ring_walk w = hash_ring_walk(r, hash);
    size_t i = left_out;

    while (i == left_out)
        ck_assert(ring_walk_next(&w, &i));
    return i;
}

/* Passing somebody by leads where a ring without him leads; the others' keys stay. */
START_TEST(passing_one_by)
{
    struct endpoint *fewer[ENDS_MAX];
    struct hash_ring *all = NULL;
    struct hash_ring *part = NULL;
    const size_t out = 3;
    size_t n = 0;

    list_of(json_array_get(vectors, 3));
    ck_assert_uint_eq(ref.n_usable, 100);
    for (size_t i = 0; i < ref.n_usable; i++) {
        if (i != out)
            fewer[n++] = usable[i];
    }
    all = hash_ring_new(usable, ref.n_usable, 160);
    part = hash_ring_new(fewer, n, 160);
    for (uint32_t k = 0; k < 20000; k++) {
        uint32_t hash = k * 214748;
        size_t i = SIZE_MAX;
        struct ring_walk w = hash_ring_walk(part, hash);

        ck_assert(ring_walk_next(&w, &i));
        ck_assert_ptr_eq(usable[first_but(all, hash, out)], fewer[i]);
    }
    hash_ring_free(all);
    hash_ring_free(part);
}
END_TEST

START_TEST(a_walk_meets_everybody_once)
{
    struct hash_ring *r = NULL;

    list_of(json_array_get(vectors, 3));
    r = hash_ring_new(usable, ref.n_usable, 160);
    for (uint32_t k = 0; k < 50; k++) {
        struct ring_walk w = hash_ring_walk(r, k * 85899345);
        unsigned met[ENDS_MAX] = {0};
        size_t n = 0;
        size_t i = 0;

        for (n = 0; ring_walk_next(&w, &i); n++)
            ck_assert_uint_eq(met[i]++, 0);
        ck_assert_uint_eq(n, ref.n_usable);
    }
    hash_ring_free(r);
}
END_TEST

START_TEST(a_ring_is_made_once)
{
    struct hash_ring *r = NULL;

    list_of(json_array_get(vectors, 0));
    r = balance_ring(&ref, 160);
    ck_assert_ptr_eq(balance_ring(&ref, 160), r);
    ck_assert_ptr_ne(balance_ring(&ref, 80), r);
    ck_assert_ptr_eq(balance_ring(&ref, 160), r);
    ref.set_version++;
    ref.n_usable = 2;
    ck_assert_uint_eq(balance_ring(&ref, 160)->n, 320);
    ck_assert_uint_eq(balance_ring(&ref, 1)->nodes, RING_NODES_MIN);
    ck_assert_uint_eq(balance_ring(&ref, UINT32_MAX)->nodes, RING_NODES_MAX);
    for (unsigned i = 0; i < 100; i++) /* methods may ask for anything */
        ck_assert_uint_eq(balance_ring(&ref, 100 + i)->nodes, 100 + i);
}
END_TEST

/* ---------------------------------------------------------------- keys that have no equal in Java */

static const char *text_of(const char *type, const char *json)
{
    static char bytes[KEY_MAX];
    struct buf text = {.data = (uint8_t *)bytes, .cap = KEY_MAX, .limit = KEY_MAX};
    struct jtype t;
    struct err e = {0};

    if (type != NULL)
        ck_assert_msg(jtype_parse(str_from(type), &a, &t, &e), "%s", e.text);
    const struct arg arg = {.json = str_from(json), .type = type != NULL ? &t : NULL};

    java_text_add(&arg, &text);
    bytes[text.len] = '\0';
    return bytes;
}

START_TEST(other_values)
{
    ck_assert_str_eq(text_of(NULL, " { \"a\" : [1, 2.50 , {}] ,\n\"b\\u0041\": null, \"c\":[] } "),
                     "{\"a\":[1,2.50,{}],\"bA\":null,\"c\":[]}");
    ck_assert_str_eq(text_of("java.util.List", "[ \"x\", true ]"), "[\"x\",true]");
    ck_assert_str_eq(text_of("java.util.Date", "\"2024-01-02T03:04:05Z\""), "2024-01-02T03:04:05Z");
    ck_assert_str_eq(text_of("demo.Color", "\"RED\""), "RED");
    ck_assert_str_eq(text_of("long", "\" 042 \""), "42");
    ck_assert_str_eq(text_of("double", "\"NaN\""), "NaN");
    ck_assert_str_eq(text_of("double", "\"2.50\""), "2.5");
    ck_assert_str_eq(text_of("java.lang.String", "12.50"), "12.50");
    ck_assert_str_eq(text_of(NULL, "123456789012345678901234567890"),
                     "123456789012345678901234567890");
    ck_assert_str_eq(text_of(NULL, "1e400"), "1e400");
    ck_assert_str_eq(text_of("java.math.BigDecimal", "1e99999999999"), "1e99999999999");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_ring");
    TCase *t = tcase_create("ring");
    SRunner *runner = srunner_create(s);
    json_error_t je;
    int failed = 0;

    hash_seed(1);
    vectors = json_load_file("tests/data/consistenthash.json", 0, &je);
    if (vectors == NULL) {
        fprintf(stderr, "tests/data/consistenthash.json: %s\n", je.text);
        return EXIT_FAILURE;
    }
    arena_init(&a);
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_loop_test(t, dubbo_vectors, 0, (int)json_array_size(vectors));
    tcase_add_test(t, numbers_of_the_operator);
    tcase_add_test(t, passing_one_by);
    tcase_add_test(t, a_walk_meets_everybody_once);
    tcase_add_test(t, a_ring_is_made_once);
    tcase_add_test(t, other_values);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    json_decref(vectors);
    arena_free(&a);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
