#include "gateway/typing.h"

#include <string.h>

#include "codec/utf.h"
#include "gateway/overload.h"
#include "gateway/signature.h"

static bool matters(const struct jtype *t)
{
    while (t != NULL && t->kind == JTYPE_ARRAY)
        t = t->element;
    return t == NULL || t->kind == JTYPE_LIST || t->kind == JTYPE_MAP || t->kind == JTYPE_OTHER;
}

bool typing_matters(const struct bound *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (matters(b->args[i].type))
            return true;
    }
    return false;
}

static bool any_given(const struct bound *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (b->args[i].type != NULL)
            return true;
    }
    return false;
}

/* One a line, as many as fit. */
static void list_candidates(const struct signature *v, size_t n, struct problem *p)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        struct str text = v[i].text;

        if (at + text.n + 2 > sizeof(p->candidates))
            continue;
        if (at != 0)
            p->candidates[at++] = '\n';
        memcpy(p->candidates + at, text.p, text.n);
        at += text.n;
    }
    p->candidates[at] = '\0';
}

/* The one method takes a list, and the body was taken for the list of arguments. */
static bool is_bare_list(const struct signature *v, size_t n, const struct bound *b)
{
    return n == 1 && v->n == 1 && b->from_list &&
           (v->types[0].kind == JTYPE_LIST || v->types[0].kind == JTYPE_ARRAY);
}

static void refuse_arity(const struct signature *v, size_t n, const struct bound *b,
                         struct problem *p)
{
    list_candidates(v, n, p);
    if (is_bare_list(v, n, b))
        problem_set(p, OUTCOME_ARGUMENT_COUNT,
                    "%zu arguments for 1 parameter; a list argument is written [[…]]", b->n);
    else if (n == 1)
        problem_set(p, OUTCOME_ARGUMENT_COUNT, "%zu argument%s for " STR_FMT, b->n,
                    b->n == 1 ? "" : "s", STR_ARG(utf_cut(v->text, 400)));
    else
        problem_set(p, OUTCOME_ARGUMENT_COUNT,
                    "%zu argument%s; none of the %zu methods of this name takes so many", b->n,
                    b->n == 1 ? "" : "s", n);
}

static enum typing refuse(enum overload_result why, const struct signature *v, size_t n,
                          const struct bound *b, struct problem *p)
{
    if (why == OVERLOAD_ARITY) {
        refuse_arity(v, n, b, p);
        return TYPING_REFUSED;
    }
    list_candidates(v, n, p);
    if (why == OVERLOAD_NO_FIT)
        problem_set(p, OUTCOME_BAD_ARGUMENT,
                    "the arguments fit none of the %zu methods of this name", n);
    else
        problem_set(p, OUTCOME_AMBIGUOUS_METHOD,
                    "the arguments fit several methods of this name; give their types");
    return TYPING_REFUSED;
}

enum typing typing_apply(struct definitions *d, struct str method, struct bound *b,
                         bool *returns_float, struct problem *p)
{
    enum typing result = TYPING_NONE;

    for (size_t i = 0; d != NULL && i < d->n; i++) {
        const struct signature *v = NULL;
        const struct signature *s = NULL;
        size_t n = signatures_named(signatures_of(d->v[i]), method, &v);
        enum overload_result r = n != 0 ? overload_choose(v, n, b->args, b->n, &s) : OVERLOAD_ARITY;

        if (n == 0)
            continue;
        if (r == OVERLOAD_OK) {
            for (size_t k = 0; k < s->n; k++)
                b->args[k].type = &s->types[k];
            *returns_float = s->returns_float;
            return TYPING_DONE;
        }
        if (result == TYPING_NONE &&
            !any_given(b)) /* what the caller says counts, not what we know */
            result = refuse(r, v, n, b, p);
    }
    return result;
}
