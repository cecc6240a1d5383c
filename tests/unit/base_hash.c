#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/hash.h"

START_TEST(seed_and_length_count)
{
    uint64_t before = 0;

    hash_seed(1);
    before = hash_bytes("a.b.Service", 11);
    ck_assert_uint_eq(hash_bytes("a.b.Service", 11), before);
    hash_seed(2);
    ck_assert_uint_ne(hash_bytes("a.b.Service", 11), before);
    ck_assert_uint_ne(hash_bytes("\0\0", 1), hash_bytes("\0\0", 2));
    ck_assert_uint_ne(hash_bytes("\0\0\0\0\0\0\0\0", 7), hash_bytes("\0\0\0\0\0\0\0\0", 8));
    ck_assert_uint_ne(hash_random_seed(), hash_random_seed());
    (void)hash_bytes(NULL, 0);
}
END_TEST

START_TEST(address_does_not_count)
{
    char text[64];

    for (size_t shift = 0; shift < 9; shift++) {
        memcpy(text + shift, "0123456789abcdefX", 17);
        ck_assert_uint_eq(hash_bytes(text + shift, 17), hash_bytes("0123456789abcdefX", 17));
    }
}
END_TEST

/* Names that differ in one digit spread over the low bits, which the table uses. */
START_TEST(low_bits_spread)
{
    enum { KEYS = 65536, SLOTS = 4096 };
    static unsigned filled[SLOTS];

    for (int i = 0; i < KEYS; i++) {
        char key[48];
        int n = snprintf(key, sizeof(key), "com.example.Service%d", i);

        filled[hash_bytes(key, (size_t)n) % SLOTS]++;
    }
    for (int i = 0; i < SLOTS; i++)
        ck_assert_uint_lt(filled[i], 60); /* 16 on average; 60 has a chance of 1e-16 */
}
END_TEST

START_TEST(one_bit_changes_half)
{
    unsigned changed = 0;

    for (unsigned i = 0; i < 256; i++) {
        uint8_t key[32];
        uint64_t before = 0;

        memset(key, 0x5a, sizeof(key));
        before = hash_bytes(key, sizeof(key));
        key[i / 8] = (uint8_t)(key[i / 8] ^ 1U << i % 8);
        changed += (unsigned)__builtin_popcountll(before ^ hash_bytes(key, sizeof(key)));
    }
    ck_assert_uint_gt(changed / 256, 28);
    ck_assert_uint_lt(changed / 256, 36);
}
END_TEST

struct item {
    UT_hash_handle hh;
    int value;
    char key[24];
};

START_TEST(tables)
{
    struct item *table = NULL;
    struct item *found = NULL;
    static struct item items[1000];

    for (int i = 0; i < 1000; i++) {
        snprintf(items[i].key, sizeof(items[i].key), "key-%d", i);
        items[i].value = i;
        HASH_ADD_KEYPTR(hh, table, items[i].key, strlen(items[i].key), &items[i]);
    }
    ck_assert_uint_eq(HASH_COUNT(table), 1000);
    HASH_FIND(hh, table, "key-777", 7, found);
    ck_assert(found != NULL && found->value == 777);
    HASH_DEL(table, found);
    HASH_FIND(hh, table, "key-777", 7, found);
    ck_assert_ptr_null(found);
    HASH_CLEAR(hh, table);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_hash");
    TCase *t = tcase_create("base_hash");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, seed_and_length_count);
    tcase_add_test(t, address_does_not_count);
    tcase_add_test(t, low_bits_spread);
    tcase_add_test(t, one_bit_changes_half);
    tcase_add_test(t, tables);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
