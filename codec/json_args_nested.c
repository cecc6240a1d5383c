/*
 * Natural values: arrays and objects of any depth without recursion, the rules for `class` keys and for keys
 * that come twice, and where in the text an error stands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "codec/args_state.h"
#include "codec/hs2_write.h"
#include "codec/utf.h"

enum { COMPACT_MAX = 65536 };

/*
 * The length is known now: the six bytes of the open form shrink to what Java would have written.  A long
 * list keeps the wide form, so that nested ones do not move their content again and again.
 */
void args_close_list(struct args_state *s, size_t place, size_t n)
{
    struct buf *out = s->out;
    size_t content = place + 4;
    size_t len = 0;
    uint8_t *head = NULL;
    struct buf compact;
    uint8_t bytes[8];

    if (out->failed)
        return;
    len = out->len - content;
    if (len > COMPACT_MAX) {
        hs2_patch_list(out, place, n);
        return;
    }
    compact = (struct buf){.data = bytes, .cap = sizeof(bytes), .limit = sizeof(bytes)};
    hs2_put_list(&compact, n);
    head = out->data + place - 2;
    memcpy(head, bytes, compact.len);
    memmove(head + compact.len, out->data + content, len);
    buf_truncate(out, place - 2 + compact.len + len);
}

/* ---------------------------------------------------------------- duplicate keys */

static bool same_key(struct args_state *s, const struct args_key *k, struct str decoded)
{
    struct json_token t = {
        .kind = JSON_TOKEN_KEY, .text = {s->j.base + k->at, k->len}, .plain = k->plain};

    return json_string_is(&t, decoded);
}

static void place_key(struct args_key *table, size_t cap, struct args_key k)
{
    size_t i = k.hash & (cap - 1);

    while (table[i].object != 0)
        i = (i + 1) & (cap - 1);
    table[i] = k;
}

/* Half full: twice the size. */
static bool grow_keys(struct args_state *s)
{
    size_t cap = s->keys_cap * 2;
    struct args_key *bigger = calloc(cap, sizeof(*bigger));

    if (bigger == NULL)
        return args_fail(s, ARGS_TOO_LARGE, "too many members");
    for (size_t i = 0; i < s->keys_cap; i++) {
        if (s->keys[i].object != 0)
            place_key(bigger, cap, s->keys[i]);
    }
    if (s->keys != s->keys_inline)
        free(s->keys);
    s->keys = bigger;
    s->keys_cap = cap;
    return true;
}

static void clean_keys(struct args_state *s)
{
    if (s->n_keys != 0)
        memset(s->keys, 0, s->keys_cap * sizeof(*s->keys));
    s->n_keys = 0;
}

static bool check_key(struct args_state *s, uint32_t object, const struct json_token *t,
                      struct str decoded)
{
    uint64_t h = hash_bytes(decoded.n != 0 ? decoded.p : "", decoded.n) ^
                 object * UINT64_C(0x9e3779b97f4a7c15);
    struct args_key k = {
        .object = object,
        .hash = (uint32_t)(h ^ h >> 32),
        .at = (uint32_t)(t->text.p - s->j.base),
        .len = (uint32_t)t->text.n,
        .plain = t->plain,
    };
    size_t i = 0;

    if (s->opts->duplicate_keys_last)
        return true;
    if (s->n_keys * 2 >= s->keys_cap && !grow_keys(s))
        return false;
    for (i = k.hash & (s->keys_cap - 1); s->keys[i].object != 0; i = (i + 1) & (s->keys_cap - 1)) {
        const struct args_key *o = &s->keys[i];

        if (o->object == object && o->hash == k.hash && same_key(s, o, decoded)) {
            struct str cut = utf_cut(decoded, 64);

            return args_fail(s, ARGS_BAD_JSON,
                             "the member \"" STR_FMT "\" comes twice in one object", STR_ARG(cut));
        }
    }
    s->keys[i] = k;
    s->n_keys++;
    return true;
}

/* ---------------------------------------------------------------- class keys */

enum class_verdict { CLASS_PASS, CLASS_DROP, CLASS_REFUSED };

/* A string under "class" picks the Java class that the provider instantiates (docs/PROTOCOL.md section 9.4). */
static enum class_verdict judge_class(struct args_state *s, const struct json_token *value)
{
    struct str name;

    if (value->kind != JSON_TOKEN_STRING)
        return CLASS_PASS;
    switch (s->opts->class_key) {
    case ARGS_CLASS_STRIP:
        return CLASS_DROP;
    case ARGS_CLASS_PASS:
        name = args_text(s, value);
        for (size_t i = 0; i < s->opts->n_allow_classes; i++) {
            if (str_eq(name, s->opts->allow_classes[i]))
                return CLASS_PASS;
        }
        args_fail(s, ARGS_BAD_ARGUMENT, "the class named here is not in request.allow_classes");
        return CLASS_REFUSED;
    case ARGS_CLASS_REJECT:
        break;
    }
    args_fail(s, ARGS_BAD_ARGUMENT, "a member named \"class\" with a text is not allowed");
    return CLASS_REFUSED;
}

/* ---------------------------------------------------------------- the walk */

struct level {
    size_t place;              /* of an open list */
    size_t n;                  /* elements so far */
    uint32_t object;           /* number of the object; 0 = a list */
    bool no_null;              /* a map that cannot hold null */
    const struct jtype *type;  /* of a map or POJO whose members have declared types; else NULL */
    const struct jtype *value; /* of the member that was taken last; NULL = its natural value */
};

static struct level open_level(struct args_state *s, enum json_kind kind)
{
    struct level l = {0};

    if (kind == JSON_TOKEN_BEGIN_ARRAY) {
        l.place = hs2_put_open_list(s->out);
        return l;
    }
    if (s->n_objects == 0)
        clean_keys(s);
    l.object = ++s->n_objects;
    return l;
}

/* Values of a map have one type; a name that a POJO does not declare is left to the provider. */
static const struct jtype *member_type(const struct jtype *of, struct str name)
{
    if (of->kind == JTYPE_MAP)
        return of->element;
    return jtype_property(of->class, name);
}

/* Writes the key and hands the value's first token on; a dropped member goes to the next key. */
static bool take_member(struct args_state *s, struct level *l, struct json_token *t)
{
    while (t->kind == JSON_TOKEN_KEY) {
        struct json_token key = *t;
        struct str name = args_text(s, &key);

        if (!check_key(s, l->object, &key, name))
            return false;
        bool is_class = str_eq(name, STR("class"));
        size_t before = s->out->len;

        if (key.plain && key.ascii)
            hs2_put_ascii(s->out, name);
        else
            hs2_put_string(s->out, name);
        if (l->type != NULL)
            l->value = member_type(l->type, name);
        *t = json_next(&s->j);
        if (!is_class)
            return true;
        switch (judge_class(s, t)) {
        case CLASS_PASS:
            return true;
        case CLASS_REFUSED:
            return false;
        case CLASS_DROP:
            buf_truncate(s->out, before);
            *t = json_next(&s->j);
            break;
        }
    }
    return true;
}

static bool is_end(enum json_kind k)
{
    return k == JSON_TOKEN_END_ARRAY || k == JSON_TOKEN_END_OBJECT;
}

static void close_level(struct args_state *s, const struct level *l)
{
    if (l->object == 0)
        args_close_list(s, l->place, l->n);
    else
        buf_add_u8(s->out, HS2_MAP_END);
}

/* The content of the container whose level is levels[0], up to and with its end. */
static bool walk(struct args_state *s, struct level *levels)
{
    unsigned depth = 1;

    while (depth > 0) {
        struct level *l = &levels[depth - 1];
        struct json_token t = json_next(&s->j);

        if (l->object != 0 && !take_member(s, l, &t))
            return false;
        if (t.kind == JSON_TOKEN_ERROR)
            return args_syntax(s);
        if (is_end(t.kind)) {
            close_level(s, l);
            depth--;
            continue;
        }
        l->n++;
        if (t.kind == JSON_TOKEN_NULL && l->no_null)
            return args_fail(s, ARGS_BAD_ARGUMENT, "a ConcurrentHashMap cannot hold null");
        if (t.kind == JSON_TOKEN_BEGIN_ARRAY || t.kind == JSON_TOKEN_BEGIN_OBJECT) {
            if (t.kind == JSON_TOKEN_BEGIN_OBJECT)
                buf_add_u8(s->out, HS2_MAP_BEGIN);
            levels[depth++] = open_level(s, t.kind);
        } else if (!args_natural_scalar(s, &t)) {
            return false;
        }
        if (s->out->failed)
            return args_fail(s, ARGS_TOO_LARGE, "the encoded arguments are too large");
    }
    return true;
}

bool args_natural(struct args_state *s, struct json_token t)
{
    struct level levels[JSON_DEPTH_MAX + 1] NO_AUTO_INIT;

    if (t.kind != JSON_TOKEN_BEGIN_ARRAY && t.kind != JSON_TOKEN_BEGIN_OBJECT)
        return args_natural_scalar(s, &t);
    if (t.kind == JSON_TOKEN_BEGIN_OBJECT)
        buf_add_u8(s->out, HS2_MAP_BEGIN);
    levels[0] = open_level(s, t.kind);
    return walk(s, levels);
}

/* ---------------------------------------------------------------- maps by declared type */

static const struct typed_map {
    const char *declared;
    const char *wire;
    bool no_null;
} typed_maps[] = {
    {"java.util.LinkedHashMap", "java.util.LinkedHashMap", false},
    {"java.util.TreeMap", "java.util.TreeMap", false},
    {"java.util.SortedMap", "java.util.TreeMap", false},
    {"java.util.NavigableMap", "java.util.TreeMap", false},
    {"java.util.concurrent.ConcurrentMap", "java.util.concurrent.ConcurrentHashMap", true},
    {"java.util.concurrent.ConcurrentHashMap", "java.util.concurrent.ConcurrentHashMap", true},
};

/* NULL: the plain map does. */
static const struct typed_map *wire_map(const struct args_state *s, const struct jtype *type)
{
    for (size_t i = 0; i < ARRAY_LEN(typed_maps); i++) {
        if (str_is(type->name, typed_maps[i].declared))
            return &typed_maps[i];
    }
    return s->opts->preserve_order ? &typed_maps[0] : NULL;
}

static __attribute__((noinline)) bool natural_map(struct args_state *s, bool no_null)
{
    struct level levels[JSON_DEPTH_MAX + 1] NO_AUTO_INIT;

    levels[0] = open_level(s, JSON_TOKEN_BEGIN_OBJECT);
    levels[0].no_null = no_null;
    return walk(s, levels);
}

static bool typed_members(struct args_state *s, const struct jtype *type, bool no_null);

bool args_map(struct args_state *s, struct json_token t, const struct jtype *type)
{
    const struct typed_map *m = wire_map(s, type);

    if (t.kind != JSON_TOKEN_BEGIN_OBJECT)
        return args_mismatch(s, &t, type->name);
    if (m != NULL) {
        buf_add_u8(s->out, 'M');
        hs2_put_ascii(s->out, str_from(m->wire));
    } else {
        buf_add_u8(s->out, HS2_MAP_BEGIN);
    }
    if (type->element != NULL)
        return typed_members(s, type, m != NULL && m->no_null);
    return natural_map(s, m != NULL && m->no_null);
}

/* ---------------------------------------------------------------- what the provider described */

/* A value inside: null leaves a property as it is, also one of a primitive type, and what Dubbo cannot convert at the
 * top it may take here. */
static bool put_inside(struct args_state *s, struct json_token t, const struct jtype *type)
{
    if (s->out->failed)
        return args_fail(s, ARGS_TOO_LARGE, "the encoded arguments are too large");
    if (t.kind == JSON_TOKEN_NULL)
        return args_natural_scalar(s, &t);
    return type == NULL || type->kind == JTYPE_UNSUPPORTED ? args_natural(s, t)
                                                           : args_typed(s, t, type);
}

/* Up to and with the end of the object. */
static bool typed_members(struct args_state *s, const struct jtype *type, bool no_null)
{
    struct level l = open_level(s, JSON_TOKEN_BEGIN_OBJECT);

    l.type = type;
    for (;;) {
        struct json_token t = json_next(&s->j);

        if (!take_member(s, &l, &t))
            return false;
        if (t.kind == JSON_TOKEN_ERROR)
            return args_syntax(s);
        if (t.kind == JSON_TOKEN_END_OBJECT)
            break;
        if (t.kind == JSON_TOKEN_NULL && no_null)
            return args_fail(s, ARGS_BAD_ARGUMENT, "a ConcurrentHashMap cannot hold null");
        if (!put_inside(s, t, l.value))
            return false;
    }
    buf_add_u8(s->out, HS2_MAP_END);
    return true;
}

bool args_pojo(struct args_state *s, struct json_token t, const struct jtype *type)
{
    if (type->class == NULL)
        return args_natural(s, t);
    buf_add_u8(s->out, HS2_MAP_BEGIN);
    return typed_members(s, type, false);
}

bool args_list(struct args_state *s, struct json_token t, const struct jtype *type)
{
    size_t place = 0;
    size_t n = 0;

    if (type->element == NULL)
        return args_natural(s, t);
    place = hs2_put_open_list(s->out);
    for (t = json_next(&s->j); t.kind != JSON_TOKEN_END_ARRAY; t = json_next(&s->j)) {
        if (t.kind == JSON_TOKEN_ERROR)
            return args_syntax(s);
        if (!put_inside(s, t, type->element))
            return false;
        n++;
    }
    args_close_list(s, place, n);
    return true;
}

/* ---------------------------------------------------------------- where an error stands */

struct step {
    struct json_token key;
    size_t index;
    bool object;
};

/* A key in a pointer: decoded, '~' and '/' escaped, cut between characters. */
static void add_key(char *out, size_t cap, const struct json_token *key)
{
    struct buf name;
    struct str rest;
    size_t n = strlen(out);

    buf_init(&name, key->text.n + 1);
    json_unescape(key, &name);
    rest = buf_str(&name);
    while (rest.n != 0) {
        size_t len = utf_char_len((const uint8_t *)rest.p, rest.n);
        bool escape = *rest.p == '~' || *rest.p == '/';

        size_t need = escape ? 2 : len;

        if (len == 0 || *rest.p == '\0' || n + need + 1 > cap)
            break;
        memcpy(out + n, escape ? (*rest.p == '~' ? "~0" : "~1") : rest.p, need);
        n += need;
        rest = str_sub(rest, len, rest.n);
    }
    out[n] = '\0';
    buf_free(&name);
}

static void add_step(char *out, size_t cap, const struct step *st)
{
    size_t n = strlen(out);

    if (!st->object) {
        snprintf(out + n, cap - n, "/%zu", st->index);
        return;
    }
    if (n + 1 >= cap)
        return;
    memcpy(out + n, "/", 2);
    add_key(out, cap, &st->key);
}

/* Reads the text again up to the error: costs nothing while there is none. */
void args_point_at(struct args_error *e, struct str json)
{
    struct step path[JSON_DEPTH_MAX + 1] = {0};
    struct json_reader j;
    unsigned depth = 0;

    json_position(json, e->offset, &e->line, &e->column);
    json_begin(&j, json, JSON_DEPTH_MAX);
    while (json_offset(&j) < e->offset) {
        struct json_token t = json_next(&j);

        if (t.kind == JSON_TOKEN_ERROR || t.kind == JSON_TOKEN_END)
            break;
        if (is_end(t.kind)) {
            depth--;
            continue;
        }
        if (t.kind == JSON_TOKEN_KEY) {
            path[depth - 1].key = t;
            continue;
        }
        if (depth > 0)
            path[depth - 1].index++;
        if (t.kind == JSON_TOKEN_BEGIN_ARRAY || t.kind == JSON_TOKEN_BEGIN_OBJECT)
            path[depth++] = (struct step){.object = t.kind == JSON_TOKEN_BEGIN_OBJECT,
                                          .index = SIZE_MAX};
    }
    e->pointer[0] = '\0';
    for (unsigned i = 0; i < depth; i++) {
        if (path[i].object ? path[i].key.text.p != NULL : path[i].index != SIZE_MAX)
            add_step(e->pointer, sizeof(e->pointer), &path[i]);
    }
}
