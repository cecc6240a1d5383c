/*
 * Numbers: by declared type and by natural value, without a digit lost or a bit cut in silence.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/args_state.h"
#include "codec/decimal.h"
#include "codec/hs2_write.h"
#include "codec/number.h"

enum {
    EXACT_DIGITS = 15,       /* so many make it through a double unharmed */
    NUMBER_TEXT_MAX = 63,    /* longer ones are shortened first */
    DOUBLE_DIGITS_MAX = 770, /* of 767 the 768th may still decide how a double is rounded */
};

bool args_integer(const struct json_token *t, int64_t lo, int64_t hi, int64_t *out)
{
    struct decimal d;

    if (t->kind != JSON_TOKEN_NUMBER && t->kind != JSON_TOKEN_STRING)
        return false;
    if (str_to_i64(t->text, lo, hi, out))
        return true;
    return number_is_json(t->text) && decimal_read(t->text, &d) && decimal_to_i64(&d, out) &&
           *out >= lo && *out <= hi;
}

static bool is_finite(double v)
{
    return v <= 1.7976931348623157e308 && v >= -1.7976931348623157e308;
}

/* The digits that can matter, then a 1 for all that follow: the same double as the whole text gives. */
static bool long_text_to_double(struct str s, double *out)
{
    char text[DOUBLE_DIGITS_MAX + 40];
    struct decimal d;
    size_t n = 0;
    size_t digits = 0;

    if (!decimal_read(s, &d))
        return false;
    if (d.negative)
        text[n++] = '-';
    text[n++] = '0';
    text[n++] = '.';
    for (size_t i = d.first; d.n != 0 && i <= d.last && digits < DOUBLE_DIGITS_MAX; i++) {
        if (s.p[i] == '.')
            continue;
        text[n++] = s.p[i];
        digits++;
    }
    text[n++] = digits < d.n ? '1' : '0';
    snprintf(text + n, sizeof(text) - n, "e%lld", (long long)d.exponent);
    *out = strtod(text, NULL);
    return is_finite(*out);
}

/* Both the digits and the power of ten are exact doubles, so one multiplication or division rounds once. */
static bool short_to_double(const struct decimal *d, double *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int64_t power = d->exponent - (int64_t)d->n;
    uint64_t m = 0;

    if (d->n > EXACT_DIGITS || power > 22 || power < -22)
        return false;
    for (size_t i = d->first; d->n != 0 && i <= d->last; i++) {
        if (d->text[i] != '.')
            m = m * 10 + (uint64_t)(d->text[i] - '0');
    }
    *out = power >= 0 ? (double)m * powers[power] : (double)m / powers[-power];
    if (d->negative)
        *out = -*out;
    return true;
}

static bool text_to_double(struct str s, double *out)
{
    char text[NUMBER_TEXT_MAX + 1];
    struct decimal d;

    if (decimal_read(s, &d) && short_to_double(&d, out))
        return true;
    if (s.n > NUMBER_TEXT_MAX)
        return long_text_to_double(s, out);
    __builtin_memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    *out = strtod(text, NULL);
    return is_finite(*out);
}

static bool put_special_double(struct args_state *s, struct str text)
{
    if (str_is(text, "NaN"))
        hs2_put_double(s->out, (double)NAN);
    else if (str_is(text, "Infinity"))
        hs2_put_double(s->out, (double)INFINITY);
    else if (str_is(text, "-Infinity"))
        hs2_put_double(s->out, -(double)INFINITY);
    else
        return false;
    return true;
}

bool args_put_double(struct args_state *s, const struct json_token *t, const struct jtype *type)
{
    double v = 0;

    if (t->kind == JSON_TOKEN_STRING && put_special_double(s, t->text))
        return true;
    if ((t->kind != JSON_TOKEN_NUMBER && t->kind != JSON_TOKEN_STRING) ||
        !number_is_json(t->text) || !text_to_double(t->text, &v))
        return args_mismatch(s, t, type->name);
    if (type->kind == JTYPE_FLOAT && (v > 3.4028235677973366e38 || v < -3.4028235677973366e38))
        return args_mismatch(s, t, type->name);
    hs2_put_double(s->out, v);
    return true;
}

bool args_put_whole(struct args_state *s, const struct json_token *t, const struct jtype *type)
{
    static const struct {
        int64_t lo, hi;
    } range[] = {
        [JTYPE_BYTE] = {INT8_MIN, INT8_MAX},
        [JTYPE_SHORT] = {INT16_MIN, INT16_MAX},
        [JTYPE_INT] = {INT32_MIN, INT32_MAX},
        [JTYPE_LONG] = {INT64_MIN, INT64_MAX},
    };
    int64_t v = 0;

    if (!args_integer(t, range[type->kind].lo, range[type->kind].hi, &v))
        return args_mismatch(s, t, type->name);
    if (type->kind == JTYPE_LONG)
        hs2_put_long(s->out, v);
    else
        hs2_put_int(s->out, (int32_t)v);
    return true;
}

/* As text: the only form that every Dubbo line takes without a detour through double. */
bool args_put_big(struct args_state *s, const struct json_token *t, const struct jtype *type)
{
    struct decimal d;
    bool number = (t->kind == JSON_TOKEN_NUMBER || t->kind == JSON_TOKEN_STRING) &&
                  number_is_json(t->text) && decimal_read(t->text, &d);

    if (!number)
        return args_mismatch(s, t, type->name);
    if (type->kind == JTYPE_BIG_INTEGER) {
        for (size_t i = 0; i < t->text.n; i++) {
            if (t->text.p[i] != '-' && (t->text.p[i] < '0' || t->text.p[i] > '9'))
                return args_mismatch(s, t, type->name);
        }
    }
    hs2_put_string(s->out, t->text);
    return true;
}

/* Does the double print as the same decimal value?  15 digits always do, but for the ends of the range. */
static bool double_is_exact(struct str token, double v)
{
    struct decimal asked;
    struct decimal got;
    struct buf text;
    bool same = false;

    if (!decimal_read(token, &asked) || asked.n > 17)
        return false;
    if (asked.n <= EXACT_DIGITS && asked.exponent <= 290 && asked.exponent >= -290)
        return true;
    buf_init(&text, 64);
    number_add_double(&text, v);
    same = decimal_read(buf_str(&text), &got) && decimal_equal(&asked, &got);
    buf_free(&text);
    return same;
}

static bool is_whole_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '.' || s.p[i] == 'e' || s.p[i] == 'E')
            return false;
    }
    return true;
}

/* docs/JSON.md part A2 */
void args_put_natural_number(struct args_state *s, struct str token)
{
    int64_t v = 0;
    double d = 0;

    if (is_whole_token(token)) {
        if (!str_to_i64(token, INT64_MIN, INT64_MAX, &v))
            hs2_put_string(s->out, token);
        else if (v >= INT32_MIN && v <= INT32_MAX)
            hs2_put_int(s->out, (int32_t)v);
        else
            hs2_put_long(s->out, v);
        return;
    }
    if (!s->opts->decimals_as_string && text_to_double(token, &d) && double_is_exact(token, d))
        hs2_put_double(s->out, d);
    else
        hs2_put_string(s->out, token);
}

/* java.lang.Number: the provider refuses a text, so what fits no long is a double or nothing. */
bool args_put_number(struct args_state *s, const struct json_token *t, const struct jtype *type)
{
    int64_t v = 0;
    double d = 0;

    if (t->kind != JSON_TOKEN_NUMBER)
        return args_mismatch(s, t, type->name);
    if (is_whole_token(t->text)) {
        if (!str_to_i64(t->text, INT64_MIN, INT64_MAX, &v))
            return args_mismatch(s, t, type->name);
        args_put_natural_number(s, t->text);
        return true;
    }
    if (!text_to_double(t->text, &d))
        return args_mismatch(s, t, type->name);
    hs2_put_double(s->out, d);
    return true;
}
