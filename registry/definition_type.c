/*
 * Names of types as metadata has them, in the form that is kept (docs/REGISTRY.md section 7.3).
 */
#include "registry/definition.h"

enum { ARGUMENT_DEPTH = 8 };

struct reader {
    struct str rest;
    struct buf *out;
};

static void skip_blanks(struct reader *r)
{
    while (r->rest.n != 0 && r->rest.p[0] == ' ')
        r->rest = str_sub(r->rest, 1, r->rest.n);
}

static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->rest.n == 0 || r->rest.p[0] != c)
        return false;
    r->rest = str_sub(r->rest, 1, r->rest.n);
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct str take_word(struct reader *r)
{
    size_t n = 0;

    skip_blanks(r);
    while (n < r->rest.n &&
           (is_letter(r->rest.p[n]) || is_digit(r->rest.p[n]) || r->rest.p[n] == '.'))
        n++;
    struct str word = str_sub(r->rest, 0, n);

    r->rest = str_sub(r->rest, n, r->rest.n);
    return word;
}

static bool is_primitive(struct str s)
{
    static const char *const names[] = {"boolean", "byte",   "short", "int", "long",
                                        "float",   "double", "char",  "void"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_is(s, names[i]))
            return true;
    }
    return false;
}

/* 3.x writes Outer.In, 2.7 does for arrays; the provider looks for Outer$In.  A segment that starts with an
 * upper-case letter is a class, so all that follows is inside: packages are not. */
static bool put_class(struct reader *r, struct str name)
{
    bool inside = false;

    while (name.n != 0) {
        struct str rest = STR_NONE;
        struct str segment = str_cut(name, '.', &rest);

        if (segment.n == 0 || is_digit(segment.p[0]) || (rest.p != NULL && rest.n == 0))
            return false;
        inside = inside || (segment.p[0] >= 'A' && segment.p[0] <= 'Z');
        buf_add_str(r->out, segment);
        if (rest.n != 0)
            buf_add_u8(r->out, inside ? '$' : '.');
        name = rest;
    }
    return true;
}

static bool put_type(struct reader *r, unsigned depth);

static bool put_arguments(struct reader *r, unsigned depth)
{
    buf_add_u8(r->out, '<');
    for (;;) {
        if (!put_type(r, depth + 1))
            return false;
        if (take(r, '>'))
            break;
        if (!take(r, ','))
            return false;
        buf_add_u8(r->out, ',');
    }
    buf_add_u8(r->out, '>');
    return true;
}

/* "? extends X" and "? super X" are X, "?" alone anything. */
static bool put_wildcard(struct reader *r, unsigned depth)
{
    struct reader before = *r;
    struct str word = take_word(r);

    if (str_is(word, "extends") || str_is(word, "super"))
        return put_type(r, depth + 1);
    *r = before;
    buf_add_str(r->out, STR("java.lang.Object"));
    return true;
}

static bool put_type(struct reader *r, unsigned depth)
{
    struct str word = STR_NONE;

    if (depth > ARGUMENT_DEPTH)
        return false;
    if (take(r, '?'))
        return put_wildcard(r, depth);
    word = take_word(r);
    if (word.n == 0)
        return false;
    if (str_find(word, '.') == word.n && str_find(word, '$') == word.n && !is_primitive(word)) {
        buf_add_str(r->out, STR("java.lang.Object")); /* a type variable: T, K; it has no package */
    } else if (!put_class(r, word)) {
        return false;
    }
    if (take(r, '<') && !put_arguments(r, depth))
        return false;
    while (take(r, '[')) {
        if (!take(r, ']'))
            return false;
        buf_add_str(r->out, STR("[]"));
    }
    return true;
}

bool definition_type_name(struct str text, struct arena *a, struct str *out)
{
    char room[DEFINITION_NAME_MAX];
    struct buf b = {.data = (uint8_t *)room, .cap = sizeof(room), .limit = sizeof(room)};
    struct reader r = {text, &b};

    if (text.n > DEFINITION_NAME_MAX || !put_type(&r, 0))
        return false;
    skip_blanks(&r);
    if (r.rest.n != 0 || b.failed)
        return false;
    *out = arena_str(a, buf_str(&b));
    return true;
}
