#include "base/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* after ours: the library's names begin with yaml_ too */
#include <yaml.h>

#include "base/buf.h"

enum { NESTING_MAX = 16, TEXT_MAX = 4 * 1024 * 1024, NODES_MAX = 200000 };

struct loader {
    yaml_parser_t parser;
    struct arena *a;
    const struct yaml_opts *opts;
    size_t n_nodes;
    bool failed;
};

static unsigned line_of(yaml_mark_t m)
{
    return (unsigned)m.line + 1;
}

static unsigned column_of(yaml_mark_t m)
{
    return (unsigned)m.column + 1;
}

static void *fail(struct loader *l, yaml_mark_t at, const char *why)
{
    if (!l->failed)
        l->opts->on_error(l->opts->ctx, line_of(at), column_of(at), why);
    l->failed = true;
    return NULL;
}

static void tell(struct loader *l, unsigned line, unsigned column, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
static void tell(struct loader *l, unsigned line, unsigned column, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    l->opts->on_error(l->opts->ctx, line, column, text);
}

static bool next(struct loader *l, yaml_event_t *e)
{
    if (l->failed)
        return false;
    if (yaml_parser_parse(&l->parser, e) != 0)
        return true;
    yaml_mark_t at = l->parser.problem_mark;
    const char *problem = l->parser.problem != NULL ? l->parser.problem : "broken YAML";

    if (strstr(problem, "cannot start any token") != NULL)
        problem = "no value starts with this character: indent with spaces, not tabs, and quote "
                  "text that begins with @ or `";
    fail(l, at, problem);
    return false;
}

static struct yaml_node *new_node(struct loader *l, enum yaml_kind kind, yaml_mark_t at)
{
    struct yaml_node *n = NULL;

    if (++l->n_nodes > NODES_MAX)
        return fail(l, at, "the file holds too many values");
    n = arena_alloc(l->a, sizeof(*n));
    n->kind = kind;
    n->line = line_of(at);
    n->column = column_of(at);
    return n;
}

/* ---------------------------------------------------------------- scalars */

static bool is_env_char(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

/* ${NAME} or ${NAME:-default} at the beginning of `s`; `used` = its length. */
static bool expand_one(struct loader *l, yaml_mark_t at, struct str s, struct buf *out,
                       size_t *used)
{
    size_t end = str_find(s, '}');
    struct str inner = str_sub(s, 2, end);
    size_t dash = 0;
    char name[128];
    const char *value = NULL;

    while (dash < inner.n && is_env_char(inner.p[dash], dash == 0))
        dash++;
    if (end == s.n || dash == 0 || dash >= sizeof(name) ||
        (dash < inner.n && !str_starts(str_sub(inner, dash, inner.n), STR(":-")))) {
        fail(l, at, "\"${\" begins ${NAME} or ${NAME:-default}; write $$ for a dollar sign");
        return false;
    }
    memcpy(name, inner.p, dash);
    name[dash] = '\0';
    value = getenv(name);
    *used = end + 1;
    if (value != NULL) {
        buf_add_str(out, str_from(value));
    } else if (dash < inner.n) {
        buf_add_str(out, str_sub(inner, dash + 2, inner.n));
    } else {
        tell(l, line_of(at), column_of(at),
             "environment variable %s is not set; write ${%s:-DEFAULT} to give a default", name,
             name);
        l->failed = true;
        return false;
    }
    return true;
}

static struct str expand(struct loader *l, yaml_mark_t at, struct str s)
{
    struct buf out;
    struct str result = s;

    if (!l->opts->environment || str_find(s, '$') == s.n)
        return arena_str(l->a, s);
    buf_init(&out, TEXT_MAX);
    while (s.n != 0) {
        size_t used = 1;

        if (str_starts(s, STR("$$"))) {
            buf_add_u8(&out, '$');
            used = 2;
        } else if (str_starts(s, STR("${"))) {
            if (!expand_one(l, at, s, &out, &used))
                break;
        } else {
            buf_add_u8(&out, (uint8_t)s.p[0]);
        }
        s = str_sub(s, used, s.n);
    }
    result = arena_str(l->a, buf_str(&out));
    buf_free(&out);
    return result;
}

static struct yaml_node *scalar(struct loader *l, const yaml_event_t *e)
{
    struct yaml_node *n = new_node(l, YAML_SCALAR, e->start_mark);
    struct str text = {(const char *)e->data.scalar.value, e->data.scalar.length};

    if (n == NULL)
        return NULL;
    if (e->data.scalar.anchor != NULL)
        return fail(l, e->start_mark, "anchors are not supported");
    if (memchr(text.n != 0 ? text.p : "", '\0', text.n) != NULL)
        return fail(l, e->start_mark, "a value holds a NUL byte");
    n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    n->text = expand(l, e->start_mark, text);
    return n;
}

/* ---------------------------------------------------------------- structure */

static void add(struct loader *l, struct yaml_node *into, struct yaml_node *key,
                struct yaml_node *value)
{
    if (into->n == into->cap) {
        size_t cap = into->cap != 0 ? into->cap * 2 : 8;
        struct yaml_node **values = arena_alloc(l->a, cap * sizeof(struct yaml_node *));
        struct yaml_node **keys = arena_alloc(l->a, cap * sizeof(struct yaml_node *));

        if (into->n != 0) {
            memcpy(values, into->values, into->n * sizeof(struct yaml_node *));
            memcpy(keys, into->keys, into->n * sizeof(struct yaml_node *));
        }
        into->values = values;
        into->keys = keys;
        into->cap = cap;
    }
    into->keys[into->n] = key;
    into->values[into->n++] = value;
}

static struct yaml_node *value(struct loader *l, yaml_event_t *e, unsigned depth);

static struct yaml_node *list(struct loader *l, yaml_mark_t at, unsigned depth)
{
    struct yaml_node *n = new_node(l, YAML_LIST, at);

    while (n != NULL) {
        yaml_event_t e;
        struct yaml_node *item = NULL;

        if (!next(l, &e))
            return NULL;
        if (e.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&e);
            return n;
        }
        item = value(l, &e, depth + 1);
        yaml_event_delete(&e);
        if (item == NULL)
            return NULL;
        add(l, n, NULL, item);
    }
    return NULL;
}

static void check_duplicate(struct loader *l, const struct yaml_node *map,
                            const struct yaml_node *key)
{
    for (size_t i = 0; i < map->n; i++) {
        if (str_eq(map->keys[i]->text, key->text))
            tell(l, key->line, key->column, "duplicate key \"" STR_FMT "\" (first at line %u)",
                 STR_ARG(key->text), map->keys[i]->line);
    }
}

static struct yaml_node *map(struct loader *l, yaml_mark_t at, unsigned depth)
{
    struct yaml_node *n = new_node(l, YAML_MAP, at);

    while (n != NULL) {
        yaml_event_t e;
        struct yaml_node *key = NULL;
        struct yaml_node *v = NULL;

        if (!next(l, &e))
            return NULL;
        if (e.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&e);
            return n;
        }
        key = e.type == YAML_SCALAR_EVENT ? scalar(l, &e)
                                          : fail(l, e.start_mark, "a key must be a plain text");
        yaml_event_delete(&e);
        if (key == NULL || !next(l, &e))
            return NULL;
        v = value(l, &e, depth + 1);
        yaml_event_delete(&e);
        if (v == NULL)
            return NULL;
        check_duplicate(l, n, key);
        add(l, n, key, v);
    }
    return NULL;
}

static struct yaml_node *value(struct loader *l, yaml_event_t *e, unsigned depth)
{
    if (depth > NESTING_MAX)
        return fail(l, e->start_mark, "nested too deep");
    if (e->type == YAML_SCALAR_EVENT)
        return scalar(l, e);
    if (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor == NULL)
        return list(l, e->start_mark, depth);
    if (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor == NULL)
        return map(l, e->start_mark, depth);
    return fail(l, e->start_mark, "anchors and aliases are not supported");
}

/* Stream start, document start, the value, document end, stream end: no second document. */
static struct yaml_node *document(struct loader *l)
{
    struct yaml_node *root = NULL;
    yaml_event_t e;
    bool done = false;

    while (!done && next(l, &e)) {
        switch ((int)e.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        case YAML_DOCUMENT_START_EVENT:
            if (root != NULL)
                fail(l, e.start_mark, "one document per file");
            break;
        case YAML_STREAM_END_EVENT:
            done = true;
            break;
        default:
            root = value(l, &e, 0);
            break;
        }
        yaml_event_delete(&e);
    }
    return l->failed ? NULL : root;
}

struct yaml_node *yaml_load(struct str text, struct arena *a, const struct yaml_opts *opts)
{
    struct loader l = {.a = a, .opts = opts};
    struct yaml_node *root = NULL;

    if (text.n > TEXT_MAX) {
        tell(&l, 0, 0, "the file is larger than 4 MiB");
        return NULL;
    }
    if (yaml_parser_initialize(&l.parser) == 0) {
        tell(&l, 0, 0, "out of memory");
        return NULL;
    }
    /* told the encoding, the library takes a byte order mark for text; Java's reader skips it too */
    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_sub(text, 3, text.n);
    yaml_parser_set_encoding(&l.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)(text.n != 0 ? text.p : ""),
                                 text.n);
    root = document(&l);
    yaml_parser_delete(&l.parser);
    if (root == NULL && !l.failed)
        tell(&l, 1, 1, "the file is empty");
    return root;
}

static void keep_first(void *ctx, unsigned line, unsigned column, const char *text)
{
    struct err *e = ctx;

    if (e->text[0] == '\0')
        err_set(e, "line %u, column %u: %s", line, column, text);
}

struct yaml_node *yaml_load_plain(struct str text, struct arena *a, struct err *e)
{
    const struct yaml_opts opts = {.on_error = keep_first, .ctx = e};
    struct yaml_node *n = NULL;

    e->text[0] = '\0';
    n = yaml_load(text, a, &opts);
    return e->text[0] == '\0' ? n : NULL;
}

struct yaml_node *yaml_find(const struct yaml_node *m, struct str key)
{
    for (size_t i = 0; m->kind == YAML_MAP && i < m->n; i++) {
        if (str_eq(m->keys[i]->text, key))
            return m->values[i];
    }
    return NULL;
}

struct str yaml_text(const struct yaml_node *m, struct str key)
{
    const struct yaml_node *n = yaml_find(m, key);

    return n != NULL && n->kind == YAML_SCALAR ? n->text : STR_NONE;
}
