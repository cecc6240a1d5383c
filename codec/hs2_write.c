#include "codec/hs2_write.h"

#include <string.h>

#include "codec/utf.h"

enum { STRING_CHUNK = 0x8000, BINARY_CHUNK = 0xffff, MS_PER_MINUTE = 60000 };

void hs2_put_null(struct buf *out)
{
    buf_add_u8(out, 'N');
}

void hs2_put_bool(struct buf *out, bool v)
{
    buf_add_u8(out, v ? 'T' : 'F');
}

static void put2(struct buf *out, int64_t first, int64_t rest)
{
    const uint8_t b[2] = {(uint8_t)first, (uint8_t)rest};

    buf_add(out, b, sizeof(b));
}

static void put3(struct buf *out, int64_t first, int64_t rest)
{
    const uint8_t b[3] = {(uint8_t)first, (uint8_t)(rest >> 8), (uint8_t)rest};

    buf_add(out, b, sizeof(b));
}

static void put5(struct buf *out, uint8_t first, uint32_t rest)
{
    buf_add_u8(out, first);
    buf_add_be32(out, rest);
}

void hs2_put_int(struct buf *out, int32_t v)
{
    if (v >= -16 && v <= 47)
        buf_add_u8(out, (uint8_t)(0x90 + v));
    else if (v >= -2048 && v <= 2047)
        put2(out, 0xc8 + (v >> 8), v);
    else if (v >= -262144 && v <= 262143)
        put3(out, 0xd4 + (v >> 16), v);
    else
        put5(out, 'I', (uint32_t)v);
}

void hs2_put_long(struct buf *out, int64_t v)
{
    if (v >= -8 && v <= 15) {
        buf_add_u8(out, (uint8_t)(0xe0 + v));
    } else if (v >= -2048 && v <= 2047) {
        put2(out, 0xf8 + (v >> 8), v);
    } else if (v >= -262144 && v <= 262143) {
        put3(out, 0x3c + (v >> 16), v);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
        put5(out, 0x59, (uint32_t)v);
    } else {
        buf_add_u8(out, 'L');
        buf_add_be64(out, (uint64_t)v);
    }
}

/* Java's (int)(v * 1000): saturates; NaN gives 0. */
static int32_t mills(double v)
{
    double m = v * 1000;

    if (!(m >= -2147483648.))
        return m < 0 ? INT32_MIN : 0;
    return m >= 2147483647. ? INT32_MAX : (int32_t)m;
}

static bool same(double a, double b)
{
    return a <= b && a >= b;
}

void hs2_put_double(struct buf *out, double v)
{
    uint64_t bits = 0;
    bool small = v >= -32768 && v <= 32767;
    int32_t whole = small ? (int32_t)v : 0;

    if (small && same(whole, v)) {
        if (whole == 0 || whole == 1)
            buf_add_u8(out, (uint8_t)(0x5b + whole)); /* -0.0 loses its sign, as in Java */
        else if (whole >= -128 && whole <= 127)
            put2(out, 0x5d, whole);
        else
            put3(out, 0x5e, whole);
        return;
    }
    if (same(0.001 * mills(v), v)) {
        put5(out, 0x5f, (uint32_t)mills(v));
        return;
    }
    if (v > 0 || v <= 0)
        memcpy(&bits, &v, sizeof(bits));
    else
        bits = UINT64_C(0x7ff8000000000000); /* Java knows one NaN */
    buf_add_u8(out, 'D');
    buf_add_be64(out, bits);
}

void hs2_put_date(struct buf *out, int64_t ms)
{
    int64_t minutes = ms / MS_PER_MINUTE;

    if (ms % MS_PER_MINUTE == 0 && minutes >= INT32_MIN && minutes <= INT32_MAX) {
        put5(out, 0x4b, (uint32_t)minutes);
        return;
    }
    buf_add_u8(out, 0x4a);
    buf_add_be64(out, (uint64_t)ms);
}

void hs2_put_binary(struct buf *out, const uint8_t *p, size_t n)
{
    while (n > BINARY_CHUNK) {
        put3(out, 'A', BINARY_CHUNK);
        buf_add(out, p, BINARY_CHUNK);
        p += BINARY_CHUNK;
        n -= BINARY_CHUNK;
    }
    if (n <= 15)
        buf_add_u8(out, (uint8_t)(0x20 + n));
    else if (n <= 1023)
        put2(out, 0x34 + (int64_t)(n >> 8), (int64_t)n);
    else
        put3(out, 'B', (int64_t)n);
    if (n != 0)
        buf_add(out, p, n);
}

static void put_string_head(struct buf *out, size_t units, bool last)
{
    if (!last)
        put3(out, 'R', (int64_t)units);
    else if (units <= 31)
        buf_add_u8(out, (uint8_t)units);
    else if (units <= 1023)
        put2(out, 0x30 + (int64_t)(units >> 8), (int64_t)units);
    else
        put3(out, 'S', (int64_t)units);
}

/* Bytes and units of the next chunk; a pair of surrogates stays together. */
static size_t chunk_bytes(struct str s, size_t *units)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;

    *units = 0;
    while (i < s.n && *units < STRING_CHUNK) {
        size_t wide = p[i] >= 0xf0 ? 2 : 1;

        if (*units + wide > STRING_CHUNK)
            break;
        *units += wide;
        i += p[i] < 0x80 ? 1 : p[i] < 0xe0 ? 2 : p[i] < 0xf0 ? 3 : 4;
    }
    return i < s.n ? i : s.n;
}

static void put_text(struct buf *out, struct str s)
{
    if (utf_ascii_run((const uint8_t *)s.p, s.n) == s.n)
        buf_add_str(out, s);
    else
        utf_add_cesu(out, s);
}

static void put_long_string(struct buf *out, struct str s, size_t units)
{
    while (units > STRING_CHUNK) {
        size_t n_units = 0;
        size_t bytes = chunk_bytes(s, &n_units);

        put_string_head(out, n_units, false);
        put_text(out, str_sub(s, 0, bytes));
        s = str_sub(s, bytes, s.n);
        units -= n_units;
    }
    put_string_head(out, units, true);
    if (s.n != 0)
        put_text(out, s);
}

void hs2_put_ascii(struct buf *out, struct str s)
{
    size_t head = s.n <= 31 ? 1 : s.n <= 1023 ? 2 : 3;
    uint8_t *to = NULL;

    if (s.n > STRING_CHUNK) {
        put_long_string(out, s, s.n);
        return;
    }
    to = buf_reserve(out, head + s.n);
    if (to == NULL)
        return;
    if (head == 1) {
        to[0] = (uint8_t)s.n;
    } else if (head == 2) {
        to[0] = (uint8_t)(0x30 + (s.n >> 8));
        to[1] = (uint8_t)s.n;
    } else {
        to[0] = 'S';
        to[1] = (uint8_t)(s.n >> 8);
        to[2] = (uint8_t)s.n;
    }
    if (s.n != 0)
        memcpy(to + head, s.p, s.n);
    buf_commit(out, head + s.n);
}

void hs2_put_string(struct buf *out, struct str s)
{
    if (utf_ascii_run((const uint8_t *)s.p, s.n) == s.n)
        hs2_put_ascii(out, s);
    else
        put_long_string(out, s, utf_units(s));
}

void hs2_put_list(struct buf *out, size_t n)
{
    if (n <= 7) {
        buf_add_u8(out, (uint8_t)(0x78 + n));
        return;
    }
    buf_add_u8(out, 'X');
    hs2_put_int(out, (int32_t)n);
}

size_t hs2_put_open_list(struct buf *out)
{
    buf_add_u8(out, 'X');
    put5(out, 'I', 0);
    return out->len - 4;
}

void hs2_patch_list(struct buf *out, size_t place, size_t n)
{
    if (!out->failed)
        buf_patch_be32(out, place, (uint32_t)n);
}

void hs2_put_typed_list(struct buf *out, struct str type, size_t n)
{
    buf_add_u8(out, n <= 7 ? (uint8_t)(0x70 + n) : 'V');
    hs2_put_ascii(out, type);
    if (n > 7)
        hs2_put_int(out, (int32_t)n);
}

void hs2_put_object(struct buf *out, struct str class, const char *const *fields, size_t n,
                    unsigned index)
{
    buf_add_u8(out, 'C');
    hs2_put_ascii(out, class);
    hs2_put_int(out, (int32_t)n);
    for (size_t i = 0; i < n; i++)
        hs2_put_ascii(out, str_from(fields[i]));
    hs2_put_object_again(out, index);
}

void hs2_put_object_again(struct buf *out, unsigned index)
{
    if (index <= 15) {
        buf_add_u8(out, (uint8_t)(0x60 + index));
        return;
    }
    buf_add_u8(out, 'O');
    hs2_put_int(out, (int32_t)index);
}
