#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "codec/utf.h"

static bool plain(uint8_t b)
{
    return b >= 0x20 && b < 0x80 && b != '"' && b != '\\';
}

/* Every byte value at every place of texts of every length up to three blocks of 16. */
START_TEST(plain_runs)
{
    uint8_t text[48];

    for (size_t n = 0; n <= sizeof(text); n++) {
        for (size_t at = 0; at < n; at++) {
            for (unsigned b = 0; b < 256; b++) {
                memset(text, 'a', sizeof(text));
                text[at] = (uint8_t)b;
                ck_assert_uint_eq(utf_plain_run(text, n), plain((uint8_t)b) ? n : at);
                ck_assert_uint_eq(utf_ascii_run(text, n), b < 0x80 ? n : at);
            }
        }
    }
}
END_TEST

/* The first of two counts. */
START_TEST(first_of_two)
{
    uint8_t text[40];

    for (size_t n = 2; n <= sizeof(text); n++) {
        for (size_t x = 0; x < n; x++) {
            for (size_t y = x + 1; y < n; y++) {
                memset(text, 'a', sizeof(text));
                text[x] = '"';
                text[y] = 0xc3;
                ck_assert_uint_eq(utf_plain_run(text, n), x);
                ck_assert_uint_eq(utf_ascii_run(text, n), y);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_utf");
    TCase *t = tcase_create("codec_utf");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, plain_runs);
    tcase_add_test(t, first_of_two);
    tcase_set_timeout(t, 60.);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
