#include "gateway/request.h"

#include "codec/utf.h"

struct str request_header(const struct request *r, struct str name)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        if (str_eq_nocase(r->headers[i].name, name))
            return r->headers[i].value.p != NULL ? r->headers[i].value : STR("");
    }
    return STR_NONE;
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
        char c = raw.p[i];

        if (c == '%') {
            int high = raw.n - i > 2 ? hex_digit(raw.p[i + 1]) : -1;
            int low = raw.n - i > 2 ? hex_digit(raw.p[i + 2]) : -1;

            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return false;
            to[n++] = (char)(high << 4 | low);
            i += 2;
        } else {
            to[n++] = c == '+' && plus_is_blank ? ' ' : c;
        }
    }
    *out = (struct str){to, n};
    return utf_valid(*out);
}

bool request_query(const struct request *r, struct str name, size_t nth, struct arena *a,
                   struct str *out, bool *bad)
{
    struct str rest = r->query;

    while (rest.n != 0) {
        struct str value = STR_NONE;
        struct str key = str_cut(str_cut(rest, '&', &rest), '=', &value);

        if (!request_decode(key, true, a, &key)) {
            *bad = true;
            return false;
        }
        if (!str_eq(key, name))
            continue;
        if (nth-- != 0)
            continue;
        if (!request_decode(value, true, a, out)) {
            *bad = true;
            return false;
        }
        if (out->p == NULL)
            *out = STR("");
        return true;
    }
    return false;
}
