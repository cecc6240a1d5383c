/*
 * What telnet on the service port of 2.6 says of an interface (docs/REGISTRY.md section 7.5).
 */
#include <string.h>

#include "registry/definition_parts.h"
#include "registry/url.h"

enum { QUOTED_MAX = 80 };

#define PROMPT "dubbo>"

bool definition_telnet_is_whole(struct str text)
{
    return str_is(text, PROMPT) || str_ends(text, STR("\n" PROMPT));
}

/* RETURNS NAME(PARAM,PARAM): types are erased, so the blank and the commas part it. */
static bool read_line(struct str line, struct arena *a, struct definition_method *m)
{
    struct str v[DEFINITION_PARAMS_MAX];
    struct str *copy = NULL;
    struct str params = STR_NONE;
    struct str rest = STR_NONE;
    struct str returns = str_cut(line, ' ', &rest);
    struct str name = str_cut(rest, '(', &params);
    size_t n = 0;
    bool more = false;

    if (!url_text_ok(line) || !definition_is_identifier(name) || !str_ends(params, STR(")")) ||
        !definition_type_name(returns, a, &m->returns))
        return false;
    params = str_sub(params, 0, params.n - 1);
    more = params.n != 0;
    while (more) {
        if (n == DEFINITION_PARAMS_MAX ||
            !definition_type_name(str_cut(params, ',', &params), a, &v[n++]))
            return false;
        more = params.p != NULL;
    }
    copy = arena_alloc(a, (n + 1) * sizeof(*copy));
    if (n != 0)
        memcpy(copy, v, n * sizeof(*copy));
    m->name = arena_str(a, name);
    m->params = copy;
    m->n_params = n;
    return true;
}

/* The provider's own words, as far as they can be shown. */
static void refuse(struct str line, struct err *e)
{
    char quoted[QUOTED_MAX + 1];

    (void)str_copy(line, quoted, sizeof(quoted));
    for (char *c = quoted; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
    if (line.n == 0)
        err_set(e, "the answer has no methods");
    else
        err_set(e, "the answer is \"%s\"", quoted);
}

static bool read_lines(struct str text, struct arena *a, struct definition_view *out, struct err *e)
{
    struct definition_method *v = arena_alloc(a, DEFINITION_METHODS_MAX * sizeof(*v));
    struct definition_method m = {0};
    struct str other = STR_NONE; /* the first line that is no method */
    size_t n = 0;

    while (text.n != 0) {
        struct str line = str_trim(str_cut(text, '\n', &text));

        if (!read_line(line, a, &m)) {
            other = other.n == 0 ? line : other;
            continue;
        }
        if (n == DEFINITION_METHODS_MAX) {
            err_set(e, "more methods than %d", DEFINITION_METHODS_MAX);
            return false;
        }
        v[n++] = m;
    }
    definition_use_methods(v, n, out);
    if (n == 0)
        refuse(other, e);
    return n != 0;
}

bool definition_parse_telnet(struct str text, struct arena *a, struct definition_view *out,
                             struct err *e)
{
    *out = (struct definition_view){0};
    if (text.n > DEFINITION_NODE_MAX)
        err_set(e, "the answer is longer than %d bytes", DEFINITION_NODE_MAX);
    else if (!definition_telnet_is_whole(text))
        err_set(e, "the answer has no prompt at its end");
    else
        return read_lines(str_sub(text, 0, text.n - (sizeof(PROMPT) - 1)), a, out, e);
    return false;
}

struct definition *definition_read_telnet(struct str text, struct err *e)
{
    struct definition_view v;
    struct definition *d = NULL;
    struct arena a;

    arena_init(&a);
    if (definition_parse_telnet(text, &a, &v, e))
        d = definition_new(&v, e);
    arena_free(&a);
    return d;
}
