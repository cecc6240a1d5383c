#include "gateway/overload.h"

#include <string.h>

#include "codec/date_parse.h"
#include "codec/decimal.h"
#include "codec/json_read.h"
#include "codec/number.h"
#include "codec/utf.h"

enum {
    POINT = 10,     /* scores are in tenths */
    LOOK_MAX = 64,  /* elements and members that are looked at */
    LOOK_DEPTH = 4, /* arrays in arrays */
    TEXT_MAX = 64,  /* no date and no number of interest is longer */
    MATCH_MAX = 10, /* tenths for an object whose members are all properties */
};

static unsigned score(const struct jtype *type, struct str json, unsigned depth);

/* ---------------------------------------------------------------- scalars */

static bool is_date(struct str text)
{
    struct date_fields d;

    return text.n <= TEXT_MAX && date_parse(text, &d);
}

static unsigned score_text(const struct jtype *t, const struct json_token *j)
{
    const struct jtype_class *c = t->class;

    switch (t->kind) {
    case JTYPE_STRING:
        return 5 * POINT;
    case JTYPE_OTHER:
        if (c == NULL) /* the provider did not describe it: it may be an enum */
            return 1;
        return j->plain && jtype_has_constant(c, j->text) ? 5 * POINT : 0;
    case JTYPE_CHAR:
        return j->plain && utf_units(j->text) == 1 ? 3 * POINT : 0;
    case JTYPE_DATE:
        return j->plain && is_date(j->text) ? 2 * POINT : 0;
    case JTYPE_VALUE: /* java.time, UUID, Locale: their texts */
        return 2 * POINT;
    case JTYPE_BIG_DECIMAL:
    case JTYPE_BIG_INTEGER:
    case JTYPE_LONG:
        return j->text.n <= TEXT_MAX && number_is_json(j->text) ? POINT : 0;
    case JTYPE_ARRAY: /* byte[] is Base64 */
        return t->element->kind == JTYPE_BYTE && t->element->primitive ? 2 : 0;
    case JTYPE_OBJECT:
        return POINT;
    case JTYPE_BOOLEAN:
    case JTYPE_BYTE:
    case JTYPE_SHORT:
    case JTYPE_INT:
    case JTYPE_FLOAT:
    case JTYPE_DOUBLE:
    case JTYPE_NUMBER:
    case JTYPE_LIST:
    case JTYPE_MAP:
    case JTYPE_UNSUPPORTED:
        break;
    }
    return 0;
}

static unsigned score_whole(const struct jtype *t, struct str token)
{
    int64_t v = 0;
    bool is_long = str_to_i64(token, INT64_MIN, INT64_MAX, &v);
    bool is_int = is_long && v >= INT32_MIN && v <= INT32_MAX;

    switch (t->kind) {
    case JTYPE_LONG:
        return is_long ? (t->primitive ? 5 : 4) * POINT : 0;
    case JTYPE_INT:
        return is_int ? (t->primitive ? 4 : 3) * POINT : 0;
    case JTYPE_SHORT:
        return is_int && v >= INT16_MIN && v <= INT16_MAX ? 2 * POINT : 0;
    case JTYPE_BYTE:
        return is_int && v >= INT8_MIN && v <= INT8_MAX ? 2 * POINT : 0;
    case JTYPE_DOUBLE:
    case JTYPE_FLOAT:
    case JTYPE_NUMBER:
    case JTYPE_BIG_INTEGER:
    case JTYPE_BIG_DECIMAL:
        return 2 * POINT;
    case JTYPE_DATE:
        return is_long ? POINT : 0;
    case JTYPE_OBJECT:
        return POINT;
    case JTYPE_VALUE: /* Instant and java.sql dates from milliseconds, atomic numbers */
        return is_long ? POINT / 2 : 0;
    case JTYPE_BOOLEAN:
    case JTYPE_CHAR:
    case JTYPE_STRING:
    case JTYPE_LIST:
    case JTYPE_MAP:
    case JTYPE_ARRAY:
    case JTYPE_UNSUPPORTED:
    case JTYPE_OTHER:
        break;
    }
    return 0;
}

static unsigned score_fraction(const struct jtype *t)
{
    switch (t->kind) {
    case JTYPE_DOUBLE:
        return (t->primitive ? 5 : 4) * POINT;
    case JTYPE_FLOAT:
    case JTYPE_BIG_DECIMAL:
    case JTYPE_NUMBER:
        return 3 * POINT;
    case JTYPE_OBJECT:
        return POINT;
    case JTYPE_BOOLEAN:
    case JTYPE_BYTE:
    case JTYPE_SHORT:
    case JTYPE_INT:
    case JTYPE_LONG:
    case JTYPE_CHAR:
    case JTYPE_STRING:
    case JTYPE_BIG_INTEGER:
    case JTYPE_DATE:
    case JTYPE_VALUE:
    case JTYPE_LIST:
    case JTYPE_MAP:
    case JTYPE_ARRAY:
    case JTYPE_UNSUPPORTED:
    case JTYPE_OTHER:
        break;
    }
    return 0;
}

static unsigned score_number(const struct jtype *t, struct str token)
{
    bool fraction = str_find(token, '.') != token.n || str_find(token, 'e') != token.n ||
                    str_find(token, 'E') != token.n;

    return fraction ? score_fraction(t) : score_whole(t, token);
}

static unsigned score_boolean(const struct jtype *t)
{
    if (t->kind == JTYPE_BOOLEAN)
        return (t->primitive ? 5 : 4) * POINT;
    return t->kind == JTYPE_OBJECT ? POINT : 0;
}

static unsigned score_null(const struct jtype *t)
{
    if (t->primitive)
        return 0;
    return t->kind == JTYPE_OBJECT ? 1 : POINT; /* Object takes it only when nobody else does */
}

/* ---------------------------------------------------------------- containers */

/* Tenths by the share of the members that are properties. */
static unsigned share_of_members(const struct jtype_class *c, struct str json)
{
    struct json_each each = {0};
    struct json_token key;
    struct str value = STR_NONE;
    unsigned n = 0;
    unsigned known = 0;

    while (n < LOOK_MAX && json_object_next(&each, json, &key, &value)) {
        n++;
        for (size_t i = 0; i < c->n_properties; i++) {
            if (json_string_is(&key, c->properties[i].name)) {
                known++;
                break;
            }
        }
    }
    return n != 0 ? MATCH_MAX * known / n : 0;
}

static unsigned score_object(const struct jtype *t, struct str json)
{
    if (t->kind == JTYPE_MAP)
        return 3 * POINT;
    if (t->kind == JTYPE_OBJECT)
        return POINT;
    if (t->kind != JTYPE_OTHER || (t->class != NULL && t->class->n_enums != 0))
        return 0;
    return 3 * POINT + (t->class != NULL ? share_of_members(t->class, json) : 0);
}

static unsigned score_array(const struct jtype *t, struct str json, unsigned depth)
{
    struct json_each each = {0};
    struct str element = STR_NONE;

    if (t->kind == JTYPE_OBJECT)
        return POINT;
    if (t->kind != JTYPE_ARRAY && t->kind != JTYPE_LIST)
        return 0;
    for (unsigned n = 0; depth < LOOK_DEPTH && t->element != NULL && n < LOOK_MAX &&
                         json_array_next(&each, json, &element);
         n++) {
        /* an element's type is converted as an argument's is: a number may be a text there */
        if (score(t->element, element, depth + 1) == 0)
            return 0;
    }
    return 4 * POINT;
}

static unsigned score(const struct jtype *type, struct str json, unsigned depth)
{
    struct json_reader j;
    struct json_token t;

    json_begin(&j, json, JSON_DEPTH_MAX);
    t = json_next(&j);
    switch (t.kind) {
    case JSON_TOKEN_NULL:
        return score_null(type);
    case JSON_TOKEN_TRUE:
    case JSON_TOKEN_FALSE:
        return score_boolean(type);
    case JSON_TOKEN_NUMBER:
        return score_number(type, t.text);
    case JSON_TOKEN_STRING:
        return score_text(type, &t);
    case JSON_TOKEN_BEGIN_ARRAY:
        return score_array(type, json, depth);
    case JSON_TOKEN_BEGIN_OBJECT:
        return score_object(type, json);
    case JSON_TOKEN_END_ARRAY:
    case JSON_TOKEN_END_OBJECT:
    case JSON_TOKEN_KEY:
    case JSON_TOKEN_END:
    case JSON_TOKEN_ERROR:
        break;
    }
    return 0;
}

unsigned overload_score(const struct jtype *type, struct str json)
{
    return score(type, json, 0);
}

/* ---------------------------------------------------------------- the choice */

/* A type that the caller gave is part of the question. */
static bool given_types_fit(const struct signature *s, const struct arg *args)
{
    for (size_t i = 0; i < s->n; i++) {
        if (args[i].type != NULL && !str_eq(args[i].type->name, s->types[i].name))
            return false;
    }
    return true;
}

/* 0 = it cannot be this one. */
static unsigned sum_of(const struct signature *s, const struct arg *args)
{
    unsigned sum = 1; /* a method without parameters fits, too */

    for (size_t i = 0; i < s->n; i++) {
        unsigned points = args[i].type != NULL ? 1 : score(&s->types[i], args[i].json, 0);

        if (points == 0)
            return 0;
        sum += points;
    }
    return sum;
}

enum overload_result overload_choose(const struct signature *v, size_t n, const struct arg *args,
                                     size_t n_args, const struct signature **out)
{
    const struct signature *last = NULL;
    size_t candidates = 0;
    unsigned best = 0;
    bool tie = false;

    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        unsigned sum = 0;

        if (v[i].n != n_args || !given_types_fit(&v[i], args))
            continue;
        candidates++;
        last = &v[i];
        sum = sum_of(&v[i], args);
        if (sum > best) {
            *out = &v[i];
            best = sum;
            tie = false;
        } else if (sum != 0 && sum == best) {
            tie = true;
        }
    }
    if (candidates == 0)
        return OVERLOAD_ARITY;
    if (candidates == 1) {
        *out = last; /* the encoder says what does not fit, and where */
        return OVERLOAD_OK;
    }
    if (best == 0)
        return OVERLOAD_NO_FIT;
    return tie ? OVERLOAD_AMBIGUOUS : OVERLOAD_OK;
}
