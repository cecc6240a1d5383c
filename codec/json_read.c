#include "codec/json_read.h"

#include <string.h>

#include "codec/number.h"
#include "codec/utf.h"

void json_begin(struct json_reader *j, struct str text, unsigned max_depth)
{
    const char *p = text.n != 0 ? text.p : "";

    *j = (struct json_reader){
        .base = p,
        .p = p,
        .end = p + text.n,
        .max_depth = max_depth < JSON_DEPTH_MAX ? max_depth : JSON_DEPTH_MAX,
        .want = JSON_WANT_VALUE,
    };
}

size_t json_offset(const struct json_reader *j)
{
    return (size_t)(j->p - j->base);
}

void json_position(struct str text, size_t offset, unsigned *line, unsigned *column)
{
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < offset && i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (c == '\n') {
            (*line)++;
            *column = 1;
        } else if ((c & 0xc0) != 0x80) {
            (*column)++;
        }
    }
}

/* The way of every token: calls would cost more than their work. */
#define ALWAYS_INLINE __attribute__((always_inline))

static enum json_kind fail(struct json_reader *j, const char *why)
{
    j->error = why;
    return JSON_TOKEN_ERROR;
}

static inline ALWAYS_INLINE void skip_blanks(struct json_reader *j)
{
    const char *p = j->p;

    if (p < j->end && (unsigned char)*p > ' ')
        return; /* nearly always */
    while (p < j->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    j->p = p;
}

/* ---------------------------------------------------------------- strings */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The unit of a \uXXXX escape at p (behind the 'u'); -1 when it is none. */
static int32_t hex_unit(const char *p, const char *end)
{
    int32_t v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);

        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* Length of the escape that begins at p with '\\'; 0 = bad, with the reason. */
static size_t escape_len(const char *p, const char *end, const char **why)
{
    int32_t unit = 0;

    *why = "a backslash starts no known escape";
    if (end - p < 2)
        return 0;
    if (p[1] != 'u')
        return strchr("\"\\/bfnrt", p[1]) != NULL && p[1] != '\0' ? 2 : 0;
    unit = hex_unit(p + 2, end);
    if (unit < 0)
        return 0;
    if (unit < 0xd800 || unit > 0xdfff)
        return 6;
    *why = "a surrogate stands alone";
    if (unit >= 0xdc00 || end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    unit = hex_unit(p + 8, end);
    return unit >= 0xdc00 && unit <= 0xdfff ? 12 : 0;
}

static enum json_kind take_string(struct json_reader *j, struct json_token *t, enum json_kind kind)
{
    const char *from = ++j->p;

    t->plain = true;
    t->ascii = true;

    for (;;) {
        size_t n = 0;
        const char *why = NULL;

        j->p += utf_plain_run((const uint8_t *)j->p, (size_t)(j->end - j->p));
        if (j->p == j->end)
            return fail(j, "a string does not end");
        if (*j->p == '"')
            break;
        if (*j->p == '\\') {
            t->plain = false;
            n = escape_len(j->p, j->end, &why);
            if (n == 0)
                return fail(j, why);
        } else if ((unsigned char)*j->p < 0x20) {
            return fail(j, "a string holds a control character");
        } else {
            t->ascii = false;
            n = utf_char_len((const uint8_t *)j->p, (size_t)(j->end - j->p));
            if (n == 0)
                return fail(j, "a string holds bytes that are no UTF-8");
        }
        j->p += n;
    }
    t->text = (struct str){from, (size_t)(j->p - from)};
    j->p++;
    return kind;
}

/* ---------------------------------------------------------------- values */

static enum json_kind take_number(struct json_reader *j, struct json_token *t)
{
    const char *from = j->p;
    const char *p = from;
    struct str s;

    while (p < j->end && ((*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == '.' ||
                          *p == 'e' || *p == 'E'))
        p++;
    s = (struct str){from, (size_t)(p - from)};
    if (s.n == 0)
        return fail(j, "no value starts with this");
    if (!number_is_json(s))
        return fail(j, "this is no number");
    j->p = p;
    t->text = s;
    return JSON_TOKEN_NUMBER;
}

static enum json_kind take_word(struct json_reader *j, struct json_token *t, struct str word,
                                enum json_kind kind)
{
    if ((size_t)(j->end - j->p) < word.n || memcmp(j->p, word.p, word.n) != 0)
        return fail(j, "this is no JSON value");
    j->p += word.n;
    t->text = word;
    return kind;
}

static inline bool is_object_level(const struct json_reader *j)
{
    return (j->in_object[(j->depth - 1) / 64] >> ((j->depth - 1) % 64) & 1) != 0;
}

static enum json_kind open_container(struct json_reader *j, bool object)
{
    uint64_t bit = UINT64_C(1) << (j->depth % 64);

    if (j->depth >= j->max_depth)
        return fail(j, "nested too deep");
    if (object)
        j->in_object[j->depth / 64] |= bit;
    else
        j->in_object[j->depth / 64] &= ~bit;
    j->depth++;
    j->p++;
    j->want = JSON_WANT_FIRST;
    return object ? JSON_TOKEN_BEGIN_OBJECT : JSON_TOKEN_BEGIN_ARRAY;
}

static void after_value(struct json_reader *j)
{
    j->want = j->depth == 0 ? JSON_DONE : JSON_WANT_NEXT;
}

static enum json_kind close_container(struct json_reader *j)
{
    bool object = is_object_level(j);

    j->p++;
    j->depth--;
    after_value(j);
    return object ? JSON_TOKEN_END_OBJECT : JSON_TOKEN_END_ARRAY;
}

static enum json_kind take_value(struct json_reader *j, struct json_token *t)
{
    enum json_kind kind = JSON_TOKEN_ERROR;

    if (j->p == j->end)
        return fail(j,
                    j->depth == 0 ? "there is no JSON value" : "the text ends inside a container");
    switch (*j->p) {
    case '{':
        return open_container(j, true);
    case '[':
        return open_container(j, false);
    case '"':
        kind = take_string(j, t, JSON_TOKEN_STRING);
        break;
    case 't':
        kind = take_word(j, t, STR("true"), JSON_TOKEN_TRUE);
        break;
    case 'f':
        kind = take_word(j, t, STR("false"), JSON_TOKEN_FALSE);
        break;
    case 'n':
        kind = take_word(j, t, STR("null"), JSON_TOKEN_NULL);
        break;
    default:
        kind = take_number(j, t);
        break;
    }
    if (kind != JSON_TOKEN_ERROR)
        after_value(j);
    return kind;
}

static enum json_kind take_key(struct json_reader *j, struct json_token *t)
{
    if (j->p == j->end)
        return fail(j, "the text ends inside an object");
    if (*j->p != '"')
        return fail(j, "a member's name must be a string");
    if (take_string(j, t, JSON_TOKEN_KEY) == JSON_TOKEN_ERROR)
        return JSON_TOKEN_ERROR;
    skip_blanks(j);
    if (j->p == j->end || *j->p != ':')
        return fail(j, "a colon is missing after a member's name");
    j->p++;
    j->want = JSON_WANT_VALUE;
    return JSON_TOKEN_KEY;
}

/* After an opening bracket, or after an element. */
static inline ALWAYS_INLINE enum json_kind take_next(struct json_reader *j, struct json_token *t,
                                                     bool first)
{
    bool object = is_object_level(j);
    char closing = object ? '}' : ']';

    if (j->p == j->end)
        return fail(j, object ? "the text ends inside an object" : "the text ends inside an array");
    if (*j->p == closing)
        return close_container(j);
    if (!first) {
        if (*j->p != ',')
            return fail(j, "a comma is missing");
        j->p++;
        skip_blanks(j);
    }
    return object ? take_key(j, t) : take_value(j, t);
}

static inline ALWAYS_INLINE enum json_kind take(struct json_reader *j, struct json_token *t)
{
    skip_blanks(j);
    switch (j->want) {
    case JSON_WANT_VALUE:
        return take_value(j, t);
    case JSON_WANT_FIRST:
        return take_next(j, t, true);
    case JSON_WANT_NEXT:
        return take_next(j, t, false);
    case JSON_DONE:
        break;
    }
    return j->p == j->end ? JSON_TOKEN_END : fail(j, "something follows the JSON value");
}

struct json_token json_next(struct json_reader *j)
{
    struct json_token t = {.kind = JSON_TOKEN_ERROR};

    t.kind = take(j, &t);
    return t;
}

bool json_skip(struct json_reader *j, const struct json_token *t)
{
    unsigned outside = j->depth - 1;

    if (t->kind == JSON_TOKEN_ERROR)
        return false;
    if (t->kind != JSON_TOKEN_BEGIN_ARRAY && t->kind != JSON_TOKEN_BEGIN_OBJECT)
        return true;
    while (j->depth > outside) {
        if (json_next(j).kind == JSON_TOKEN_ERROR)
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- texts */

static const char *add_escape(const char *p, const char *end, struct buf *out)
{
    int32_t unit = 0;

    switch (p[1]) {
    case 'b':
        buf_add_u8(out, '\b');
        return p + 2;
    case 'f':
        buf_add_u8(out, '\f');
        return p + 2;
    case 'n':
        buf_add_u8(out, '\n');
        return p + 2;
    case 'r':
        buf_add_u8(out, '\r');
        return p + 2;
    case 't':
        buf_add_u8(out, '\t');
        return p + 2;
    case 'u':
        break;
    default:
        buf_add_u8(out, (uint8_t)p[1]);
        return p + 2;
    }
    unit = hex_unit(p + 2, end);
    if (unit < 0xd800 || unit > 0xdfff) {
        utf_add_code_point(out, (uint32_t)unit);
        return p + 6;
    }
    utf_add_code_point(out, 0x10000 + (((uint32_t)unit - 0xd800) << 10) +
                                ((uint32_t)hex_unit(p + 8, end) - 0xdc00));
    return p + 12;
}

void json_unescape(const struct json_token *t, struct buf *out)
{
    const char *p = t->text.p;
    const char *end = p + t->text.n;

    if (t->plain) {
        buf_add_str(out, t->text);
        return;
    }
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        const char *stop = slash != NULL ? slash : end;

        if (stop != p)
            buf_add(out, p, (size_t)(stop - p));
        p = slash != NULL ? add_escape(slash, end, out) : end;
    }
}

bool json_string_is(const struct json_token *t, struct str text)
{
    struct buf plain;
    bool same = false;

    if (t->plain)
        return str_eq(t->text, text);
    if (t->text.n < text.n || t->text.n > text.n * 6 + 12)
        return false; /* an escape is at most six bytes for one */
    buf_init(&plain, t->text.n + 1);
    json_unescape(t, &plain);
    same = str_eq(buf_str(&plain), text);
    buf_free(&plain);
    return same;
}

bool json_string_decode(struct str text, struct buf *out)
{
    struct json_reader j;
    struct json_token t;

    json_begin(&j, text, 1);
    t = json_next(&j);
    if (t.kind != JSON_TOKEN_STRING || json_next(&j).kind != JSON_TOKEN_END)
        return false;
    json_unescape(&t, out);
    return true;
}

bool json_is_valid(struct str text, unsigned max_depth, size_t *error_at, const char **error)
{
    struct json_reader j;
    enum json_kind k = JSON_TOKEN_NULL;

    json_begin(&j, text, max_depth);
    while (k != JSON_TOKEN_END && k != JSON_TOKEN_ERROR)
        k = json_next(&j).kind;
    if (error_at != NULL)
        *error_at = json_offset(&j);
    if (error != NULL)
        *error = j.error;
    return k == JSON_TOKEN_END;
}

/* ---------------------------------------------------------------- slices */

/* The raw slice of the value whose first token was read with the reader at `from`. */
static bool slice(struct json_reader *j, const char *from, const struct json_token *t,
                  struct str *out)
{
    if (!json_skip(j, t))
        return false;
    *out = str_trim((struct str){from, (size_t)(j->p - from)});
    return true;
}

static bool begin_each(struct json_each *e, struct str text, enum json_kind kind)
{
    if (e->started)
        return true;
    e->started = true;
    json_begin(&e->reader, text, JSON_DEPTH_MAX);
    return json_next(&e->reader).kind == kind;
}

/* Passes the comma, so that the slice begins at the value. */
static const char *value_start(struct json_reader *j)
{
    skip_blanks(j);
    if (j->p < j->end && *j->p == ',')
        return j->p + 1;
    return j->p;
}

bool json_array_next(struct json_each *e, struct str text, struct str *element)
{
    const char *from = NULL;
    struct json_token t;

    if (!begin_each(e, text, JSON_TOKEN_BEGIN_ARRAY))
        return false;
    from = value_start(&e->reader);
    t = json_next(&e->reader);
    if (t.kind == JSON_TOKEN_END_ARRAY || t.kind == JSON_TOKEN_ERROR || t.kind == JSON_TOKEN_END)
        return false;
    return slice(&e->reader, from, &t, element);
}

bool json_object_next(struct json_each *e, struct str text, struct json_token *key,
                      struct str *value)
{
    const char *from = NULL;
    struct json_token t;

    if (!begin_each(e, text, JSON_TOKEN_BEGIN_OBJECT))
        return false;
    *key = json_next(&e->reader);
    if (key->kind != JSON_TOKEN_KEY)
        return false;
    from = value_start(&e->reader);
    t = json_next(&e->reader);
    return slice(&e->reader, from, &t, value);
}

bool json_member(struct str object, struct str key, struct str *value)
{
    struct json_each e = {0};
    struct json_token k;
    struct str v;
    bool found = false;

    while (json_object_next(&e, object, &k, &v)) {
        if (json_string_is(&k, key)) {
            *value = v;
            found = true;
        }
    }
    return found;
}

enum json_kind json_kind_of(struct str text)
{
    struct json_reader j;

    json_begin(&j, text, JSON_DEPTH_MAX);
    return json_next(&j).kind;
}
