#include "codec/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct buf *out, const uint8_t *p, size_t n)
{
    uint8_t *to = buf_reserve(out, (n + 2) / 3 * 4);
    size_t len = (n + 2) / 3 * 4;

    if (to == NULL)
        return;
    while (n > 0) {
        uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);

        to[0] = (uint8_t)alphabet[v >> 18];
        to[1] = (uint8_t)alphabet[v >> 12 & 0x3f];
        to[2] = n > 1 ? (uint8_t)alphabet[v >> 6 & 0x3f] : '=';
        to[3] = n > 2 ? (uint8_t)alphabet[v & 0x3f] : '=';
        to += 4;
        p += n > 3 ? 3 : n;
        n -= n > 3 ? 3 : n;
    }
    buf_commit(out, len);
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool base64_decode(struct str s, struct buf *out)
{
    size_t before = out->len;
    uint32_t v = 0;
    unsigned bits = 0;
    size_t padding = 0;

    while (s.n != 0 && padding < 2 && s.p[s.n - 1] == '=') {
        s.n--;
        padding++;
    }
    if (s.n % 4 == 1 || (padding != 0 && (s.n + padding) % 4 != 0))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        int d = value_of(s.p[i]);

        if (d < 0) {
            buf_truncate(out, before);
            return false;
        }
        v = v << 6 | (uint32_t)d;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            buf_add_u8(out, (uint8_t)(v >> bits));
        }
    }
    return true;
}
