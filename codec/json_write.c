#include "codec/json_write.h"

#include "codec/utf.h"

void json_add_special(struct buf *out, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    char text[6] = {'\\', 'u', '0', '0', hex[c >> 4 & 0xf], hex[c & 0xf]};
    char brief = '\0';

    switch (c) {
    case '"':
    case '\\':
        brief = (char)c;
        break;
    case '\b':
        brief = 'b';
        break;
    case '\f':
        brief = 'f';
        break;
    case '\n':
        brief = 'n';
        break;
    case '\r':
        brief = 'r';
        break;
    case '\t':
        brief = 't';
        break;
    default:
        buf_add(out, text, sizeof(text));
        return;
    }
    text[1] = brief;
    buf_add(out, text, 2);
}

void json_add_escaped(struct buf *out, struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;

    while (i < s.n) {
        size_t run = utf_plain_run(p + i, s.n - i);
        size_t n = 0;

        if (run != 0)
            buf_add(out, p + i, run);
        i += run;
        if (i == s.n)
            return;
        if (p[i] < 0x80) {
            json_add_special(out, p[i++]);
            continue;
        }
        n = utf_char_len(p + i, s.n - i);
        if (n != 0) {
            buf_add(out, p + i, n);
        } else {
            buf_add(out, UTF_REPLACEMENT, 3);
            n = 1;
        }
        i += n;
    }
}

void json_add_string(struct buf *out, struct str s)
{
    buf_add_u8(out, '"');
    json_add_escaped(out, s);
    buf_add_u8(out, '"');
}
