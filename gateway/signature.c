#include "gateway/signature.h"

#include <stdlib.h>

#include "base/fatal.h"
#include "base/log.h"

struct maker {
    struct signatures *out;
    const struct definition_view *view;
    struct jtype_class *classes; /* one per type of the view */
};

/* ---------------------------------------------------------------- types */

static const struct jtype_class *class_of(const struct maker *m, struct str name)
{
    size_t from = 0;
    size_t to = m->view->n_types;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = str_cmp(name, m->view->types[middle].name);

        if (order == 0)
            return &m->classes[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

/* The n-th of "<A,B<C,D>>…", without what follows the brackets. */
static struct str argument(struct str list, unsigned n)
{
    size_t from = 1;
    unsigned depth = 0;

    for (size_t i = 0; i < list.n; i++) {
        char c = list.p[i];

        depth += c == '<' ? 1U : 0U;
        if (depth == 1 && (c == ',' || c == '>')) {
            if (n-- == 0)
                return str_sub(list, from, i);
            from = i + 1;
        }
        depth -= c == '>' ? 1U : 0U;
        if (depth == 0)
            break;
    }
    return STR_NONE;
}

static bool make_type(struct maker *m, struct str text, struct jtype *out);

/* NULL: anything. */
static const struct jtype *type_of(struct maker *m, struct str text)
{
    struct jtype *t = NULL;

    if (text.n == 0 || str_is(text, "java.lang.Object"))
        return NULL;
    t = arena_alloc(&m->out->arena, sizeof(*t));
    return make_type(m, text, t) ? t : NULL;
}

/* Without arrays around it. */
static bool make_plain(struct maker *m, struct str text, struct jtype *out)
{
    size_t angle = str_find(text, '<');
    struct str arguments = str_sub(text, angle, text.n);
    struct err e;

    if (!jtype_parse(str_sub(text, 0, angle), &m->out->arena, out, &e))
        return false;
    if (out->kind == JTYPE_LIST)
        out->element = type_of(m, argument(arguments, 0));
    else if (out->kind == JTYPE_MAP)
        out->element = type_of(m, argument(arguments, 1));
    else if (out->kind == JTYPE_OTHER)
        out->class = class_of(m, out->name);
    return true;
}

/* Brackets behind the last '>' and the name make arrays around what is before them. */
static bool make_type(struct maker *m, struct str text, struct jtype *out)
{
    struct jtype element;
    unsigned dims = 0;

    while (str_ends(text, STR("[]"))) {
        text = str_sub(text, 0, text.n - 2);
        dims++;
    }
    if (!make_plain(m, text, &element))
        return false;
    for (unsigned i = 1; i <= dims; i++) {
        struct jtype *inner = arena_alloc(&m->out->arena, sizeof(*inner));

        *inner = element;
        element = (struct jtype){
            .kind = JTYPE_ARRAY,
            .dims = i,
            .name = arena_printf(&m->out->arena, STR_FMT "[]", STR_ARG(inner->name)),
            .element = inner,
        };
    }
    *out = element;
    return true;
}

static void make_class(struct maker *m, const struct definition_type *t, struct jtype_class *out)
{
    struct jtype_property *v = arena_alloc(&m->out->arena, (t->n_properties + 1) * sizeof(*v));
    struct str *enums = arena_alloc(&m->out->arena, (t->n_enums + 1) * sizeof(*enums));

    for (size_t i = 0; i < t->n_properties; i++)
        v[i] = (struct jtype_property){arena_str(&m->out->arena, t->properties[i].name),
                                       type_of(m, t->properties[i].type)};
    for (size_t i = 0; i < t->n_enums; i++)
        enums[i] = arena_str(&m->out->arena, t->enums[i]);
    *out = (struct jtype_class){v, t->n_properties, enums, t->n_enums};
}

/* ---------------------------------------------------------------- methods */

static struct str text_of(struct maker *m, const struct signature *s)
{
    struct buf b;
    struct str text = STR_NONE;

    buf_init(&b, 65536);
    buf_add_str(&b, s->name);
    buf_add_u8(&b, '(');
    for (size_t i = 0; i < s->n; i++) {
        if (i != 0)
            buf_add_u8(&b, ',');
        buf_add_str(&b, s->types[i].name);
    }
    buf_add_u8(&b, ')');
    text = arena_str(&m->out->arena, buf_str(&b));
    buf_free(&b);
    return text;
}

static bool make_method(struct maker *m, const struct definition_method *d, struct signature *out)
{
    struct jtype *types = arena_alloc(&m->out->arena, (d->n_params + 1) * sizeof(*types));

    for (size_t i = 0; i < d->n_params; i++) {
        if (!make_type(m, d->params[i], &types[i]))
            return false;
    }
    *out = (struct signature){
        .name = arena_str(&m->out->arena, d->name),
        .types = types,
        .n = d->n_params,
        .returns_float = str_is(d->returns, "float") || str_is(d->returns, "java.lang.Float"),
    };
    out->text = text_of(m, out);
    return true;
}

static void tables_free(struct definition_tables *t)
{
    struct signatures *s = container_of(t, struct signatures, tables);

    arena_free(&s->arena);
    free(s);
}

static struct signatures *make(const struct definition *d)
{
    struct signatures *s = xcalloc(1, sizeof(*s));
    struct definition_view view;
    struct maker m = {.out = s, .view = &view};
    struct arena a;
    struct err e = {0};

    s->tables.free = tables_free;
    arena_init(&s->arena);
    arena_init(&a);
    if (!definition_parse((struct str){d->text, d->n}, &a, &view, &e))
        log_error("definition", "a definition does not read again: %s", e.text);
    m.classes = arena_alloc(&s->arena, (view.n_types + 1) * sizeof(*m.classes));
    for (size_t i = 0; i < view.n_types; i++)
        make_class(&m, &view.types[i], &m.classes[i]);
    s->v = arena_alloc(&s->arena, (view.n_methods + 1) * sizeof(*s->v));
    for (size_t i = 0; i < view.n_methods; i++)
        s->n += make_method(&m, &view.methods[i], &s->v[s->n]) ? 1U : 0U;
    arena_free(&a);
    return s;
}

/* Two workers may make them at once; the later one throws its own away. */
const struct signatures *signatures_of(struct definition *d)
{
    struct definition_tables *t = ref_late_get(&d->tables);
    struct signatures *s = NULL;

    if (t == NULL) {
        s = make(d);
        t = ref_late_set(&d->tables, &s->tables);
        if (t != &s->tables)
            tables_free(&s->tables);
    }
    return container_of(t, struct signatures, tables);
}

size_t signatures_named(const struct signatures *s, struct str method,
                        const struct signature **first)
{
    size_t from = 0;
    size_t to = s->n;
    size_t n = 0;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (str_cmp(s->v[middle].name, method) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *first = &s->v[from];
    while (from + n < s->n && str_eq(s->v[from + n].name, method))
        n++;
    return n;
}
