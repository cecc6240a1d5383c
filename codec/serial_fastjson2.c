#include <string.h>

#include "codec/serial.h"
#include "codec/utf.h"

/* JSONB (docs/PROTOCOL.md section 6.3): four bytes of block length, then one string. */

enum {
    INLINE_FIRST = 0x49,
    INLINE_LAST = 0x78,
    LATIN1 = 0x79,
    UTF8 = 0x7a,
    UTF16 = 0x7b,
    UTF16_LE = 0x7c,
    UTF16_BE = 0x7d,
};

/* A length; false when the bytes end or hold none. */
static bool take_length(const uint8_t **p, const uint8_t *end, size_t *out)
{
    const uint8_t *b = *p;
    size_t n = (size_t)(end - b);

    if (n >= 1 && b[0] <= 0x2f) {
        *out = b[0];
        *p += 1;
    } else if (n >= 2 && b[0] >= 0x38 && b[0] <= 0x3f) {
        *out = (size_t)(b[0] - 0x38) << 8 | b[1];
        *p += 2;
    } else if (n >= 3 && b[0] >= 0x44 && b[0] <= 0x47) {
        *out = (size_t)(b[0] - 0x44) << 16 | (size_t)b[1] << 8 | b[2];
        *p += 3;
    } else if (n >= 5 && b[0] == 0x48) {
        *out = get_be32(b + 1);
        *p += 5;
    } else {
        return false;
    }
    return *out <= (size_t)(end - *p);
}

static void add_latin1(struct buf *out, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        utf_add_code_point(out, p[i]);
}

static bool add_utf8(struct buf *out, const uint8_t *p, size_t n)
{
    if (!utf_valid((struct str){(const char *)p, n}))
        return false;
    buf_add(out, p, n);
    return true;
}

static void add_utf16(struct buf *out, const uint8_t *p, size_t n, bool little)
{
    uint32_t high = 0;

    for (size_t i = 0; i + 1 < n; i += 2) {
        uint32_t unit = little ? (uint32_t)p[i + 1] << 8 | p[i] : get_be16(p + i);

        if (unit == 0xfeff && i == 0)
            continue;
        if (unit >= 0xd800 && unit < 0xdc00) {
            high = unit;
        } else if (unit >= 0xdc00 && unit < 0xe000) {
            if (high != 0)
                utf_add_code_point(out, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
            high = 0;
        } else {
            utf_add_code_point(out, unit);
        }
    }
}

bool serial_fastjson2_text(const uint8_t *p, size_t n, struct buf *out)
{
    const uint8_t *end = p + n;
    size_t len = 0;
    uint8_t form = 0;

    if (n < 5 || get_be32(p) > n - 4)
        return false;
    end = p + 4 + get_be32(p);
    p += 4;
    if (p == end)
        return false;
    form = *p++;
    if (form >= INLINE_FIRST && form <= INLINE_LAST) {
        len = form - INLINE_FIRST;
        if (len > (size_t)(end - p))
            return false;
        add_latin1(out, p, len);
        return true;
    }
    if (form < LATIN1 || form > UTF16_BE || !take_length(&p, end, &len))
        return false;
    if (form == UTF8)
        return add_utf8(out, p, len);
    if (form == LATIN1) {
        add_latin1(out, p, len);
        return true;
    }
    bool little = form == UTF16_LE || (form == UTF16 && len >= 2 && p[0] == 0xff && p[1] == 0xfe);

    add_utf16(out, p, len, little);
    return true;
}
