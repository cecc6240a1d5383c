#include "codec/java_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json_read.h"
#include "codec/json_write.h"
#include "codec/number.h"

enum { NUMBER_MAX = 512, DOUBLE_MAX = 40 };

/* ---------------------------------------------------------------- numbers */

/* A decimal number taken apart: sign, digits without leading zeros, and what follows them as a power of ten. */
struct decimal {
    bool negative;
    char digits[NUMBER_MAX];
    size_t n;
    int64_t exponent; /* value = digits × 10^exponent */
};

static bool take_apart(struct str s, struct decimal *d)
{
    size_t e = str_find(s, 'e') < s.n ? str_find(s, 'e') : str_find(s, 'E');
    struct str mantissa = str_sub(s, 0, e);
    struct str power = str_sub(s, e + 1, s.n);
    bool fraction = false;

    *d = (struct decimal){.negative = s.n != 0 && s.p[0] == '-'};
    if (power.n != 0 && power.p[0] == '+')
        power = str_sub(power, 1, power.n);
    if (e < s.n && !str_to_i64(power, -1000000, 1000000, &d->exponent))
        return false;
    for (size_t i = d->negative ? 1 : 0; i < mantissa.n; i++) {
        char c = mantissa.p[i];

        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (c < '0' || c > '9' || d->n == NUMBER_MAX)
            return false;
        d->exponent -= fraction ? 1 : 0;
        if (d->n == 1 && d->digits[0] == '0')
            d->n = 0;
        d->digits[d->n++] = c;
    }
    return d->n != 0;
}

static void add_zeros(struct buf *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        buf_add_u8(out, '0');
}

/* The digits with `before` of them before the point; zeros where there are none. */
static void add_plain(const struct decimal *d, int64_t before, struct buf *out)
{
    int64_t n = (int64_t)d->n;

    if (before <= 0) {
        buf_add_str(out, STR("0."));
        add_zeros(out, -before);
        buf_add(out, d->digits, d->n);
        return;
    }
    buf_add(out, d->digits, (size_t)(before < n ? before : n));
    add_zeros(out, before - n);
    if (before < n) {
        buf_add_u8(out, '.');
        buf_add(out, d->digits + before, (size_t)(n - before));
    }
}

/* BigDecimal.toString(): every digit that was sent, an exponent only where the plain form would be long. */
static void add_big_decimal(const struct decimal *d, struct buf *out)
{
    int64_t adjusted = d->exponent + (int64_t)d->n - 1;

    if (d->negative && !(d->n == 1 && d->digits[0] == '0'))
        buf_add_u8(out, '-');
    if (d->exponent <= 0 && adjusted >= -6) {
        add_plain(d, (int64_t)d->n + d->exponent, out);
        return;
    }
    buf_add_u8(out, (uint8_t)d->digits[0]);
    if (d->n > 1) {
        buf_add_u8(out, '.');
        buf_add(out, d->digits + 1, d->n - 1);
    }
    if (adjusted != 0)
        buf_printf(out, "E%+lld", (long long)adjusted);
}

/* Double.toString() and Float.toString(): at least one digit behind the point, an exponent outside of [10^-3, 10^7). */
static void add_floating(const struct decimal *d, struct buf *out)
{
    int64_t before = (int64_t)d->n + d->exponent; /* digits before the point */

    if (d->negative)
        buf_add_u8(out, '-');
    if (d->n == 1 && d->digits[0] == '0') {
        buf_add_str(out, STR("0.0"));
        return;
    }
    if (before >= -2 && before <= 7) {
        add_plain(d, before, out);
        if (before >= (int64_t)d->n)
            buf_add_str(out, STR(".0"));
        return;
    }
    buf_add_u8(out, (uint8_t)d->digits[0]);
    buf_add_u8(out, '.');
    if (d->n > 1)
        buf_add(out, d->digits + 1, d->n - 1);
    else
        buf_add_u8(out, '0');
    buf_printf(out, "E%lld", (long long)before - 1);
}

static void add_double(struct str text, bool single, struct buf *out)
{
    char number[NUMBER_MAX];
    char shortest[DOUBLE_MAX];
    struct buf b = {
        .data = (uint8_t *)shortest, .cap = sizeof(shortest), .limit = sizeof(shortest)};
    struct decimal d;
    char *end = NULL;
    double v = 0;

    if (!str_copy(text, number, sizeof(number))) {
        buf_add_str(out, text);
        return;
    }
    v = single ? (double)strtof(number, &end) : strtod(number, &end);
    if (*end != '\0' || !isfinite(v)) { /* NaN and infinities are texts already */
        buf_add_str(out, text);
        return;
    }
    if (single)
        number_add_float(&b, (float)v);
    else
        number_add_double(&b, v);
    if (!take_apart(buf_str(&b), &d))
        return;
    while (d.n > 1 && d.digits[d.n - 1] == '0') {
        d.n--;
        d.exponent++;
    }
    add_floating(&d, out);
}

static void add_decimal(struct str text, struct buf *out)
{
    struct decimal d;

    if (take_apart(text, &d))
        add_big_decimal(&d, out);
    else
        buf_add_str(out, text);
}

/* "042" and 42 are the same long. */
static void add_integer(struct str text, struct buf *out)
{
    int64_t v = 0;

    if (str_to_i64(text, INT64_MIN, INT64_MAX, &v))
        number_add_i64(out, v);
    else
        buf_add_str(out, text);
}

static bool is_integer(struct str text)
{
    return str_find(text, '.') == text.n && str_find(text, 'e') == text.n &&
           str_find(text, 'E') == text.n;
}

static void add_number(struct str text, enum jtype_kind kind, struct buf *out)
{
    switch (kind) {
    case JTYPE_FLOAT:
        add_double(text, true, out);
        break;
    case JTYPE_DOUBLE:
        add_double(text, false, out);
        break;
    case JTYPE_BIG_DECIMAL:
        add_decimal(text, out);
        break;
    case JTYPE_OBJECT:
    case JTYPE_NUMBER:
        if (is_integer(text))
            add_integer(text, out);
        else
            add_double(text, false, out);
        break;
    case JTYPE_BYTE:
    case JTYPE_SHORT:
    case JTYPE_INT:
    case JTYPE_LONG:
    case JTYPE_BIG_INTEGER:
        add_integer(text, out);
        break;
    case JTYPE_BOOLEAN:
    case JTYPE_CHAR:
    case JTYPE_STRING:
    case JTYPE_DATE:
    case JTYPE_VALUE:
    case JTYPE_LIST:
    case JTYPE_MAP:
    case JTYPE_ARRAY:
    case JTYPE_UNSUPPORTED:
    case JTYPE_OTHER:
        buf_add_str(out, text);
        break;
    }
}

/* ---------------------------------------------------------------- the rest */

static bool is_numeric(enum jtype_kind kind)
{
    return kind == JTYPE_BYTE || kind == JTYPE_SHORT || kind == JTYPE_INT || kind == JTYPE_LONG ||
           kind == JTYPE_FLOAT || kind == JTYPE_DOUBLE || kind == JTYPE_BIG_DECIMAL ||
           kind == JTYPE_BIG_INTEGER;
}

static void add_string(const struct json_token *t, enum jtype_kind kind, struct buf *out)
{
    if (is_numeric(kind) && t->plain)
        add_number(str_trim(t->text), kind, out);
    else
        json_unescape(t, out);
}

/* Token by token; false: no JSON any more. */
static bool add_token(const struct json_token *t, bool *comma, struct buf *out)
{
    bool closes = t->kind == JSON_TOKEN_END_ARRAY || t->kind == JSON_TOKEN_END_OBJECT;
    size_t from = 0;

    if (t->kind == JSON_TOKEN_END || t->kind == JSON_TOKEN_ERROR)
        return false;
    if (*comma && !closes)
        buf_add_u8(out, ',');
    *comma = true;
    from = out->len;
    if (t->kind == JSON_TOKEN_BEGIN_ARRAY || t->kind == JSON_TOKEN_BEGIN_OBJECT) {
        buf_add_u8(out, t->kind == JSON_TOKEN_BEGIN_ARRAY ? '[' : '{');
        *comma = false;
    } else if (closes) {
        buf_add_u8(out, t->kind == JSON_TOKEN_END_ARRAY ? ']' : '}');
    } else if (t->kind == JSON_TOKEN_STRING || t->kind == JSON_TOKEN_KEY) {
        buf_add_u8(out, '"');
        json_unescape(t, out); /* the same text is the same key, however it was escaped */
        buf_add_u8(out, '"');
    } else {
        buf_add_str(out, t->text);
    }
    if (t->kind == JSON_TOKEN_KEY) {
        buf_add_u8(out, ':');
        *comma = false;
    }
    return out->len != from;
}

static void add_container(struct str json, struct buf *out)
{
    struct json_reader r;
    struct json_token t;
    bool comma = false;

    json_begin(&r, json, JSON_DEPTH_MAX);
    do {
        t = json_next(&r);
    } while (add_token(&t, &comma, out));
}

void java_text_add(const struct arg *arg, struct buf *out)
{
    enum jtype_kind kind = arg->type != NULL ? arg->type->kind : JTYPE_OBJECT;
    struct json_reader r;
    struct json_token t;

    json_begin(&r, arg->json, JSON_DEPTH_MAX);
    t = json_next(&r);
    if (t.kind == JSON_TOKEN_NUMBER)
        add_number(t.text, kind, out);
    else if (t.kind == JSON_TOKEN_STRING)
        add_string(&t, kind, out);
    else if (t.kind == JSON_TOKEN_BEGIN_ARRAY || t.kind == JSON_TOKEN_BEGIN_OBJECT)
        add_container(arg->json, out);
    else if (t.kind == JSON_TOKEN_TRUE)
        buf_add_str(out, STR("true"));
    else if (t.kind == JSON_TOKEN_FALSE)
        buf_add_str(out, STR("false"));
    else
        buf_add_str(out, STR("null"));
}
