#include "registry/condition.h"

#include <string.h>

#include "base/fatal.h"

/* ---------------------------------------------------------------- texts */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_separator(char c)
{
    return c == '&' || c == '!' || c == '=' || c == ',';
}

/* Dubbo removes these words wherever they stand, before it looks at anything else. */
static struct str without_words(struct str text, struct arena *a)
{
    static const struct str words[] = {STR_INIT("consumer."), STR_INIT("provider.")};
    char *out = arena_alloc(a, text.n + 1);
    size_t n = text.n;

    if (n != 0)
        memcpy(out, text.p, n);
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        size_t to = 0;

        for (size_t i = 0; i < n;) {
            if (str_starts((struct str){out + i, n - i}, words[w]))
                i += words[w].n;
            else
                out[to++] = out[i++];
        }
        n = to;
    }
    return (struct str){out, n};
}

/* The next separator (may be empty) and the word behind it; false at the end. */
static bool next_word(struct str *rest, struct str *separator, struct str *word)
{
    for (size_t at = 0; at < rest->n; at++) {
        size_t i = at;
        size_t begin = 0;

        while (i < rest->n && is_separator(rest->p[i]))
            i++;
        *separator = str_sub(*rest, at, i);
        while (i < rest->n && is_space(rest->p[i]))
            i++;
        begin = i;
        while (i < rest->n && !is_space(rest->p[i]) && !is_separator(rest->p[i]))
            i++;
        if (i == begin)
            continue; /* a separator that nothing follows is passed over */
        *word = str_sub(*rest, begin, i);
        *rest = str_sub(*rest, i, rest->n);
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- parsing */

struct part_parser {
    struct arena *a;
    struct condition_part *part;
    struct condition_key *key;
    struct str **values; /* where "," adds to */
    size_t *n_values;
};

static struct condition_key *find_key(const struct condition_part *p, struct str name)
{
    for (size_t i = 0; i < p->n; i++) {
        if (str_eq(p->keys[i].name, name))
            return &p->keys[i];
    }
    return NULL;
}

static bool begin_key(struct part_parser *pp, struct str name, bool go_on)
{
    struct condition_part *p = pp->part;
    struct condition_key *k = find_key(p, name);

    pp->values = NULL;
    if (k == NULL) {
        if (p->n == CONDITION_KEYS_MAX)
            return false;
        k = &p->keys[p->n++];
    } else if (go_on) {
        pp->key = k;
        return true;
    }
    *k = (struct condition_key){.name = name};
    k->matches = arena_alloc(pp->a, CONDITION_VALUES_MAX * sizeof(struct str));
    k->mismatches = arena_alloc(pp->a, CONDITION_VALUES_MAX * sizeof(struct str));
    pp->key = k;
    return true;
}

static bool add_value(struct part_parser *pp, struct str value)
{
    if (*pp->n_values == CONDITION_VALUES_MAX)
        return false;
    (*pp->values)[(*pp->n_values)++] = value;
    return true;
}

static bool take_word(struct part_parser *pp, struct str separator, struct str word)
{
    if (separator.n == 0)
        return begin_key(pp, word, false);
    if (str_is(separator, "&"))
        return begin_key(pp, word, true);
    if (pp->key == NULL)
        return false;
    if (str_is(separator, "=")) {
        pp->values = &pp->key->matches;
        pp->n_values = &pp->key->n_matches;
    } else if (str_is(separator, "!=")) {
        pp->values = &pp->key->mismatches;
        pp->n_values = &pp->key->n_mismatches;
    } else if (!str_is(separator, ",") || pp->values == NULL || *pp->n_values == 0) {
        return false;
    }
    return add_value(pp, word);
}

static bool parse_words(struct str text, struct arena *a, struct condition_part *out, struct err *e)
{
    struct part_parser pp = {.a = a, .part = out};
    struct str rest = text;
    struct str separator;
    struct str word;

    *out = (struct condition_part){
        .keys = arena_alloc(a, CONDITION_KEYS_MAX * sizeof(struct condition_key))};
    while (next_word(&rest, &separator, &word)) {
        if (!take_word(&pp, separator, word)) {
            err_set(e, "illegal rule \"" STR_FMT "\": \"" STR_FMT "\" before \"" STR_FMT "\"",
                    STR_ARG(text), STR_ARG(separator), STR_ARG(word));
            return false;
        }
    }
    return true;
}

bool condition_parse_part(struct str text, struct arena *a, struct condition_part *out,
                          struct err *e)
{
    text = str_trim(without_words(text, a));
    *out = (struct condition_part){0};
    return text.n == 0 || str_is(text, "true") || parse_words(text, a, out, e);
}

static size_t find_arrow(struct str text)
{
    for (size_t i = 0; i + 1 < text.n; i++) {
        if (text.p[i] == '=' && text.p[i + 1] == '>')
            return i;
    }
    return text.n;
}

bool condition_parse(struct str text, struct arena *a, struct condition *out, struct err *e)
{
    struct str t = without_words(text, a);
    size_t arrow = find_arrow(t);
    struct str when = arrow == t.n ? STR_NONE : str_trim(str_sub(t, 0, arrow));
    struct str then = str_trim(arrow == t.n ? t : str_sub(t, arrow + 2, t.n));

    *out = (struct condition){0};
    if (str_trim(text).n == 0) {
        err_set(e, "an empty rule");
        return false;
    }
    if (!condition_parse_part(when, a, &out->when, e))
        return false;
    out->forbid = then.n == 0 || str_is(then, "false");
    return out->forbid || parse_words(then, a, &out->then, e);
}

/* ---------------------------------------------------------------- matching */

bool condition_glob(struct str pattern, struct str value)
{
    size_t star = pattern.n;

    if (str_is(pattern, "*"))
        return true;
    if (pattern.n == 0 || value.n == 0)
        return pattern.n == 0 && value.n == 0;
    while (star > 0 && pattern.p[star - 1] != '*')
        star--;
    if (star == 0)
        return str_eq(pattern, value);
    return str_starts(value, str_sub(pattern, 0, star - 1)) &&
           str_ends(value, str_sub(pattern, star, pattern.n));
}

/* "a~b", "~b", "a~"; false = not a range of integers. */
static bool range(struct str pattern, struct str value, bool *matches)
{
    size_t tilde = str_find(pattern, '~');
    int64_t lo = INT64_MIN;
    int64_t hi = INT64_MAX;
    int64_t v = 0;

    if ((tilde != 0 && !str_to_i64(str_sub(pattern, 0, tilde), lo, hi, &lo)) ||
        (tilde + 1 < pattern.n &&
         !str_to_i64(str_sub(pattern, tilde + 1, pattern.n), INT64_MIN, hi, &hi)) ||
        pattern.n == 1 || !str_to_i64(value, INT64_MIN, INT64_MAX, &v))
        return false;
    *matches = v >= lo && v <= hi;
    return true;
}

static bool pattern_matches(struct str pattern, struct str value, const struct condition_sample *s)
{
    bool matches = !s->is_when; /* of what should be a range and is none */

    if (s->reference != NULL && pattern.n != 0 && pattern.p[0] == '$') {
        struct str name = str_sub(pattern, 1, pattern.n);

        pattern = STR_NONE;
        (void)s->reference(s->reference_ctx, name, &pattern);
    }
    if (s->line >= DUBBO_32 && str_find(pattern, '~') != pattern.n) {
        (void)range(pattern, value, &matches);
        return matches;
    }
    return condition_glob(pattern, value);
}

static bool any_matches(const struct str *patterns, size_t n, struct str value,
                        const struct condition_sample *s)
{
    for (size_t i = 0; i < n; i++) {
        if (pattern_matches(patterns[i], value, s))
            return true;
    }
    return false;
}

static bool key_matches(const struct condition_key *k, const struct condition_sample *s)
{
    struct str value;

    if (!s->value(s->ctx, k->name, &value))
        return s->line < DUBBO_32 && k->n_matches == 0;
    if (k->n_matches == 0 && k->n_mismatches == 0)
        return false;
    return !any_matches(k->mismatches, k->n_mismatches, value, s) &&
           (k->n_matches == 0 || any_matches(k->matches, k->n_matches, value, s));
}

bool condition_part_matches(const struct condition_part *p, const struct condition_sample *s)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!key_matches(&p->keys[i], s))
            return false;
    }
    return p->n != 0;
}

bool condition_bracket(struct str key, struct str name, struct str *inside)
{
    struct str rest = str_sub(key, name.n, key.n);
    size_t end = str_find(rest, ']');

    if (!str_starts(key, name) || rest.n == 0 || rest.p[0] != '[' || end == rest.n)
        return false;
    *inside = str_sub(rest, 1, end);
    return true;
}
