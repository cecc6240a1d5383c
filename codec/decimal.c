#include "codec/decimal.h"

enum { EXPONENT_DIGITS_MAX = 9 };

static bool read_exponent(struct str s, int64_t *out)
{
    if (s.n != 0 && s.p[0] == '+')
        s = str_sub(s, 1, s.n);
    return s.n <= EXPONENT_DIGITS_MAX && str_to_i64(s, -999999999, 999999999, out);
}

bool decimal_read(struct str s, struct decimal *out)
{
    size_t i = s.n != 0 && s.p[0] == '-' ? 1 : 0;
    int64_t exponent = 0;
    int64_t point = -1; /* digits before the point */
    int64_t seen = 0;   /* digits so far */
    int64_t leading = 0;

    *out = (struct decimal){.negative = i == 1, .text = s.p};
    for (; i < s.n && s.p[i] != 'e' && s.p[i] != 'E'; i++) {
        if (s.p[i] == '.') {
            point = seen;
            continue;
        }
        seen++;
        if (s.p[i] != '0') {
            if (out->n == 0) {
                out->first = i;
                leading = seen - 1;
            }
            out->last = i;
            out->n = (size_t)(seen - leading);
        }
    }
    if (point < 0)
        point = seen;
    if (i < s.n && !read_exponent(str_sub(s, i + 1, s.n), &exponent))
        return false;
    out->exponent = out->n != 0 ? point - leading + exponent : 0;
    out->whole = out->n == 0 || out->exponent >= (int64_t)out->n;
    return true;
}

static char digit_at(const struct decimal *d, size_t *i)
{
    if (d->text[*i] == '.')
        (*i)++;
    return d->text[(*i)++];
}

bool decimal_equal(const struct decimal *a, const struct decimal *b)
{
    size_t i = a->first;
    size_t j = b->first;

    if (a->n != b->n || a->exponent != b->exponent)
        return false;
    if (a->n != 0 && a->negative != b->negative)
        return false;
    for (size_t k = 0; k < a->n; k++) {
        if (digit_at(a, &i) != digit_at(b, &j))
            return false;
    }
    return true;
}

bool decimal_to_i64(const struct decimal *d, int64_t *out)
{
    uint64_t v = 0;
    size_t i = d->first;
    uint64_t most = d->negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;

    if (!d->whole || d->exponent > 19)
        return false;
    for (int64_t k = 0; k < d->exponent; k++) {
        uint64_t digit = (size_t)k < d->n ? (uint64_t)(digit_at(d, &i) - '0') : 0;

        if (__builtin_mul_overflow(v, 10U, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    if (v > most)
        return false;
    *out = d->negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}
