#include "registry/url.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/fatal.h"

/* The length of the sequence of two to four bytes at the start of `s`; 0 when it is broken, overlong
 * or a surrogate. */
static size_t utf8_length(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t n = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (n == 0 || n > s.n || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

bool url_text_ok(struct str s)
{
    for (size_t i = 0; i < s.n;) {
        unsigned char c = (unsigned char)s.p[i];
        size_t n = c < 0x80 ? 1 : utf8_length((struct str){s.p + i, s.n - i});

        if (n == 0 || c < 0x20 || c == 0x7f)
            return false;
        i += n;
    }
    return true;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool all_of(struct str s, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_alnum(s.p[i]) && (s.p[i] == '\0' || strchr(more, s.p[i]) == NULL))
            return false;
    }
    return s.n != 0;
}

struct str url_peek(struct str text, struct str key)
{
    struct str rest = STR_NONE;

    (void)str_cut(text, '?', &rest);
    while (rest.n != 0) {
        struct str value = STR_NONE;

        if (str_eq(str_cut(str_cut(rest, '&', &rest), '=', &value), key))
            return value;
    }
    return STR_NONE;
}

bool url_host_ok(struct str host)
{
    struct str scope = STR_NONE;
    char text[INET6_ADDRSTRLEN] = "";
    struct in6_addr v6;

    if (host.n > URL_HOST_MAX)
        return false;
    if (str_find(host, ':') == host.n)
        return host.n <= 253 && all_of(host, ".-_") && host.p[0] != '-' && host.p[0] != '.';

    host = str_cut(host, '%', &scope);
    if (host.n >= sizeof(text) || (scope.p != NULL && (scope.n > 16 || !all_of(scope, ".-_"))))
        return false;
    memcpy(text, host.p, host.n);
    return strlen(text) == host.n && inet_pton(AF_INET6, text, &v6) == 1;
}

size_t url_print_host_port(struct str host, uint16_t port, char *out, size_t cap)
{
    bool v6 = str_find(host, ':') != host.n;
    char digits[6];
    size_t n_port = 0;
    size_t n = 0;

    ASSERT(cap > 8);

    for (unsigned v = port; v != 0 || n_port == 0; v /= 10)
        digits[n_port++] = (char)('0' + v % 10);
    size_t room = cap - n_port - 2 - (v6 ? 2 : 0);
    size_t n_host = host.n < room ? host.n : room;

    if (v6)
        out[n++] = '[';
    memcpy(out + n, host.p, n_host);
    n += n_host;
    if (v6)
        out[n++] = ']';
    out[n++] = ':';
    while (n_port != 0)
        out[n++] = digits[--n_port];
    out[n] = '\0';
    return n;
}

void url_add_host_port(struct str host, uint16_t port, struct buf *out)
{
    size_t cap = host.n + 9; /* brackets, colon, five digits, NUL */
    uint8_t *to = buf_reserve(out, cap);

    if (to != NULL)
        buf_commit(out, url_print_host_port(host, port, (char *)to, cap));
}

static struct str from(struct str s, size_t at)
{
    return (struct str){s.p + at, s.n - at};
}

/* Position of `what` (three bytes at most); s.n when it is not there. */
static size_t find_text(struct str s, struct str what)
{
    for (size_t i = 0; i + what.n <= s.n; i++) {
        if (memcmp(s.p + i, what.p, what.n) == 0)
            return i;
    }
    return s.n;
}

static size_t find_last(struct str s, char c)
{
    for (size_t i = s.n; i-- > 0;) {
        if (s.p[i] == c)
            return i;
    }
    return s.n;
}

static bool parse_port(struct str text, uint16_t *out, struct err *e)
{
    uint64_t port = 0;

    if (!str_to_u64(text, UINT16_MAX, &port) || port == 0) {
        err_set(e, "port \"" STR_FMT "\" is not a number from 1 to 65535",
                STR_ARG(str_sub(text, 0, 20)));
        return false;
    }
    *out = (uint16_t)port;
    return true;
}

/* [v6]:port, [v6], host:port, host; an IPv6 address without brackets ends at the last colon, as Dubbo
 * prints it. */
static bool parse_authority(struct str text, struct url *out, struct err *e)
{
    size_t colon = find_last(text, ':');
    struct str port = STR_NONE;

    if (text.n != 0 && text.p[0] == '[') {
        size_t close = str_find(text, ']');

        if (close == text.n || (close + 1 != text.n && text.p[close + 1] != ':')) {
            err_set(e, "broken brackets in the host");
            return false;
        }
        out->host = str_sub(text, 1, close);
        if (close + 1 != text.n)
            port = from(text, close + 2);
    } else {
        out->host = str_sub(text, 0, colon);
        if (colon != text.n)
            port = from(text, colon + 1);
    }
    if (out->host.n == 0) {
        err_set(e, "no host");
        return false;
    }
    return port.p == NULL || parse_port(port, &out->port, e);
}

static bool parse_query(struct str query, struct url *out, struct err *e)
{
    while (query.n != 0) {
        struct str rest = STR_NONE;
        struct str part = str_cut(query, '&', &rest);
        struct url_param p = {0};

        query = rest;
        if (part.n == 0)
            continue;
        if (out->n_params == URL_PARAMS_MAX) {
            err_set(e, "more than %d parameters", URL_PARAMS_MAX);
            return false;
        }
        p.key = str_cut(part, '=', &p.value);
        if (p.value.p == NULL)
            p.value = STR("");
        out->params[out->n_params++] = p;
    }
    return true;
}

bool url_parse(struct str text, struct url *out, struct err *e)
{
    struct str query = STR_NONE;
    size_t at = 0;

    out->scheme = out->user = out->password = out->authority = out->host = out->path = STR_NONE;
    out->port = 0;
    out->n_params = 0;
    if (text.n > URL_MAX) {
        err_set(e, "URL of %zu bytes; at most %d are taken", text.n, URL_MAX);
        return false;
    }
    if (!url_text_ok(text)) {
        err_set(e, "control bytes or broken UTF-8 in the URL");
        return false;
    }
    text = str_cut(text, '?', &query);
    at = find_text(text, STR("://"));
    out->scheme = str_sub(text, 0, at);
    if (at == text.n || !all_of(out->scheme, "+-.")) {
        err_set(e, "no URL: it does not start with a scheme and ://");
        return false;
    }
    text = str_cut(from(text, at + 3), '/', &out->path);
    at = find_last(text, '@');
    if (at != text.n) {
        out->user = str_cut(str_sub(text, 0, at), ':', &out->password);
        text = from(text, at + 1);
    }
    out->authority = text;
    return parse_authority(text, out, e) && parse_query(query, out, e);
}

void url_print_masked(struct str address, struct buf *out)
{
    size_t scheme = str_find(address, ':');
    size_t begin = str_starts(from(address, scheme), STR("://")) ? scheme + 3 : 0;
    struct str hosts = str_sub(address, begin, address.n);
    size_t at = find_last(hosts,
                          '@'); /* also in a malformed one: rather too much than too little */

    buf_add_str(out, str_sub(address, 0, begin));
    if (at != hosts.n)
        buf_add_str(out, STR("***"));
    buf_add_str(out, at != hosts.n ? from(hosts, at) : hosts);
}

struct str url_param(const struct url *u, struct str key)
{
    const struct str prefix = STR("default.");
    struct str by_default = STR_NONE;

    for (size_t i = u->n_params; i-- > 0;) {
        const struct url_param *p = &u->params[i];

        if (str_eq(p->key, key))
            return p->value;
        if (by_default.p == NULL && p->key.n == prefix.n + key.n && str_starts(p->key, prefix) &&
            str_ends(p->key, key))
            by_default = p->value;
    }
    return by_default;
}

void url_encode(struct str s, struct buf *out)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (is_alnum(s.p[i]) || c == '.' || c == '-' || c == '*' || c == '_') {
            buf_add_u8(out, c);
        } else if (c == ' ') {
            buf_add_u8(out, '+');
        } else {
            const char coded[3] = {'%', hex[c >> 4], hex[c & 15]};

            buf_add(out, coded, sizeof(coded));
        }
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* Three bytes at `p`, the first is '%'; -1 when no two hex digits follow. */
static int hex_byte(const char *p)
{
    int high = hex_digit(p[1]);
    int low = hex_digit(p[2]);

    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool url_decode(struct str s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        int byte = (unsigned char)s.p[i];

        if (byte == '+') {
            byte = ' ';
        } else if (byte == '%') {
            byte = s.n - i > 2 ? hex_byte(s.p + i) : -1;
            i += 2;
        }
        if (byte < 0)
            return false;
        buf_add_u8(out, (uint8_t)byte);
    }
    return !out->failed;
}

bool url_decode_node(struct str node, struct arena *a, struct str *out, struct err *e)
{
    struct buf b;
    bool ok = false;

    if (node.n > URL_NODE_MAX) {
        err_set(e, "node name of %zu bytes", node.n);
        return false;
    }
    buf_init(&b, URL_NODE_MAX);
    ok = url_decode(node, &b);
    if (ok)
        *out = arena_str(a, buf_str(&b));
    else
        err_set(e, "node name is not percent-encoded text");
    buf_free(&b);
    return ok;
}
