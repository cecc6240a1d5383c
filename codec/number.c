#include "codec/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIG_WORDS_MAX = 4096, EXACT_DECIMALS = 9 };

static size_t print_u64(char out[20], uint64_t v)
{
    char digits[20];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    memcpy(out, digits + n, sizeof(digits) - n);
    return sizeof(digits) - n;
}

void number_add_i64(struct buf *out, int64_t v)
{
    char text[21];
    uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    size_t n = 0;

    if (v < 0)
        text[n++] = '-';
    n += print_u64(text + n, magnitude);
    buf_add(out, text, n);
}

/*
 * Values with few decimals, which is nearly all there is: m / 10^k is rounded correctly when m < 2^53 and
 * 10^k is exact, so equality with `v` proves that the text parses back to `v`.
 */
static bool add_short(struct buf *out, double v)
{
    static const double powers[EXACT_DECIMALS + 1] = {1e0, 1e1, 1e2, 1e3, 1e4,
                                                      1e5, 1e6, 1e7, 1e8, 1e9};
    double a = fabs(v);
    char text[48];
    char digits[20];
    size_t n = 0;

    if (!(a < 1e15) || (a < 1e-3 && a > 0))
        return false;
    for (size_t k = 1; k <= EXACT_DECIMALS; k++) {
        double m = rint(a * powers[k]);

        if (!(m < 9007199254740992.) || m / powers[k] < a || m / powers[k] > a)
            continue;
        if (signbit(v))
            text[n++] = '-';
        size_t len = print_u64(digits, (uint64_t)m);

        while (len <= k) { /* 0.05 has more decimals than digits */
            memmove(digits + 1, digits, len);
            digits[0] = '0';
            len++;
        }
        memcpy(text + n, digits, len - k);
        n += len - k;
        text[n++] = '.';
        memcpy(text + n, digits + len - k, k);
        buf_add(out, text, n + k);
        return true;
    }
    return false;
}

/* "1e+21" -> "1.0e21", "5" -> "5.0" */
static void add_with_point(struct buf *out, const char *text)
{
    const char *e = strpbrk(text, "eE");
    size_t n = e != NULL ? (size_t)(e - text) : strlen(text);

    buf_add(out, text, n);
    if (memchr(text, '.', n) == NULL)
        buf_add(out, ".0", 2);
    if (e == NULL)
        return;
    buf_add_u8(out, 'e');
    for (e++; *e == '+' || (*e == '0' && e[1] != '\0'); e++)
        continue;
    if (*e == '-') {
        buf_add_u8(out, '-');
        for (e++; *e == '0' && e[1] != '\0'; e++)
            continue;
    }
    buf_add(out, e, strlen(e));
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

void number_add_double(struct buf *out, double v)
{
    char text[320]; /* what the compiler thinks %g can give */

    if (add_short(out, v))
        return;
    for (int precision = 1; precision <= 17; precision++) {
        /* most values that come here need 15 digits or more */
        if (precision == 2)
            precision = 15;
        snprintf(text, sizeof(text), "%.*g", precision, v);
        if (same_double(strtod(text, NULL), v))
            break;
    }
    add_with_point(out, text);
}

void number_add_float(struct buf *out, float v)
{
    char text[40];

    for (int precision = 1; precision <= 9; precision++) {
        float back = 0;

        snprintf(text, sizeof(text), "%.*g", precision, (double)v);
        back = strtof(text, NULL);
        if (memcmp(&back, &v, sizeof(v)) == 0)
            break;
    }
    add_with_point(out, text);
}

static size_t digits_run(struct str s, size_t from)
{
    size_t i = from;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return i - from;
}

bool number_is_json(struct str s)
{
    size_t i = s.n != 0 && s.p[0] == '-' ? 1 : 0;
    size_t n = digits_run(s, i);

    if (n == 0 || (n > 1 && s.p[i] == '0'))
        return false;
    i += n;
    if (i < s.n && s.p[i] == '.') {
        n = digits_run(s, i + 1);
        if (n == 0)
            return false;
        i += 1 + n;
    }
    if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        i++;
        if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
            i++;
        n = digits_run(s, i);
        if (n == 0)
            return false;
        i += n;
    }
    return i == s.n;
}

/* Repeated division by 10^9: quadratic, hence the bound on the words. */
bool number_add_big(struct buf *out, const uint32_t *words, size_t n, bool negative)
{
    uint32_t *left = NULL;
    uint32_t *groups = NULL;
    size_t n_groups = 0;
    size_t first = 0;

    if (n > BIG_WORDS_MAX)
        return false;
    left = malloc((n + 1) * sizeof(*left));
    groups = malloc((n * 2 + 1) * sizeof(*groups));
    if (left == NULL || groups == NULL) {
        free(left);
        free(groups);
        return false;
    }
    if (n != 0)
        memcpy(left, words, n * sizeof(*left));
    while (first < n) {
        uint64_t rest = 0;

        for (size_t i = first; i < n; i++) {
            uint64_t v = rest << 32 | left[i];

            left[i] = (uint32_t)(v / 1000000000);
            rest = v % 1000000000;
        }
        groups[n_groups++] = (uint32_t)rest;
        while (first < n && left[first] == 0)
            first++;
    }
    if (negative && n_groups != 0)
        buf_add_u8(out, '-');
    buf_printf(out, "%u", n_groups != 0 ? groups[n_groups - 1] : 0U);
    for (size_t i = n_groups; i > 1; i--)
        buf_printf(out, "%09u", groups[i - 2]);
    free(left);
    free(groups);
    return true;
}
