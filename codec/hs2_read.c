#include "codec/hs2_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "codec/value_read.h"

static const struct hs2_token bad = {.kind = HS2_BAD};

void hs2_init(struct hs2_reader *r)
{
    *r = (struct hs2_reader){0};
    buf_init(&r->names, HS2_NAMES_MAX);
}

void hs2_free(struct hs2_reader *r)
{
    free(r->refs);
    free(r->classes);
    free(r->fields);
    buf_free(&r->names);
    *r = (struct hs2_reader){0};
}

void hs2_begin(struct hs2_reader *r, const uint8_t *p, size_t n, unsigned max_depth)
{
    ASSERT(n <= INT32_MAX && max_depth <= HS2_DEPTH_MAX);

    r->base = r->p = p;
    r->end = p + n;
    r->depth = 0;
    r->max_depth = max_depth;
    r->n_refs = r->n_types = r->n_classes = 0;
    r->refs_len = r->classes_len = r->fields_len = r->types_len = 0;
    buf_truncate(&r->names, 0);
    buf_shrink(&r->names, 65536);
}

/* Room for one more element; false at the limit or without memory. */
static bool grow(void **table, uint32_t len, uint32_t *cap, size_t size, uint32_t limit)
{
    uint32_t want = *cap != 0 ? *cap * 2 : 16;
    void *bigger = NULL;

    if (len < *cap)
        return true;
    if (len >= limit)
        return false;
    bigger = realloc(*table, want * size);
    if (bigger == NULL)
        return false;
    *table = bigger;
    *cap = want;
    return true;
}
#define GROW(r, what, limit) \
    grow((void **)&(r)->what, (r)->what##_len, &(r)->what##_cap, sizeof(*(r)->what), (limit))

struct hs2_mark hs2_mark(const struct hs2_reader *r)
{
    return (struct hs2_mark){.at = (uint32_t)(r->p - r->base),
                             .n_refs = r->n_refs,
                             .n_types = r->n_types,
                             .n_classes = r->n_classes};
}

void hs2_jump(struct hs2_reader *r, struct hs2_mark m)
{
    r->p = r->base + m.at;
    r->n_refs = m.n_refs;
    r->n_types = m.n_types;
    r->n_classes = m.n_classes;
}

/* ---------------------------------------------------------------- numbers */

/* An int form, as lengths and table numbers have them. */
static bool take_int(struct hs2_reader *r, int64_t *out)
{
    const uint8_t *p = r->p;
    size_t n = hs2_left(r);
    uint8_t b = n != 0 ? p[0] : 0;

    if (b >= 0x80 && b <= 0xbf) {
        *out = b - 0x90;
        r->p += 1;
    } else if (b >= 0xc0 && b <= 0xcf && n >= 2) {
        *out = (b - 0xc8) * 256 + p[1];
        r->p += 2;
    } else if (b >= 0xd0 && b <= 0xd7 && n >= 3) {
        *out = (b - 0xd4) * 65536 + p[1] * 256 + p[2];
        r->p += 3;
    } else if (b == 'I' && n >= 5) {
        *out = (int32_t)get_be32(p + 1);
        r->p += 5;
    } else {
        return false;
    }
    return true;
}

static struct hs2_token number(struct hs2_reader *r, enum hs2_kind kind, int64_t v, size_t bytes)
{
    r->p += bytes;
    return (struct hs2_token){.kind = kind, .number = v};
}

static struct hs2_token real(struct hs2_reader *r, double v, size_t bytes)
{
    r->p += bytes;
    return (struct hs2_token){.kind = HS2_DOUBLE, .real = v};
}

static double double_at(const uint8_t *p)
{
    uint64_t bits = get_be64(p);
    double v = 0;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static struct hs2_token take_int_token(struct hs2_reader *r)
{
    int64_t v = 0;

    return take_int(r, &v) ? (struct hs2_token){.kind = HS2_INT, .number = v} : bad;
}

static struct hs2_token take_long(struct hs2_reader *r)
{
    const uint8_t *p = r->p;
    size_t n = hs2_left(r);
    uint8_t b = p[0];

    if (b >= 0xd8 && b <= 0xef)
        return number(r, HS2_LONG, b - 0xe0, 1);
    if (b >= 0xf0 && n >= 2)
        return number(r, HS2_LONG, (b - 0xf8) * 256 + p[1], 2);
    if (b >= 0x38 && b <= 0x3f && n >= 3)
        return number(r, HS2_LONG, (b - 0x3c) * 65536 + p[1] * 256 + p[2], 3);
    if (b == 0x59 && n >= 5)
        return number(r, HS2_LONG, (int32_t)get_be32(p + 1), 5);
    if (b == 'L' && n >= 9)
        return number(r, HS2_LONG, (int64_t)get_be64(p + 1), 9);
    return bad;
}

static struct hs2_token take_double(struct hs2_reader *r)
{
    const uint8_t *p = r->p;
    size_t n = hs2_left(r);

    switch (p[0]) {
    case 0x5b:
        return real(r, 0, 1);
    case 0x5c:
        return real(r, 1, 1);
    case 0x5d:
        return n >= 2 ? real(r, (int8_t)p[1], 2) : bad;
    case 0x5e:
        return n >= 3 ? real(r, (int16_t)get_be16(p + 1), 3) : bad;
    case 0x5f:
        return n >= 5 ? real(r, 0.001 * (int32_t)get_be32(p + 1), 5) : bad;
    default: /* 'D' */
        return n >= 9 ? real(r, double_at(p + 1), 9) : bad;
    }
}

static struct hs2_token take_date(struct hs2_reader *r)
{
    if (r->p[0] == 0x4a)
        return hs2_left(r) >= 9 ? number(r, HS2_DATE, (int64_t)get_be64(r->p + 1), 9) : bad;
    return hs2_left(r) >= 5 ? number(r, HS2_DATE, (int64_t)(int32_t)get_be32(r->p + 1) * 60000, 5)
                            : bad;
}

/* ---------------------------------------------------------------- definitions and containers */

static bool take_type(struct hs2_reader *r)
{
    int64_t index = 0;

    if (hs2_left(r) == 0)
        return false;
    if (take_int(r, &index))
        return index >= 0 && index < (int64_t)r->n_types;
    if (!hs2_text(r, NULL, HS2_TEXT_PLAIN) || r->n_types >= HS2_TYPES_MAX)
        return false;
    r->n_types++;
    return true;
}

static void hide_shadowed(struct hs2_reader *r, const struct hs2_class *c)
{
    /* the later of two fields with one name counts; long definitions are bombs, not classes */
    if (c->n_fields > 512)
        return;
    for (uint32_t i = 0; i < c->n_fields; i++) {
        struct hs2_field *f = &r->fields[c->first_field + i];

        for (uint32_t j = i + 1; j < c->n_fields && !f->hidden; j++) {
            const struct hs2_field *g = &r->fields[c->first_field + j];

            f->hidden = f->len == g->len &&
                        str_eq(hs2_name(r, f->name, f->len), hs2_name(r, g->name, g->len));
        }
    }
}

static bool add_field(struct hs2_reader *r)
{
    uint32_t from = (uint32_t)r->names.len;

    if (!GROW(r, fields, HS2_FIELDS_MAX) || !hs2_text(r, &r->names, HS2_TEXT_JSON) ||
        r->names.failed)
        return false;
    r->fields[r->fields_len++] = (struct hs2_field){
        .name = from, .len = (uint32_t)r->names.len - from, .slot = -1};
    return true;
}

static bool add_class(struct hs2_reader *r)
{
    struct hs2_class c = {.name = (uint32_t)r->names.len, .first_field = r->fields_len};
    int64_t n = 0;

    if (!GROW(r, classes, HS2_CLASSES_MAX) || !hs2_text(r, &r->names, HS2_TEXT_PLAIN) ||
        r->names.failed)
        return false;
    c.name_len = (uint32_t)r->names.len - c.name;
    if (!take_int(r, &n) || n < 0 || (uint64_t)n > hs2_left(r))
        return false;
    c.n_fields = (uint32_t)n;
    for (int64_t i = 0; i < n; i++) {
        if (!add_field(r))
            return false;
    }
    hide_shadowed(r, &c);
    c.value = value_find(hs2_name(r, c.name, c.name_len));
    if (c.value != NULL) {
        for (uint32_t i = 0; i < c.n_fields; i++) {
            struct hs2_field *f = &r->fields[c.first_field + i];

            f->slot = value_slot(c.value, hs2_name(r, f->name, f->len));
        }
    }
    r->classes[r->classes_len++] = c;
    r->n_classes++;
    return true;
}

/* During replay a definition is in the table already. */
static bool pass_class(struct hs2_reader *r)
{
    int64_t n = 0;

    if (!hs2_text(r, NULL, HS2_TEXT_PLAIN) || !take_int(r, &n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (!hs2_text(r, NULL, HS2_TEXT_PLAIN))
            return false;
    }
    r->n_classes++;
    return true;
}

static bool take_definition(struct hs2_reader *r)
{
    r->p++;
    return r->n_classes < r->classes_len ? pass_class(r) : add_class(r);
}

/* Gives the container its number; `mark` is from before its opcode. */
static struct hs2_token container(struct hs2_reader *r, struct hs2_token t, struct hs2_mark mark)
{
    t.ref = r->n_refs;
    if (r->n_refs == r->refs_len) {
        if (!GROW(r, refs, HS2_REFS_MAX))
            return bad;
        r->refs[r->refs_len++] = (struct hs2_ref){.mark = mark};
    }
    r->n_refs++;
    return t;
}

static struct hs2_token take_list(struct hs2_reader *r, struct hs2_mark mark)
{
    uint8_t b = *r->p++;
    struct hs2_token t = {.kind = HS2_LIST, .count = -1};
    bool typed = b == 'U' || b == 'V' || (b >= 0x70 && b <= 0x77);

    if (typed && !take_type(r))
        return bad;
    if (b == 'V' || b == 'X') {
        if (!take_int(r, &t.count) || t.count < 0)
            return bad;
    } else if (b >= 0x70) {
        t.count = b & 7;
    }
    if (t.count > (int64_t)hs2_left(r))
        return bad;
    return container(r, t, mark);
}

static struct hs2_token take_map(struct hs2_reader *r, struct hs2_mark mark)
{
    uint8_t b = *r->p++;

    if (b == 'M' && !take_type(r))
        return bad;
    return container(r, (struct hs2_token){.kind = HS2_MAP}, mark);
}

static struct hs2_token take_object(struct hs2_reader *r, struct hs2_mark mark)
{
    uint8_t b = *r->p++;
    int64_t index = b - 0x60;

    if (b == 'O' && !take_int(r, &index))
        return bad;
    if (index < 0 || index >= (int64_t)r->n_classes || r->classes[index].n_fields > hs2_left(r))
        return bad;
    return container(r, (struct hs2_token){.kind = HS2_OBJECT, .class_index = (uint32_t)index},
                     mark);
}

static struct hs2_token take_ref(struct hs2_reader *r)
{
    int64_t index = 0;

    r->p++;
    if (!take_int(r, &index) || index < 0 || index >= (int64_t)r->n_refs)
        return bad;
    return (struct hs2_token){.kind = HS2_REF, .ref = (uint32_t)index};
}

static struct hs2_token single(struct hs2_reader *r, enum hs2_kind kind)
{
    r->p++;
    return (struct hs2_token){.kind = kind};
}

struct hs2_token hs2_next(struct hs2_reader *r)
{
    struct hs2_mark mark = hs2_mark(r);
    uint8_t b = 0;

    while (hs2_left(r) != 0 && *r->p == 'C') {
        if (!take_definition(r))
            return bad;
    }
    if (hs2_left(r) == 0)
        return bad;
    b = *r->p;
    if (b <= 0x1f || (b >= 0x30 && b <= 0x33) || b == 'R' || b == 'S')
        return (struct hs2_token){.kind = HS2_STRING};
    if (b >= 0x80)
        return b <= 0xd7 ? take_int_token(r) : take_long(r);
    if (b >= 0x70 || b == 'U' || b == 'V' || b == 'W' || b == 'X')
        return take_list(r, mark);
    if (b >= 0x60 || b == 'O')
        return take_object(r, mark);
    if ((b >= 0x20 && b <= 0x2f) || (b >= 0x34 && b <= 0x37) || b == 'A' || b == 'B')
        return (struct hs2_token){.kind = HS2_BINARY};
    if ((b >= 0x38 && b <= 0x3f) || b == 0x59 || b == 'L')
        return take_long(r);
    if (b >= 0x5b || b == 'D')
        return take_double(r);
    switch (b) {
    case 'H':
    case 'M':
        return take_map(r, mark);
    case 'N':
        return single(r, HS2_NULL);
    case 'T':
        return single(r, HS2_TRUE);
    case 'F':
        return single(r, HS2_FALSE);
    case 'I':
        return take_int_token(r);
    case 'Q':
        return take_ref(r);
    case 0x4a:
    case 0x4b:
        return take_date(r);
    default: /* 0x40, 'E', 'G', 'P', and 'Z' where no container ends */
        return bad;
    }
}

bool hs2_at_end(struct hs2_reader *r)
{
    if (hs2_left(r) == 0 || *r->p != 'Z')
        return false;
    r->p++;
    return true;
}

bool hs2_open(struct hs2_reader *r, uint32_t ref)
{
    if (r->depth >= r->max_depth)
        return false;
    r->depth++;
    r->refs[ref].open++;
    return true;
}

void hs2_close(struct hs2_reader *r, uint32_t ref)
{
    ASSERT(r->depth > 0 && r->refs[ref].open > 0);

    r->depth--;
    r->refs[ref].open--;
}

/* ---------------------------------------------------------------- skipping */

static bool skip_content(struct hs2_reader *r, struct hs2_token t)
{
    int64_t n = t.kind == HS2_LIST     ? t.count
                : t.kind == HS2_OBJECT ? (int64_t)r->classes[t.class_index].n_fields
                                       : -1;

    if (n < 0) {
        while (!hs2_at_end(r)) {
            if (!hs2_skip(r) || (t.kind == HS2_MAP && !hs2_skip(r)))
                return false;
        }
        return true;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!hs2_skip(r))
            return false;
    }
    return true;
}

bool hs2_skip(struct hs2_reader *r)
{
    struct hs2_token t = hs2_next(r);
    bool ok = false;

    switch (t.kind) {
    case HS2_BAD:
        return false;
    case HS2_STRING:
        return hs2_text(r, NULL, HS2_TEXT_PLAIN);
    case HS2_BINARY:
        return hs2_binary(r, NULL);
    case HS2_LIST:
    case HS2_MAP:
    case HS2_OBJECT:
        if (!hs2_open(r, t.ref))
            return false;
        ok = skip_content(r, t);
        hs2_close(r, t.ref);
        return ok;
    case HS2_NULL:
    case HS2_TRUE:
    case HS2_FALSE:
    case HS2_INT:
    case HS2_LONG:
    case HS2_DOUBLE:
    case HS2_DATE:
    case HS2_REF:
        return true;
    }
    return false;
}
