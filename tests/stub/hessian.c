#include "tests/stub/hessian.h"

#include <string.h>

enum { DEPTH_MAX = 300, CHUNK = 0x8000 };

/* ---------------------------------------------------------------- reading */

static bool take(struct cursor *c, size_t n)
{
    if ((size_t)(c->end - c->p) < n)
        return false;
    c->p += n;
    return true;
}

bool hessian_long(struct cursor *c, int64_t *out)
{
    const uint8_t *p = c->p;
    size_t left = (size_t)(c->end - p);
    uint8_t b = left != 0 ? p[0] : 0;

    if (left == 0)
        return false;
    if (b >= 0x80 && b <= 0xbf) {
        *out = b - 0x90;
        return take(c, 1);
    }
    if (b >= 0xc0 && b <= 0xcf && left >= 2) {
        *out = (b - 0xc8) * 256 + p[1];
        return take(c, 2);
    }
    if (b >= 0xd0 && b <= 0xd7 && left >= 3) {
        *out = (b - 0xd4) * 65536 + p[1] * 256 + p[2];
        return take(c, 3);
    }
    if ((b == 'I' || b == 0x59) && left >= 5) {
        *out = (int32_t)get_be32(p + 1);
        return take(c, 5);
    }
    if (b >= 0xd8 && b <= 0xef) {
        *out = b - 0xe0;
        return take(c, 1);
    }
    if (b >= 0xf0 && left >= 2) {
        *out = (b - 0xf8) * 256 + p[1];
        return take(c, 2);
    }
    if (b >= 0x38 && b <= 0x3f && left >= 3) {
        *out = (b - 0x3c) * 65536 + p[1] * 256 + p[2];
        return take(c, 3);
    }
    if (b == 'L' && left >= 9) {
        *out = (int64_t)get_be64(p + 1);
        return take(c, 9);
    }
    return false;
}

/* `units` UTF-16 units as CESU-8; pairs of surrogates become one UTF-8 character. */
static bool take_units(struct cursor *c, size_t units, struct buf *out)
{
    for (size_t i = 0; i < units; i++) {
        const uint8_t *p = c->p;
        size_t left = (size_t)(c->end - p);
        size_t n = left == 0 ? 9 : p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : 3;

        if (n > left)
            return false;
        if (n == 3 && p[0] == 0xed && p[1] >= 0xa0 && p[1] < 0xb0 && left >= 6 && i + 1 < units) {
            uint32_t high = (uint32_t)(p[1] & 0x0f) << 6 | (p[2] & 0x3f);
            uint32_t low = (uint32_t)(p[4] & 0x0f) << 6 | (p[5] & 0x3f);
            uint32_t cp = 0x10000 + (high << 10) + low;
            const uint8_t utf8[4] = {
                (uint8_t)(0xf0 | cp >> 18), (uint8_t)(0x80 | (cp >> 12 & 0x3f)),
                (uint8_t)(0x80 | (cp >> 6 & 0x3f)), (uint8_t)(0x80 | (cp & 0x3f))};

            if (out != NULL)
                buf_add(out, utf8, 4);
            i++;
            n = 6;
        } else if (out != NULL) {
            buf_add(out, p, n);
        }
        c->p += n;
    }
    return true;
}

static bool string_into(struct cursor *c, struct buf *out)
{
    for (;;) {
        uint8_t b = c->p < c->end ? *c->p : 0;

        if (b == 'N')
            return take(c, 1);
        if (b <= 0x1f)
            return c->p < c->end && take(c, 1) && take_units(c, b, out);
        if (b >= 0x30 && b <= 0x33) {
            size_t n = c->end - c->p >= 2 ? (size_t)(b - 0x30) * 256 + c->p[1] : 0;

            return take(c, 2) && take_units(c, n, out);
        }
        if (b != 'S' && b != 'R')
            return false;
        size_t n = c->end - c->p >= 3 ? get_be16(c->p + 1) : 0;

        if (!take(c, 3) || !take_units(c, n, out))
            return false;
        if (b == 'S')
            return true;
    }
}

bool hessian_string(struct cursor *c, struct buf *out)
{
    return string_into(c, out);
}

static bool skip_binary(struct cursor *c)
{
    for (;;) {
        uint8_t b = *c->p;

        if (b >= 0x20 && b <= 0x2f)
            return take(c, 1U + (b - 0x20U));
        if (b >= 0x34 && b <= 0x37)
            return c->end - c->p >= 2 && take(c, 2U + (size_t)(b - 0x34) * 256 + c->p[1]);
        if ((b != 'A' && b != 'B') || c->end - c->p < 3 || !take(c, 3U + get_be16(c->p + 1)))
            return false;
        if (b == 'B')
            return true;
        if (c->p >= c->end)
            return false;
    }
}

static bool skip_type(struct cursor *c)
{
    int64_t ref = 0;
    uint8_t b = c->p < c->end ? *c->p : 0xff;

    if (b <= 0x1f || (b >= 0x30 && b <= 0x33) || b == 'S' || b == 'R')
        return string_into(c, NULL);
    return hessian_long(c, &ref);
}

static bool skip_n(struct cursor *c, size_t n, unsigned depth)
{
    for (size_t i = 0; i < n; i++) {
        if (!hessian_skip(c, depth + 1))
            return false;
    }
    return true;
}

static bool skip_until_z(struct cursor *c, unsigned depth)
{
    while (c->p < c->end && *c->p != 'Z') {
        if (!hessian_skip(c, depth + 1))
            return false;
    }
    return take(c, 1);
}

bool hessian_list(struct cursor *c, size_t *n)
{
    uint8_t b = c->p < c->end ? *c->p : 0;
    int64_t count = 0;

    if (b == 'N') {
        *n = 0;
        return take(c, 1);
    }
    if (b >= 0x70 && b <= 0x77) {
        *n = b - 0x70;
        return take(c, 1) && skip_type(c);
    }
    if (b >= 0x78 && b <= 0x7f) {
        *n = b - 0x78;
        return take(c, 1);
    }
    if (b != 'V' && b != 'X')
        return false;
    if (!take(c, 1) || (b == 'V' && !skip_type(c)) || !hessian_long(c, &count) || count < 0)
        return false;
    *n = (size_t)count;
    return true;
}

static bool skip_definition(struct cursor *c, unsigned depth)
{
    int64_t n = 0;

    if (!take(c, 1) || !string_into(c, NULL) || !hessian_long(c, &n) || n < 0 || n > 10000 ||
        c->n_classes >= ARRAY_LEN(c->class_fields))
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (!string_into(c, NULL))
            return false;
    }
    c->class_fields[c->n_classes++] = (unsigned)n;
    return hessian_skip(c, depth); /* the object follows */
}

static bool skip_object(struct cursor *c, unsigned depth)
{
    int64_t index = *c->p - 0x60;

    if (*c->p == 'O') {
        if (!take(c, 1) || !hessian_long(c, &index))
            return false;
    } else if (!take(c, 1)) {
        return false;
    }
    return index >= 0 && index < (int64_t)c->n_classes && skip_n(c, c->class_fields[index], depth);
}

bool hessian_skip(struct cursor *c, unsigned depth)
{
    uint8_t b = c->p < c->end ? *c->p : 0xff;
    int64_t number = 0;
    size_t n = 0;

    if (c->p >= c->end || depth > DEPTH_MAX)
        return false;
    if (b == 'N' || b == 'T' || b == 'F' || b == 0x5b || b == 0x5c)
        return take(c, 1);
    if (b <= 0x1f || (b >= 0x30 && b <= 0x33) || b == 'S' || b == 'R')
        return string_into(c, NULL);
    if ((b >= 0x20 && b <= 0x2f) || (b >= 0x34 && b <= 0x37) || b == 'A' || b == 'B')
        return skip_binary(c);
    if (b == 'D' || b == 0x4a)
        return take(c, 9);
    if (b == 0x4b || b == 0x5f)
        return take(c, 5);
    if (b == 0x5d)
        return take(c, 2);
    if (b == 0x5e)
        return take(c, 3);
    if (b == 'C')
        return skip_definition(c, depth);
    if (b == 'O' || (b >= 0x60 && b <= 0x6f))
        return skip_object(c, depth);
    if (b == 'H')
        return take(c, 1) && skip_until_z(c, depth);
    if (b == 'M')
        return take(c, 1) && skip_type(c) && skip_until_z(c, depth);
    if (b == 'Q')
        return take(c, 1) && hessian_long(c, &number);
    if ((b >= 0x70 && b <= 0x7f) || b == 'V' || b == 'X')
        return hessian_list(c, &n) && skip_n(c, n, depth);
    return hessian_long(c, &number);
}

/* ---------------------------------------------------------------- writing */

static size_t char_len(uint8_t first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static void put_surrogate(struct buf *out, uint32_t unit)
{
    buf_add_u8(out, (uint8_t)(0xe0 | unit >> 12));
    buf_add_u8(out, (uint8_t)(0x80 | (unit >> 6 & 0x3f)));
    buf_add_u8(out, (uint8_t)(0x80 | (unit & 0x3f)));
}

static void put_char(struct buf *out, const uint8_t *p, size_t n)
{
    if (n < 4) {
        buf_add(out, p, n);
        return;
    }
    uint32_t cp = (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
                  (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);

    put_surrogate(out, 0xd800 + ((cp - 0x10000) >> 10));
    put_surrogate(out, 0xdc00 + ((cp - 0x10000) & 0x3ff));
}

void hessian_put_string(struct buf *out, struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    const uint8_t *end = p + s.n;

    for (;;) {
        const uint8_t *q = p;
        size_t units = 0;

        while (q < end && units < CHUNK) {
            size_t n = char_len(*q);

            units += n == 4 ? 2 : 1;
            q += n;
        }
        if (q == end && units < 0x20) {
            buf_add_u8(out, (uint8_t)units);
        } else if (q == end && units < 0x400) {
            buf_add_be16(out, (uint16_t)(0x3000 + units));
        } else {
            buf_add_u8(out, q == end ? 'S' : 'R');
            buf_add_be16(out, (uint16_t)units);
        }
        for (; p < q; p += char_len(*p))
            put_char(out, p, char_len(*p));
        if (q == end)
            return;
    }
}

void hessian_put_int(struct buf *out, int64_t v)
{
    if (v >= -16 && v <= 47) {
        buf_add_u8(out, (uint8_t)(0x90 + v));
    } else {
        buf_add_u8(out, 'I');
        buf_add_be32(out, (uint32_t)v);
    }
}

void hessian_put_long(struct buf *out, int64_t v)
{
    buf_add_u8(out, 'L');
    buf_add_be64(out, (uint64_t)v);
}

static void put_double(struct buf *out, double d)
{
    uint64_t bits = 0;

    memcpy(&bits, &d, sizeof(bits));
    buf_add_u8(out, 'D');
    buf_add_be64(out, bits);
}

void hessian_put_json(struct buf *out, const json_t *v)
{
    size_t i = 0;
    const char *key = NULL;
    json_t *item = NULL;
    json_t *shared = (json_t *)(uintptr_t)
        v; /* jansson's macros want it writable; nothing is changed */

    switch (json_typeof(v)) {
    case JSON_OBJECT:
        buf_add_u8(out, 'H');
        json_object_foreach(shared, key, item)
        {
            hessian_put_string(out, str_from(key));
            hessian_put_json(out, item);
        }
        buf_add_u8(out, 'Z');
        return;
    case JSON_ARRAY:
        buf_add_u8(out, 'X');
        hessian_put_int(out, (int64_t)json_array_size(v));
        json_array_foreach(v, i, item)
        {
            hessian_put_json(out, item);
        }
        return;
    case JSON_STRING:
        hessian_put_string(out, (struct str){json_string_value(v), json_string_length(v)});
        return;
    case JSON_INTEGER:
        if (json_integer_value(v) >= INT32_MIN && json_integer_value(v) <= INT32_MAX)
            hessian_put_int(out, json_integer_value(v));
        else
            hessian_put_long(out, json_integer_value(v));
        return;
    case JSON_REAL:
        put_double(out, json_real_value(v));
        return;
    case JSON_TRUE:
        buf_add_u8(out, 'T');
        return;
    case JSON_FALSE:
        buf_add_u8(out, 'F');
        return;
    case JSON_NULL:
        buf_add_u8(out, 'N');
        return;
    }
}

void hessian_put_decimal(struct buf *out, const char *digits, unsigned *n_classes)
{
    buf_add_u8(out, 'C');
    hessian_put_string(out, STR("java.math.BigDecimal"));
    hessian_put_int(out, 1);
    hessian_put_string(out, STR("value"));
    buf_add_u8(out, (uint8_t)(0x60 + *n_classes));
    (*n_classes)++;
    hessian_put_string(out, str_from(digits));
}
