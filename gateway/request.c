#include "gateway/request.h"

#include "codec/utf.h"

/* RFC 9110 section 5.6.2, a bit per byte value: letters, digits and !#$%&'*+-.^_`|~ */
static bool is_tchar(unsigned char c)
{
    static const uint64_t set[4] = {0x3ff6cfa00000000, 0x57ffffffc7fffffe, 0, 0};

    return set[c >> 6] >> (c & 63) & 1;
}

bool header_name_ok(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_tchar((unsigned char)s.p[i]))
            return false;
    }
    return s.n != 0;
}

bool header_value_ok(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

struct str request_header_next(const struct request *r, struct str name, size_t *from)
{
    while (*from < r->n_headers) {
        const struct header *h = &r->headers[(*from)++];

        if (str_eq_nocase(h->name, name))
            return h->value.p != NULL ? h->value : STR("");
    }
    return STR_NONE;
}

struct str request_header(const struct request *r, struct str name)
{
    size_t from = 0;

    return request_header_next(r, name, &from);
}

size_t request_header_count(const struct request *r, struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_headers; i++)
        n += str_eq_nocase(r->headers[i].name, name) ? 1U : 0U;
    return n;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte at raw.p[*i] and what it stands for; *i is moved to the last byte read.  -1: a bad escape. */
static int decode_byte(struct str raw, bool plus_is_blank, size_t *i)
{
    int high = 0;
    int low = 0;

    if (raw.p[*i] != '%')
        return plus_is_blank && raw.p[*i] == '+' ? ' ' : (unsigned char)raw.p[*i];
    if (raw.n - *i < 3)
        return -1;
    high = hex_digit(raw.p[*i + 1]);
    low = hex_digit(raw.p[*i + 2]);
    *i += 2;
    return high < 0 || low < 0 || (high == 0 && low == 0) ? -1 : high << 4 | low;
}

bool request_decode(struct str raw, bool plus_is_blank, struct arena *a, struct str *out)
{
    char *to = NULL;
    size_t n = 0;

    if (str_find(raw, '%') == raw.n && (!plus_is_blank || str_find(raw, '+') == raw.n)) {
        *out = raw;
        return utf_valid(raw);
    }
    to = arena_alloc(a, raw.n + 1);
    for (size_t i = 0; i < raw.n; i++) {
        int c = decode_byte(raw, plus_is_blank, &i);

        if (c < 0)
            return false;
        to[n++] = (char)c;
    }
    *out = (struct str){to, n};
    return utf_valid(*out);
}

static bool is_named(struct str raw, struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        int c = decode_byte(raw, true, &i);

        if (c < 0 || n == name.n || (unsigned char)name.p[n] != (unsigned)c)
            return false;
        n++;
    }
    return n == name.n;
}

bool request_query_next(struct str *rest, struct str name, struct str *raw)
{
    while (rest->n != 0) {
        struct str key = str_cut(str_cut(*rest, '&', rest), '=', raw);

        if (is_named(key, name))
            return true;
    }
    return false;
}

bool request_query(const struct request *r, struct str name, size_t nth, struct arena *a,
                   struct str *out, bool *bad)
{
    struct str rest = r->query;
    struct str raw = STR_NONE;

    for (size_t i = 0; i <= nth; i++) {
        if (!request_query_next(&rest, name, &raw))
            return false;
    }
    if (!request_decode(raw, true, a, out)) {
        *bad = true;
        return false;
    }
    if (out->p == NULL)
        *out = STR("");
    return true;
}
