#include "base/str.h"

#include "base/fatal.h"

#include <string.h>
#include <strings.h>

enum { DISTANCE_MAX = 64 };

struct str str_from(const char *cstring)
{
    return cstring != NULL ? (struct str){cstring, strlen(cstring)} : STR_NONE;
}

struct str str_sub(struct str s, size_t from, size_t to)
{
    if (to > s.n)
        to = s.n;
    if (from >= to)
        return STR_NONE;
    return (struct str){s.p + from, to - from};
}

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n != 0 ? memcmp(a.p, b.p, n) : 0;

    if (order != 0)
        return order;
    return a.n < b.n ? -1 : a.n > b.n ? 1 : 0;
}

bool str_eq_nocase(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

bool str_is(struct str a, const char *cstring)
{
    return str_eq(a, str_from(cstring));
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq((struct str){s.p, prefix.n}, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

size_t str_find(struct str s, char c)
{
    const char *at = s.n != 0 ? memchr(s.p, c, s.n) : NULL;

    return at != NULL ? (size_t)(at - s.p) : s.n;
}

bool str_contains(struct str s, struct str part)
{
    return part.n == 0 || (s.n >= part.n && memmem(s.p, s.n, part.p, part.n) != NULL);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
    while (s.n != 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n != 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

struct str str_cut(struct str s, char sep, struct str *rest)
{
    size_t at = str_find(s, sep);

    *rest = at < s.n ? (struct str){s.p + at + 1, s.n - at - 1} : STR_NONE;
    return (struct str){s.p, at};
}

bool str_to_u64(struct str s, uint64_t hi, uint64_t *out)
{
    uint64_t v = 0;

    if (s.n == 0 || s.n > 20)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10U, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return v <= hi;
}

bool str_to_i64(struct str s, int64_t lo, int64_t hi, int64_t *out)
{
    bool negative = s.n != 0 && s.p[0] == '-';
    uint64_t v = 0;

    if (negative)
        s = str_sub(s, 1, s.n);
    if (!str_to_u64(s, negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, &v))
        return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return *out >= lo && *out <= hi;
}

bool str_copy(struct str s, char *out, size_t cap)
{
    size_t n = s.n < cap ? s.n : cap - 1;

    ASSERT(cap > 0);
    if (n != 0)
        memcpy(out, s.p, n);
    out[n] = '\0';
    return n == s.n;
}

bool str_glob(struct str pattern, struct str s)
{
    size_t p = 0;
    size_t i = 0;
    size_t star = SIZE_MAX;
    size_t mark = 0;

    while (i < s.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            mark = i;
        } else if (p < pattern.n && pattern.p[p] == s.p[i]) {
            p++;
            i++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            i = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

size_t str_distance(struct str a, struct str b)
{
    size_t rows[3][DISTANCE_MAX + 1] = {{0}};

    if (a.n > DISTANCE_MAX || b.n > DISTANCE_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *now = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t change = lower(a.p[i - 1]) == lower(b.p[j - 1]) ? 0 : 1;

            now[j] = min3(above[j] + 1, now[j - 1] + 1, above[j - 1] + change);
            if (i > 1 && j > 1 && lower(a.p[i - 1]) == lower(b.p[j - 2]) &&
                lower(a.p[i - 2]) == lower(b.p[j - 1]) && two_above[j - 2] + 1 < now[j])
                now[j] = two_above[j - 2] + 1;
        }
    }
    return rows[a.n % 3][b.n];
}
