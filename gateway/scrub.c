#include "gateway/scrub.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/buf.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_digit(c) || is_letter(c) || c == '_';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Digits from s.p[i] on, at most `max`, not over `limit`; their number, 0 = none. */
static size_t digits(struct str s, size_t i, size_t max, unsigned limit)
{
    size_t n = 0;
    unsigned v = 0;

    while (i + n < s.n && is_digit(s.p[i + n]) && n <= max) {
        v = v * 10 + (unsigned)(s.p[i + n] - '0');
        n++;
    }
    return n > max || v > limit ? 0 : n;
}

/* ":PORT" at s.p[i]; its bytes, 0 = none. */
static size_t port_at(struct str s, size_t i)
{
    size_t n = i < s.n && s.p[i] == ':' ? digits(s, i + 1, 5, 65535) : 0;

    return n != 0 ? n + 1 : 0;
}

static bool is_end(struct str s, size_t i)
{
    return i >= s.n || !is_word(s.p[i]);
}

/* Bytes of an IPv4 address, with its port, at s.p[i]; 0 = none. */
static size_t ipv4_at(struct str s, size_t i)
{
    size_t at = i;

    if (i != 0 && (is_word(s.p[i - 1]) || s.p[i - 1] == '.'))
        return 0;
    for (unsigned part = 0; part < 4; part++) {
        size_t n = digits(s, at, 3, 255);

        if (n == 0 || (part < 3 && (at + n >= s.n || s.p[at + n] != '.')))
            return 0;
        at += n + (part < 3 ? 1U : 0U);
    }
    at += port_at(s, at);
    if (!is_end(s, at) || (at + 1 < s.n && s.p[at] == '.' && is_word(s.p[at + 1])))
        return 0; /* a longer number: a version, an object identifier */
    return at - i;
}

/* The address alone, with its zone. */
static size_t bare_ipv6_at(struct str s, size_t i)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char out[16];
    size_t n = 0;

    while (i + n < s.n && n < sizeof(text) - 1 &&
           (is_hex(s.p[i + n]) || s.p[i + n] == ':' || s.p[i + n] == '.'))
        n++;
    while (n != 0 &&
           (s.p[i + n - 1] == '.' || (n > 2 && s.p[i + n - 1] == ':' && s.p[i + n - 2] != ':')))
        n--; /* the end of a sentence */
    if (n < 3)
        return 0;
    memcpy(text, s.p + i, n);
    text[n] = '\0';
    if (inet_pton(AF_INET6, text, out) != 1)
        return 0;
    if (i + n < s.n && s.p[i + n] == '%') {
        do {
            n++;
        } while (i + n < s.n && (is_word(s.p[i + n]) || s.p[i + n] == '-'));
    }
    return is_end(s, i + n) ? n : 0;
}

/* "[v6]", "[v6]:port" or "v6". */
static size_t ipv6_at(struct str s, size_t i)
{
    size_t n = 0;

    if (i != 0 && (is_word(s.p[i - 1]) || s.p[i - 1] == ':'))
        return 0;
    if (s.p[i] != '[')
        return is_hex(s.p[i]) || s.p[i] == ':' ? bare_ipv6_at(s, i) : 0;
    n = bare_ipv6_at(s, i + 1);
    if (n == 0 || i + 1 + n >= s.n || s.p[i + 1 + n] != ']')
        return 0;
    return n + 2 + port_at(s, i + n + 2);
}

/* "Foo.java:42" is a place in a program. */
static bool is_source_file(struct str name)
{
    return str_ends(name, STR(".java")) || str_ends(name, STR(".kt")) ||
           str_ends(name, STR(".scala")) || str_ends(name, STR(".groovy"));
}

/* Without a dot a word before a number is mostly none: "line:42". */
static bool is_host(struct str s, size_t i, struct str name, bool dotted, bool marked)
{
    bool in_url = i != 0 &&
                  (s.p[i - 1] == '@' || (i > 1 && s.p[i - 1] == '/' && s.p[i - 2] == '/'));

    return in_url || (dotted && !is_source_file(name)) || marked || str_is(name, "localhost");
}

/* Bytes of NAME:PORT at s.p[i]; 0 = none. */
static size_t named_at(struct str s, size_t i)
{
    size_t n = 0;
    size_t port = 0;
    bool dotted = false;
    bool marked = false; /* a digit or a hyphen behind the first letter: zk1, db-master */
    bool letters = false;

    if (i != 0 && (is_word(s.p[i - 1]) || s.p[i - 1] == '.' || s.p[i - 1] == '-'))
        return 0;
    for (; i + n < s.n && (is_word(s.p[i + n]) || s.p[i + n] == '.' || s.p[i + n] == '-'); n++) {
        dotted = dotted || s.p[i + n] == '.';
        marked = marked || (n != 0 && (s.p[i + n] == '-' || is_digit(s.p[i + n])));
        letters = letters || is_letter(s.p[i + n]);
    }
    port = n != 0 && n <= 253 && letters ? port_at(s, i + n) : 0;
    if (port < 3 || !is_end(s, i + n + port) ||
        !is_host(s, i, str_sub(s, i, i + n), dotted, marked))
        return 0;
    return n + port;
}

static size_t address_at(struct str s, size_t i)
{
    size_t n = ipv4_at(s, i);

    if (n == 0)
        n = ipv6_at(s, i);
    return n != 0 ? n : named_at(s, i);
}

struct str without_addresses(struct str text, struct arena *a)
{
    static const char instead[] = "[address]";
    size_t most = text.n * 3 + 1; /* three bytes at least become nine */
    struct buf out = {.data = arena_alloc(a, most), .cap = most, .limit = most};

    for (size_t i = 0; i < text.n;) {
        size_t n = address_at(text, i);

        if (n != 0)
            buf_add(&out, instead, sizeof(instead) - 1);
        else
            buf_add_u8(&out, (uint8_t)text.p[i]);
        i += n != 0 ? n : 1;
    }
    return buf_str(&out);
}
