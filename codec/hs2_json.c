#include "codec/hs2_json.h"

#include <math.h>

#include "base/fatal.h"
#include "codec/base64.h"
#include "codec/date.h"
#include "codec/json_write.h"
#include "codec/number.h"

enum {
    KEY_NESTING_MAX = 8, /* each level doubles the backslashes */
    CLASS_NAME_MAX = 256,
    JS_SAFE = 53,
};

static bool value(struct hs2_json *j);

/* ---------------------------------------------------------------- scalars */

static bool print_integer(struct hs2_json *j, int64_t v)
{
    int64_t safe = (INT64_C(1) << JS_SAFE) - 1;
    bool text = j->opts->longs == REPLY_LONG_AS_STRING ||
                (j->opts->longs == REPLY_LONG_UNSAFE_AS_STRING && (v > safe || v < -safe));

    if (text)
        buf_add_u8(j->out, '"');
    number_add_i64(j->out, v);
    if (text)
        buf_add_u8(j->out, '"');
    return true;
}

static bool is_float(double v)
{
    float f = (float)v;

    return !((double)f < v) && !((double)f > v);
}

static bool print_real(struct hs2_json *j, double v)
{
    if (isfinite(v)) {
        if (j->opts->result_is_float && j->r->depth == 0 && is_float(v))
            number_add_float(j->out, (float)v);
        else
            number_add_double(j->out, v);
        return true;
    }
    if (j->opts->non_finite_as_null)
        buf_add_str(j->out, STR("null"));
    else if (isnan(v))
        buf_add_str(j->out, STR("\"NaN\""));
    else
        buf_add_str(j->out, v > 0 ? STR("\"Infinity\"") : STR("\"-Infinity\""));
    return true;
}

static bool print_date(struct hs2_json *j, int64_t ms)
{
    size_t before = j->out->len;

    if (j->opts->date == REPLY_DATE_EPOCH_MS) {
        number_add_i64(j->out, ms);
        return true;
    }
    buf_add_u8(j->out, '"');
    if (date_add_rfc3339(j->out, ms)) {
        buf_add_u8(j->out, '"');
        return true;
    }
    buf_truncate(j->out, before);
    number_add_i64(j->out, ms);
    return true;
}

static bool print_string(struct hs2_json *j)
{
    buf_add_u8(j->out, '"');
    if (!hs2_text(j->r, j->out, HS2_TEXT_JSON))
        return false;
    buf_add_u8(j->out, '"');
    return true;
}

static bool print_binary(struct hs2_json *j)
{
    size_t before = j->scratch.len;
    size_t n = 0;

    if (!hs2_binary(j->r, &j->scratch))
        return false;
    n = j->scratch.len - before;
    const uint8_t *p = j->scratch.data != NULL ? j->scratch.data + before : NULL;

    if (j->opts->bytes_as_array) {
        buf_add_u8(j->out, '[');
        for (size_t i = 0; i < n; i++) {
            if (i != 0)
                buf_add_u8(j->out, ',');
            number_add_i64(j->out, (int8_t)p[i]);
        }
        buf_add_u8(j->out, ']');
    } else {
        buf_add_u8(j->out, '"');
        base64_add(j->out, p, n);
        buf_add_u8(j->out, '"');
    }
    buf_truncate(&j->scratch, before);
    return true;
}

/* ---------------------------------------------------------------- lists */

static bool list_content(struct hs2_json *j, int64_t count)
{
    for (int64_t i = 0; count < 0 ? !hs2_at_end(j->r) : i < count; i++) {
        if (i != 0)
            buf_add_u8(j->out, ',');
        if (!value(j))
            return false;
    }
    return true;
}

static bool print_list(struct hs2_json *j, struct hs2_token t)
{
    buf_add_u8(j->out, '[');
    if (!list_content(j, t.count))
        return false;
    buf_add_u8(j->out, ']');
    return true;
}

/* ---------------------------------------------------------------- map keys */

/* An object with the one field `name`: an enum constant, whose name is the key. */
static bool print_enum_key(struct hs2_json *j, bool *is_enum)
{
    struct hs2_mark back = hs2_mark(j->r);
    struct hs2_token t = hs2_next(j->r);
    size_t before = j->out->len;
    bool ok = false;

    *is_enum = false;
    if (t.kind == HS2_OBJECT) {
        const struct hs2_class *c = &j->r->classes[t.class_index];

        *is_enum = c->n_fields == 1 && c->value == NULL &&
                   str_is(hs2_name(j->r, j->r->fields[c->first_field].name,
                                   j->r->fields[c->first_field].len),
                          "name") &&
                   hs2_next(j->r).kind == HS2_STRING;
    }
    ok = *is_enum && print_string(j);
    if (!*is_enum) {
        buf_truncate(j->out, before);
        hs2_jump(j->r, back);
    }
    return ok;
}

/* A key that is no string: its value's text, or the value's JSON text, inside quotes. */
static bool print_other_key(struct hs2_json *j)
{
    struct buf *out = j->out;
    struct buf key;
    bool is_enum = false;
    bool ok = print_enum_key(j, &is_enum);

    if (is_enum)
        return ok;
    if (j->key_nesting >= KEY_NESTING_MAX)
        return false;
    buf_init(&key, out->limit - out->len);
    j->out = &key;
    j->key_nesting++;
    ok = value(j);
    j->key_nesting--;
    j->out = out;
    if (key.failed)
        out->failed = true;
    if (ok && key.len != 0 && key.data[0] == '"') {
        buf_add(out, key.data, key.len);
    } else if (ok) {
        json_add_string(out, buf_str(&key));
    }
    buf_free(&key);
    return ok;
}

static bool print_key(struct hs2_json *j, bool *is_class)
{
    uint8_t b = j->r->p < j->r->end ? *j->r->p : 'Z';
    size_t before = j->out->len;

    *is_class = false;
    if (b <= 0x1f || (b >= 0x30 && b <= 0x33) || b == 'S' || b == 'R') {
        if (!print_string(j))
            return false;
        *is_class = j->out->len - before == 7 &&
                    str_eq((struct str){(const char *)j->out->data + before, 7}, STR("\"class\""));
        return true;
    }
    return print_other_key(j);
}

/* ---------------------------------------------------------------- maps */

/* What a map of getters may be rebuilt from. */
struct map_state {
    const struct value_class *rebuild; /* of its class member; NULL = none */
    bool first;
};

static bool looks_like_class(struct str s)
{
    bool dot = false;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
                      (unsigned char)c >= 0x80;

        if (!letter && c != '.' && !(c >= '0' && c <= '9' && i != 0))
            return false;
        dot = dot || c == '.';
    }
    return dot && s.p[0] != '.' && s.p[s.n - 1] != '.';
}

/* The value of a member named class, when it is a short string; the reader does not move. */
static bool peek_class(struct hs2_json *j, size_t *from)
{
    struct hs2_mark back = hs2_mark(j->r);
    uint8_t b = j->r->p < j->r->end ? *j->r->p : 'Z';
    bool ok = b <= 0x1f || (b >= 0x30 && b <= 0x33);

    *from = j->scratch.len;
    ok = ok && hs2_text(j->r, &j->scratch, HS2_TEXT_PLAIN) && !j->scratch.failed &&
         j->scratch.len - *from <= CLASS_NAME_MAX;
    hs2_jump(j->r, back);
    if (!ok)
        buf_truncate(&j->scratch, *from);
    return ok;
}

/* True when the member is to be left out. */
static bool judge_class(struct hs2_json *j, struct map_state *m)
{
    size_t from = 0;
    bool drop = false;

    if (!peek_class(j, &from))
        return false;
    struct str name = {(const char *)j->scratch.data + from, j->scratch.len - from};

    if (!j->opts->no_rebuild)
        m->rebuild = value_find_map(name);
    drop = !j->opts->keep_class && looks_like_class(name);
    buf_truncate(&j->scratch, from);
    return drop;
}

static bool print_member(struct hs2_json *j, struct map_state *m)
{
    size_t before = j->out->len;
    bool is_class = false;
    bool drop = false;

    if (!m->first)
        buf_add_u8(j->out, ',');
    if (!print_key(j, &is_class))
        return false;
    if (is_class && judge_class(j, m)) {
        j->stripped++;
        drop = true;
    }
    if (!drop && j->opts->omit_nulls && j->r->p < j->r->end && *j->r->p == 'N')
        drop = true;
    if (drop) {
        buf_truncate(j->out, before);
        return hs2_skip(j->r);
    }
    m->first = false;
    buf_add_u8(j->out, ':');
    return value(j);
}

/* The map was printed; its class says that it is a value in disguise. */
static bool rebuild(struct hs2_json *j, const struct value_class *v, struct hs2_mark content,
                    size_t out_before)
{
    struct hs2_mark end = hs2_mark(j->r);
    size_t printed = j->out->len;
    struct value_slots s = {0};
    bool ok = true;

    hs2_jump(j->r, content);
    while (ok && !hs2_at_end(j->r)) {
        size_t from = j->scratch.len;
        int8_t slot = -1;

        if (hs2_next(j->r).kind == HS2_STRING) {
            ok = hs2_text(j->r, &j->scratch, HS2_TEXT_JSON);
            slot = value_slot(
                v, (struct str){(const char *)j->scratch.data + from, j->scratch.len - from});
        } else {
            ok = false; /* getters have names */
        }
        buf_truncate(&j->scratch, from);
        if (slot >= 0) {
            s.mark[slot] = hs2_mark(j->r);
            s.present[slot] = true;
        }
        ok = ok && hs2_skip(j->r);
    }
    ok = ok && v->print(j, &s) && !j->out->failed;
    if (ok) {
        size_t n = j->out->len - printed;

        __builtin_memmove(j->out->data + out_before, j->out->data + printed, n);
        buf_truncate(j->out, out_before + n);
    } else if (!j->out->failed) {
        buf_truncate(j->out, printed);
    }
    hs2_jump(j->r, end);
    return true;
}

static bool print_map(struct hs2_json *j)
{
    struct map_state m = {.first = true};
    struct hs2_mark content = hs2_mark(j->r);
    size_t before = j->out->len;
    unsigned stripped = j->stripped;

    buf_add_u8(j->out, '{');
    while (!hs2_at_end(j->r)) {
        if (!print_member(j, &m) || j->out->failed)
            return false;
    }
    buf_add_u8(j->out, '}');
    if (m.rebuild == NULL)
        return true;
    j->stripped = stripped;
    return rebuild(j, m.rebuild, content, before);
}

/* ---------------------------------------------------------------- objects */

static bool print_fields(struct hs2_json *j, const struct hs2_class *c)
{
    bool first = true;

    buf_add_u8(j->out, '{');
    for (uint32_t i = 0; i < c->n_fields; i++) {
        /* by value: the table may move while the fields are read */
        struct hs2_field f = j->r->fields[c->first_field + i];
        bool null = j->r->p < j->r->end && *j->r->p == 'N';

        if (f.hidden || (null && j->opts->omit_nulls)) {
            if (!hs2_skip(j->r))
                return false;
            continue;
        }
        if (!first)
            buf_add_u8(j->out, ',');
        first = false;
        buf_add_u8(j->out, '"');
        buf_add_str(j->out, hs2_name(j->r, f.name, f.len));
        buf_add_str(j->out, STR("\":"));
        if (!value(j))
            return false;
    }
    buf_add_u8(j->out, '}');
    return true;
}

static bool take_slots(struct hs2_json *j, const struct hs2_class *c, struct value_slots *s)
{
    for (uint32_t i = 0; i < c->n_fields; i++) {
        int8_t slot = j->r->fields[c->first_field + i].slot;

        if (slot >= 0) {
            s->mark[slot] = hs2_mark(j->r);
            s->present[slot] = true;
        }
        if (!hs2_skip(j->r))
            return false;
    }
    return true;
}

static bool print_value_object(struct hs2_json *j, const struct hs2_class *c)
{
    struct value_slots s = {0};
    struct hs2_mark content = hs2_mark(j->r);
    struct hs2_mark end;
    size_t before = j->out->len;
    bool ok = false;

    if (!take_slots(j, c, &s))
        return false;
    end = hs2_mark(j->r);
    ok = c->value->print(j, &s);
    hs2_jump(j->r, end);
    if (ok || j->out->failed)
        return ok;
    buf_truncate(j->out, before);
    hs2_jump(j->r, content);
    return print_fields(j, c);
}

static bool print_object(struct hs2_json *j, uint32_t class_index)
{
    struct hs2_class c = j->r->classes[class_index];

    return c.value != NULL ? print_value_object(j, &c) : print_fields(j, &c);
}

/* ---------------------------------------------------------------- values */

static bool print_ref(struct hs2_json *j, uint32_t ref)
{
    struct hs2_mark back = hs2_mark(j->r);
    bool ok = false;

    if (j->r->refs[ref].open != 0) {
        j->cycles++;
        if (j->opts->cycle_is_error) {
            j->failed_cycle = true;
            return false;
        }
        buf_add_str(j->out, STR("null"));
        return true;
    }
    hs2_jump(j->r, j->r->refs[ref].mark);
    ok = value(j);
    hs2_jump(j->r, back);
    return ok;
}

static bool print_container(struct hs2_json *j, struct hs2_token t)
{
    bool ok = false;

    if (!hs2_open(j->r, t.ref))
        return false;
    if (t.kind == HS2_LIST)
        ok = print_list(j, t);
    else if (t.kind == HS2_MAP)
        ok = print_map(j);
    else
        ok = print_object(j, t.class_index);
    hs2_close(j->r, t.ref);
    return ok && !j->out->failed;
}

static bool print_word(struct hs2_json *j, struct str word)
{
    buf_add_str(j->out, word);
    return true;
}

static bool value(struct hs2_json *j)
{
    struct hs2_token t = hs2_next(j->r);

    if (j->out->failed)
        return false;
    switch (t.kind) {
    case HS2_NULL:
        return print_word(j, STR("null"));
    case HS2_TRUE:
        return print_word(j, STR("true"));
    case HS2_FALSE:
        return print_word(j, STR("false"));
    case HS2_INT:
    case HS2_LONG:
        return print_integer(j, t.number);
    case HS2_DOUBLE:
        return print_real(j, t.real);
    case HS2_DATE:
        return print_date(j, t.number);
    case HS2_STRING:
        return print_string(j);
    case HS2_BINARY:
        return print_binary(j);
    case HS2_LIST:
    case HS2_MAP:
    case HS2_OBJECT:
        return print_container(j, t);
    case HS2_REF:
        return print_ref(j, t.ref);
    case HS2_BAD:
        return false;
    }
    return false;
}

enum hs2_json_result hs2_json(struct hs2_json *j)
{
    size_t before = j->out->len;

    if (value(j) && !j->out->failed)
        return HS2_JSON_OK;
    bool too_large = j->out->failed;

    buf_truncate(j->out, before);
    return too_large ? HS2_JSON_TOO_LARGE : HS2_JSON_MALFORMED;
}

/* ---------------------------------------------------------------- slots */

bool slot_is_set(const struct hs2_json *j, const struct value_slots *s, unsigned slot)
{
    return s->present[slot] && j->r->base[s->mark[slot].at] != 'N';
}

bool slot_int(struct hs2_json *j, const struct value_slots *s, unsigned slot, int64_t *out)
{
    struct hs2_mark back = hs2_mark(j->r);
    struct hs2_token t = {.kind = HS2_BAD};

    if (!s->present[slot])
        return false;
    hs2_jump(j->r, s->mark[slot]);
    t = hs2_next(j->r);
    hs2_jump(j->r, back);
    *out = t.number;
    return t.kind == HS2_INT || t.kind == HS2_LONG;
}

bool slot_text(struct hs2_json *j, const struct value_slots *s, unsigned slot, struct buf *out)
{
    struct hs2_mark back = hs2_mark(j->r);
    struct buf *keep = j->out;
    size_t before = out->len;
    bool ok = false;

    if (!s->present[slot])
        return false;
    hs2_jump(j->r, s->mark[slot]);
    j->out = out;
    ok = value(j) && !out->failed;
    j->out = keep;
    hs2_jump(j->r, back);
    /* only a string's text can stand inside another */
    if (!ok || out->len - before < 2 || out->data[before] != '"' || out->data[out->len - 1] != '"')
        return false;
    __builtin_memmove(out->data + before, out->data + before + 1, out->len - before - 2);
    buf_truncate(out, out->len - 2);
    return true;
}
