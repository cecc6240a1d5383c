#include "codec/utf.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))
#define HIGH_BITS    EACH_BYTE(0x80)

static uint64_t load8(const uint8_t *p)
{
    uint64_t v = 0;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Index of the first byte with a flag, where bytes in front of it cannot have disturbed it. */
static size_t first_flag(uint64_t flags)
{
    return (size_t)__builtin_ctzll(flags) / 8;
}

enum { FLAGS_IN_ORDER = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

static uint32_t load4(const uint8_t *p)
{
    uint32_t v = 0;

    memcpy(&v, p, sizeof(v));
    return v;
}

size_t utf_ascii_run(const uint8_t *p, size_t n)
{
    size_t i = 0;

    while (n - i >= 8 && (load8(p + i) & HIGH_BITS) == 0)
        i += 8;
    if (i != 0 && i < n && n - i < 8 && (load8(p + n - 8) & HIGH_BITS) == 0)
        return n;
    while (i < n && p[i] < 0x80)
        i++;
    return i;
}

/* Non-zero when one of eight ASCII bytes is zero after the subtraction trick. */
static uint64_t has_zero(uint64_t v)
{
    return (v - EACH_BYTE(1)) & ~v & HIGH_BITS;
}

/* Flags at bytes that are not plain; exact up to the first one in memory order (little endian). */
static uint64_t not_plain8(uint64_t v)
{
    uint64_t control = (v - EACH_BYTE(0x20)) & ~v;

    return (v | control | has_zero(v ^ EACH_BYTE('"')) | has_zero(v ^ EACH_BYTE('\\'))) & HIGH_BITS;
}

/* A bit per byte value; short texts are mostly tails. */
static bool is_plain(uint8_t b)
{
    static const uint64_t plain[4] = {0xfffffffb00000000, 0xffffffffefffffff, 0, 0};

    return plain[b >> 6] >> (b & 63) & 1;
}

#ifdef __SSE2__
/* A bit per byte that is not plain; bytes from 0x80 on are negative and so below 0x20 as well. */
static unsigned not_plain16(const uint8_t *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i back = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(quote, back)));
}
#endif

size_t utf_plain_run(const uint8_t *p, size_t n)
{
    size_t i = 0;

#ifdef __SSE2__
    for (; n - i >= 16; i += 16) {
        unsigned flags = not_plain16(p + i);

        if (flags != 0)
            return i + (size_t)__builtin_ctz(flags);
    }
#endif
    for (; n - i >= 8; i += 8) {
        uint64_t flags = not_plain8(load8(p + i));

        if (flags == 0)
            continue;
        if (FLAGS_IN_ORDER)
            return i + first_flag(flags);
        break;
    }
    if (FLAGS_IN_ORDER && i != 0 && i < n && n - i < 8) { /* the last eight, some of them again */
        uint64_t flags = not_plain8(load8(p + n - 8));

        return flags == 0 ? n : n - 8 + first_flag(flags);
    }
    if (i == 0 && n >= 4 && n < 8) { /* both ends, they overlap */
        uint64_t both = (uint64_t)load4(p) | (uint64_t)load4(p + n - 4) << 32;

        if (not_plain8(both) == 0)
            return n;
    }
    while (i < n && is_plain(p[i]))
        i++;
    return i;
}

static bool is_tail(uint8_t b)
{
    return (b & 0xc0) == 0x80;
}

size_t utf_char_len(const uint8_t *p, size_t n)
{
    uint8_t b = p[0];

    if (b < 0x80)
        return 1;
    if (b < 0xc2 || n < 2 || !is_tail(p[1]))
        return 0;
    if (b < 0xe0)
        return 2;
    if (n < 3 || !is_tail(p[2]))
        return 0;
    if (b < 0xf0) {
        bool overlong = b == 0xe0 && p[1] < 0xa0;
        bool surrogate = b == 0xed && p[1] >= 0xa0;

        return overlong || surrogate ? 0 : 3;
    }
    if (b > 0xf4 || n < 4 || !is_tail(p[3]) || (b == 0xf0 && p[1] < 0x90) ||
        (b == 0xf4 && p[1] >= 0x90))
        return 0;
    return 4;
}

uint32_t utf_code_point(const uint8_t *p, size_t len)
{
    switch (len) {
    case 1:
        return p[0];
    case 2:
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    case 3:
        return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    default:
        return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
               (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
    }
}

void utf_add_code_point(struct buf *out, uint32_t cp)
{
    uint8_t b[4];

    if (cp < 0x80) {
        buf_add_u8(out, (uint8_t)cp);
        return;
    }
    if (cp < 0x800) {
        b[0] = (uint8_t)(0xc0 | cp >> 6);
        b[1] = (uint8_t)(0x80 | (cp & 0x3f));
        buf_add(out, b, 2);
        return;
    }
    if (cp < 0x10000) {
        b[0] = (uint8_t)(0xe0 | cp >> 12);
        b[1] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
        b[2] = (uint8_t)(0x80 | (cp & 0x3f));
        buf_add(out, b, 3);
        return;
    }
    b[0] = (uint8_t)(0xf0 | cp >> 18);
    b[1] = (uint8_t)(0x80 | (cp >> 12 & 0x3f));
    b[2] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
    b[3] = (uint8_t)(0x80 | (cp & 0x3f));
    buf_add(out, b, 4);
}

bool utf_valid(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;

    while (i < s.n) {
        size_t n = 0;

        i += utf_ascii_run(p + i, s.n - i);
        if (i == s.n)
            break;
        n = utf_char_len(p + i, s.n - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

size_t utf_units(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t units = 0;

    for (size_t i = 0; i < s.n; i++)
        units += (is_tail(p[i]) ? 0U : 1U) + (p[i] >= 0xf0 ? 1U : 0U);
    return units;
}

void utf_add_cesu(struct buf *out, struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;

    while (i < s.n) {
        size_t from = i;
        uint32_t cp = 0;

        while (i < s.n && p[i] < 0xf0)
            i++;
        if (i != from)
            buf_add(out, p + from, i - from);
        if (i >= s.n)
            return;
        cp = utf_code_point(p + i, 4) - 0x10000;
        utf_add_code_point(out, 0xd800 + (cp >> 10));
        utf_add_code_point(out, 0xdc00 + (cp & 0x3ff));
        i += 4;
    }
}

struct str utf_cut(struct str s, size_t max)
{
    size_t n = s.n < max ? s.n : max;

    while (n > 0 && n < s.n && is_tail((uint8_t)s.p[n]))
        n--;
    return (struct str){s.p, n};
}
