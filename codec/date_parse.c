#include "codec/date_parse.h"

#include "codec/date.h"

enum { NANO_DIGITS = 9, OFFSET_MAX_S = 18 * 3600 };

/* Exactly `n` digits. */
static bool digits(struct str *s, size_t n, int64_t *out)
{
    if (s->n < n || !str_to_i64(str_sub(*s, 0, n), 0, INT64_MAX, out) || s->p[0] == '-')
        return false;
    *s = str_sub(*s, n, s->n);
    return true;
}

static bool two(struct str *s, int lo, int hi, int *out)
{
    int64_t v = 0;

    if (!digits(s, 2, &v) || v < lo || v > hi)
        return false;
    *out = (int)v;
    return true;
}

static bool literal(struct str *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = str_sub(*s, 1, s->n);
    return true;
}

static bool parse_date(struct str *s, struct date_fields *d)
{
    if (!digits(s, 4, &d->year) || !literal(s, '-') || !two(s, 1, 12, &d->month) ||
        !literal(s, '-') || !two(s, 1, 31, &d->day))
        return false;
    d->parts |= DATE_HAS_DATE;
    return date_is_valid(d->year, d->month, d->day);
}

static bool parse_fraction(struct str *s, int32_t *nano)
{
    int32_t v = 0;
    size_t n = 0;

    while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9') {
        if (n < NANO_DIGITS)
            v = v * 10 + (s->p[n] - '0');
        n++;
    }
    if (n == 0 || n > NANO_DIGITS)
        return false;
    for (size_t i = n; i < NANO_DIGITS; i++)
        v *= 10;
    *nano = v;
    *s = str_sub(*s, n, s->n);
    return true;
}

static bool parse_time(struct str *s, struct date_fields *d)
{
    if (!two(s, 0, 23, &d->hour) || !literal(s, ':') || !two(s, 0, 59, &d->minute))
        return false;
    d->parts |= DATE_HAS_TIME;
    if (!literal(s, ':'))
        return true;
    if (!two(s, 0, 59, &d->second))
        return false;
    return !literal(s, '.') || parse_fraction(s, &d->nano);
}

static bool parse_offset(struct str *s, int32_t *out)
{
    int hour = 0;
    int minute = 0;
    int second = 0;
    bool west = s->n != 0 && s->p[0] == '-';

    if (literal(s, 'Z') || literal(s, 'z')) {
        *out = 0;
        return true;
    }
    if ((!literal(s, '+') && !literal(s, '-')) || !two(s, 0, 18, &hour))
        return false;
    if (s->n != 0 && s->p[0] != '[') {
        literal(s, ':');
        if (!two(s, 0, 59, &minute) || (literal(s, ':') && !two(s, 0, 59, &second)))
            return false;
    }
    *out = hour * 3600 + minute * 60 + second;
    if (*out > OFFSET_MAX_S)
        return false;
    if (west)
        *out = -*out;
    return true;
}

bool date_parse_offset(struct str text, int32_t *seconds)
{
    return parse_offset(&text, seconds) && text.n == 0;
}

static bool parse_zone(struct str *s, struct date_fields *d)
{
    if (s->n == 0)
        return true;
    if (!parse_offset(s, &d->offset_s))
        return false;
    d->parts |= DATE_HAS_ZONE;
    if (s->n > 2 && s->p[0] == '[' && s->p[s->n - 1] == ']') {
        d->zone = str_sub(*s, 1, s->n - 1);
        *s = STR_NONE;
    }
    return s->n == 0;
}

bool date_parse(struct str s, struct date_fields *out)
{
    *out = (struct date_fields){0};
    if (s.n > 4 && s.p[4] == '-') {
        if (!parse_date(&s, out))
            return false;
        if (s.n == 0)
            return true;
        if (!literal(&s, 'T') && !literal(&s, 't') && !literal(&s, ' '))
            return false;
    }
    return parse_time(&s, out) && parse_zone(&s, out);
}

int64_t date_millis(const struct date_fields *d, int32_t utc_offset_s)
{
    int64_t days = date_days(d->year, d->month, d->day);
    int32_t offset = d->parts & DATE_HAS_ZONE ? d->offset_s : utc_offset_s;
    int of_day = d->hour * 3600 + d->minute * 60 + d->second;
    int64_t seconds = days * 86400 + of_day - offset;

    return seconds * 1000 + d->nano / 1000000;
}

/* A signed whole number in front of a letter. */
static bool amount(struct str *s, char letter, int64_t max, int64_t *out)
{
    size_t at = str_find(*s, letter);
    struct str number = str_sub(*s, 0, at);

    if (number.n != 0 && number.p[0] == '+')
        number = str_sub(number, 1, number.n);
    if (at == s->n || !str_to_i64(number, -max, max, out))
        return false;
    *s = str_sub(*s, at + 1, s->n);
    return true;
}

static bool parse_seconds(struct str *s, int64_t *seconds, int32_t *nanos)
{
    struct str fraction = STR_NONE;
    struct str whole = str_cut(str_sub(*s, 0, str_find(*s, 'S')), '.', &fraction);
    bool negative = whole.n != 0 && whole.p[0] == '-';

    if (str_find(*s, 'S') != s->n - 1 ||
        !str_to_i64(whole, INT64_C(-1000000000000), INT64_C(1000000000000), seconds))
        return false;
    if (fraction.p != NULL && (!parse_fraction(&fraction, nanos) || fraction.n != 0))
        return false;
    if (negative && *nanos != 0) {
        *seconds -= 1;
        *nanos = 1000000000 - *nanos;
    }
    *s = STR_NONE;
    return true;
}

bool date_parse_duration(struct str s, int64_t *seconds, int32_t *nanos)
{
    int64_t days = 0;
    int64_t hours = 0;
    int64_t minutes = 0;
    int64_t rest = 0;
    bool any = false;

    *nanos = 0;
    if (!literal(&s, 'P'))
        return false;
    any = amount(&s, 'D', 10000000, &days);
    if (literal(&s, 'T')) {
        size_t before = s.n;

        if (s.n == 0)
            return false;
        amount(&s, 'H', 100000000, &hours);
        amount(&s, 'M', INT64_C(10000000000), &minutes);
        if (s.n != 0 && !parse_seconds(&s, &rest, nanos))
            return false;
        any = s.n != before;
    }
    *seconds = days * 86400 + hours * 3600 + minutes * 60 + rest;
    return any && s.n == 0;
}

bool date_parse_period(struct str s, int32_t out[3])
{
    int64_t years = 0;
    int64_t months = 0;
    int64_t weeks = 0;
    int64_t days = 0;

    if (!literal(&s, 'P') || s.n == 0)
        return false;
    amount(&s, 'Y', 1000000000, &years);
    amount(&s, 'M', 1000000000, &months);
    amount(&s, 'W', 100000000, &weeks);
    amount(&s, 'D', 1000000000, &days);
    out[0] = (int32_t)years;
    out[1] = (int32_t)months;
    out[2] = (int32_t)(weeks * 7 + days);
    return s.n == 0;
}
