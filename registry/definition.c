#include "registry/definition.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fatal.h"
#include "registry/definition_parts.h"

enum { REFERENCE_HOPS = 8, PATH_STEPS = 64 };

struct parser {
    struct arena *a;
    const json_t *root;
    struct definition_type *types;
    size_t n_types;
    struct err *e;
    bool failed;
};

static bool fail(struct parser *p, const char *why, int limit)
{
    if (!p->failed)
        err_set(p->e, "%s %d", why, limit);
    p->failed = true;
    return false;
}

bool definition_is_identifier(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
                      (unsigned char)c >= 0x80;

        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.n != 0 && s.n <= DEFINITION_NAME_MAX;
}

static struct str text_of(const json_t *v)
{
    return json_is_string(v) ? (struct str){json_string_value(v), json_string_length(v)} : STR_NONE;
}

/* ---------------------------------------------------------------- references of 2.7 */

/* One step of a path: .name or [index]; NULL when there is no such thing. */
static const json_t *take_step(const json_t *at, struct str *path)
{
    char name[DEFINITION_NAME_MAX + 1];
    struct str word = STR_NONE;
    size_t n = 1;
    uint64_t index = 0;

    if (path->p[0] == '[') {
        word = str_cut(str_sub(*path, 1, path->n), ']', path);
        return str_to_u64(word, SIZE_MAX, &index) ? json_array_get(at, index) : NULL;
    }
    if (path->p[0] != '.')
        return NULL;
    while (n < path->n && path->p[n] != '.' && path->p[n] != '[')
        n++;
    if (!str_copy(str_sub(*path, 1, n), name, sizeof(name)))
        return NULL;
    *path = str_sub(*path, n, path->n);
    return json_object_get(at, name);
}

static const json_t *follow(const struct parser *p, struct str path)
{
    const json_t *at = p->root;

    for (unsigned i = 0; path.n != 0 && at != NULL && i < PATH_STEPS; i++)
        at = take_step(at, &path);
    return path.n == 0 ? at : NULL;
}

/* The name that a type node stands for: 3.x has the text alone, 2.7 an object or a reference to one. */
static struct str name_of(const struct parser *p, const json_t *v)
{
    for (unsigned i = 0; i < REFERENCE_HOPS && v != NULL; i++) {
        struct str name = text_of(json_is_object(v) ? json_object_get(v, "type") : v);
        struct str ref = text_of(json_object_get(v, "$ref"));

        if (name.n != 0)
            return name;
        if (!str_starts(ref, STR("$")))
            return ref; /* a type by its name */
        v = follow(p, str_sub(ref, 1, ref.n));
    }
    return STR_NONE;
}

/* ---------------------------------------------------------------- types */

static int property_order(const void *a, const void *b)
{
    const struct definition_property *x = a;
    const struct definition_property *y = b;

    return str_cmp(x->name, y->name);
}

static int type_order(const void *a, const void *b)
{
    const struct definition_type *x = a;
    const struct definition_type *y = b;
    int order = str_cmp(x->name, y->name);

    /* of two the one that says more comes first and stays */
    return order != 0 ? order : (int)y->n_properties - (int)x->n_properties;
}

static void read_properties(struct parser *p, const json_t *from, struct definition_type *t)
{
    size_t n = json_object_size(from);
    struct definition_property *v = NULL;
    const char *key = NULL;
    const json_t *value = NULL;

    if (n > DEFINITION_PROPERTIES_MAX) {
        fail(p, "a class has more properties than", DEFINITION_PROPERTIES_MAX);
        return;
    }
    v = arena_alloc(p->a, (n + 1) * sizeof(*v));
    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        struct definition_property *out = &v[t->n_properties];

        if (!definition_is_identifier(str_from(key)) ||
            !definition_type_name(name_of(p, value), p->a, &out->type))
            continue;
        out->name = arena_str(p->a, str_from(key));
        t->n_properties++;
    }
    qsort(v, t->n_properties, sizeof(*v), property_order);
    t->properties = v;
}

static void read_enums(struct parser *p, const json_t *from, struct definition_type *t)
{
    size_t n = json_array_size(from);
    struct str *v = NULL;

    if (n > DEFINITION_PROPERTIES_MAX) {
        fail(p, "an enum has more constants than", DEFINITION_PROPERTIES_MAX);
        return;
    }
    v = arena_alloc(p->a, (n + 1) * sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        struct str name = text_of(json_array_get(from, i));

        if (definition_is_identifier(name))
            v[t->n_enums++] = arena_str(p->a, name);
    }
    t->enums = v;
}

/* Classes of somebody's own; those of Java have forms of their own, whatever they look like inside. */
static bool is_of_interest(struct str name)
{
    return name.n != 0 && name.p[name.n - 1] != ']' && name.p[name.n - 1] != '>' &&
           !str_starts(name, STR("java."));
}

static void read_type(struct parser *p, const json_t *v, unsigned depth);

/* 2.7 puts whole types where they are used first. */
static void read_nested(struct parser *p, const json_t *v, unsigned depth)
{
    const char *key = NULL;
    const json_t *value = NULL;
    size_t i = 0;

    if (depth == DEFINITION_NESTING_MAX) {
        fail(p, "types are nested deeper than", DEFINITION_NESTING_MAX);
        return;
    }
    json_object_foreach(json_object_get(v, "properties"), key, value)
        read_type(p, value, depth + 1);
    json_array_foreach(json_object_get(v, "items"), i, value) read_type(p, value, depth + 1);
}

static void read_type(struct parser *p, const json_t *v, unsigned depth)
{
    struct definition_type t = {0};

    if (!json_is_object(v) || p->failed)
        return;
    read_nested(p, v, depth);
    if (!definition_type_name(text_of(json_object_get(v, "type")), p->a, &t.name) ||
        !is_of_interest(t.name))
        return;
    read_properties(p, json_object_get(v, "properties"), &t);
    read_enums(p, json_object_get(v, "enums"), &t);
    if (t.n_properties == 0 && t.n_enums == 0)
        return;
    if (p->n_types == DEFINITION_TYPES_MAX)
        fail(p, "more types than", DEFINITION_TYPES_MAX);
    else
        p->types[p->n_types++] = t;
}

static void read_types(struct parser *p, const json_t *list, struct definition_view *out)
{
    size_t kept = 0;
    size_t i = 0;
    const json_t *v = NULL;

    p->types = xcalloc(DEFINITION_TYPES_MAX, sizeof(*p->types));
    json_array_foreach(list, i, v) read_type(p, v, 0);
    qsort(p->types, p->n_types, sizeof(*p->types), type_order);
    for (i = 0; i < p->n_types; i++) {
        if (kept == 0 || !str_eq(p->types[kept - 1].name, p->types[i].name))
            p->types[kept++] = p->types[i];
    }
    struct definition_type *types = arena_alloc(p->a, (kept + 1) * sizeof(*types));

    if (kept != 0)
        memcpy(types, p->types, kept * sizeof(*types));
    free(p->types);
    out->types = types;
    out->n_types = kept;
}

/* ---------------------------------------------------------------- methods */

static int method_order(const void *a, const void *b)
{
    const struct definition_method *x = a;
    const struct definition_method *y = b;
    int order = str_cmp(x->name, y->name);

    if (order == 0)
        order = (int)x->n_params - (int)y->n_params;
    for (size_t i = 0; order == 0 && i < x->n_params; i++)
        order = str_cmp(x->params[i], y->params[i]);
    return order;
}

void definition_use_methods(struct definition_method *v, size_t n, struct definition_view *out)
{
    size_t kept = 0;

    qsort(v, n, sizeof(*v), method_order);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || method_order(&v[kept - 1], &v[i]) != 0)
            v[kept++] = v[i];
    }
    out->methods = v;
    out->n_methods = kept;
}

/* A method that Java could not have is left out. */
static bool read_method(struct parser *p, const json_t *v, struct definition_method *m)
{
    const json_t *list = json_object_get(v, "parameterTypes");
    struct str name = text_of(json_object_get(v, "name"));
    size_t n = json_array_size(list);
    struct str *params = NULL;

    if (!definition_is_identifier(name) || n > DEFINITION_PARAMS_MAX)
        return false;
    params = arena_alloc(p->a, (n + 1) * sizeof(*params));
    for (size_t i = 0; i < n; i++) {
        if (!definition_type_name(name_of(p, json_array_get(list, i)), p->a, &params[i]))
            return false;
    }
    if (!definition_type_name(text_of(json_object_get(v, "returnType")), p->a, &m->returns))
        m->returns = STR("java.lang.Object");
    m->name = arena_str(p->a, name);
    m->params = params;
    m->n_params = n;
    return true;
}

static void read_methods(struct parser *p, const json_t *list, struct definition_view *out)
{
    size_t n = json_array_size(list);
    struct definition_method *v = NULL;
    size_t kept = 0;

    if (n > DEFINITION_METHODS_MAX) {
        fail(p, "more methods than", DEFINITION_METHODS_MAX);
        return;
    }
    v = arena_alloc(p->a, (n + 1) * sizeof(*v));
    for (size_t i = 0; i < n; i++)
        kept += read_method(p, json_array_get(list, i), &v[kept]) ? 1U : 0U;
    definition_use_methods(v, kept, out);
}

bool definition_parse(struct str json, struct arena *a, struct definition_view *out, struct err *e)
{
    struct parser p = {.a = a, .e = e};
    json_error_t error;
    json_t *root = NULL;

    *out = (struct definition_view){0};
    if (json.n > DEFINITION_NODE_MAX) {
        err_set(e, "the definition is longer than %d bytes", DEFINITION_NODE_MAX);
        return false;
    }
    root = json_loadb(json.n != 0 ? json.p : "", json.n, 0, &error);
    p.root = root;
    if (!json_is_array(json_object_get(root, "methods"))) {
        err_set(e, "no service definition: %s", root != NULL ? "no list of methods" : error.text);
        json_decref(root);
        return false;
    }
    read_methods(&p, json_object_get(root, "methods"), out);
    if (!p.failed)
        read_types(&p, json_object_get(root, "types"), out);
    json_decref(root);
    return !p.failed;
}

/* ---------------------------------------------------------------- printing */

/* Everything is an identifier or a type, so nothing has to be escaped. */
static void add_quoted(struct str s, struct buf *out)
{
    buf_add_u8(out, '"');
    buf_add_str(out, s);
    buf_add_u8(out, '"');
}

static void add_list(const struct str *v, size_t n, struct buf *out)
{
    buf_add_u8(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i != 0)
            buf_add_u8(out, ',');
        add_quoted(v[i], out);
    }
    buf_add_u8(out, ']');
}

static void add_type(const struct definition_type *t, struct buf *out)
{
    buf_add_str(out, STR("{\"type\":"));
    add_quoted(t->name, out);
    if (t->n_properties != 0)
        buf_add_str(out, STR(",\"properties\":{"));
    for (size_t i = 0; i < t->n_properties; i++) {
        if (i != 0)
            buf_add_u8(out, ',');
        add_quoted(t->properties[i].name, out);
        buf_add_u8(out, ':');
        add_quoted(t->properties[i].type, out);
    }
    if (t->n_properties != 0)
        buf_add_u8(out, '}');
    if (t->n_enums != 0) {
        buf_add_str(out, STR(",\"enums\":"));
        add_list(t->enums, t->n_enums, out);
    }
    buf_add_u8(out, '}');
}

void definition_print(const struct definition_view *v, struct buf *out)
{
    buf_add_str(out, STR("{\"methods\":["));
    for (size_t i = 0; i < v->n_methods; i++) {
        buf_add_str(out, i != 0 ? STR(",{\"name\":") : STR("{\"name\":"));
        add_quoted(v->methods[i].name, out);
        buf_add_str(out, STR(",\"parameterTypes\":"));
        add_list(v->methods[i].params, v->methods[i].n_params, out);
        buf_add_str(out, STR(",\"returnType\":"));
        add_quoted(v->methods[i].returns, out);
        buf_add_u8(out, '}');
    }
    buf_add_str(out, STR("],\"types\":["));
    for (size_t i = 0; i < v->n_types; i++) {
        if (i != 0)
            buf_add_u8(out, ',');
        add_type(&v->types[i], out);
    }
    buf_add_str(out, STR("]}"));
}

void definition_print_method(const struct definition_method *m, struct buf *out)
{
    buf_add_str(out, m->returns);
    buf_add_u8(out, ' ');
    buf_add_str(out, m->name);
    buf_add_u8(out, '(');
    for (size_t i = 0; i < m->n_params; i++) {
        if (i != 0)
            buf_add_u8(out, ',');
        buf_add_str(out, m->params[i]);
    }
    buf_add_u8(out, ')');
}

/* ---------------------------------------------------------------- the object */

struct definition *definition_new(const struct definition_view *v, struct err *e)
{
    struct definition *d = NULL;
    struct buf text;

    buf_init(&text, DEFINITION_MAX);
    definition_print(v, &text);
    if (text.failed) {
        err_set(e, "the definition is larger than %d bytes", DEFINITION_MAX);
    } else {
        d = xcalloc(1, sizeof(*d) + text.len + 1);
        ref_init(&d->refs);
        d->n = text.len;
        memcpy(d->text, text.data, text.len);
    }
    buf_free(&text);
    return d;
}

struct definition *definition_read(struct str json, struct err *e)
{
    struct definition_view v;
    struct definition *d = NULL;
    struct arena a;

    arena_init(&a);
    if (definition_parse(json, &a, &v, e))
        d = definition_new(&v, e);
    arena_free(&a);
    return d;
}

struct definition *definition_get(struct definition *d)
{
    ref_get(&d->refs);
    return d;
}

void definition_put(struct definition *d)
{
    struct definition_tables *t = NULL;

    if (d == NULL || !ref_put(&d->refs))
        return;
    t = ref_late_get(&d->tables);
    if (t != NULL)
        t->free(t);
    free(d);
}

bool definition_equal(const struct definition *a, const struct definition *b)
{
    return a == b || (a->n == b->n && memcmp(a->text, b->text, a->n) == 0);
}

struct definitions *definitions_new(struct definition *const *v, size_t n)
{
    struct definitions *d = xcalloc(1, sizeof(*d));

    ref_init(&d->refs);
    while (d->n < n && d->n < DEFINITIONS_MAX) {
        d->v[d->n] = definition_get(v[d->n]);
        d->n++;
    }
    return d;
}

struct definitions *definitions_get(struct definitions *d)
{
    ref_get(&d->refs);
    return d;
}

void definitions_put(struct definitions *d)
{
    if (d == NULL || !ref_put(&d->refs))
        return;
    for (size_t i = 0; i < d->n; i++)
        definition_put(d->v[i]);
    free(d);
}
