/*
 * Java type names: an accepted one has a name that is accepted again and means the same, elements that lead
 * to a type without dimensions, and takes or refuses any value without harm; a refusal has a sentence.
 */
#include <stdint.h>
#include <string.h>

#include "base/fatal.h"
#include "codec/json_args.h"
#include "codec/jtype.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_chain(const struct jtype *t)
{
    unsigned dims = t->dims;

    for (; t->element != NULL; t = t->element) {
        ASSERT(t->kind == JTYPE_ARRAY && !t->primitive && t->dims == dims);
        ASSERT(str_ends(t->name, STR("[]")));
        ASSERT(str_eq(str_sub(t->name, 0, t->name.n - 2), t->element->name));
        dims--;
    }
    ASSERT(dims == 0 && t->dims == 0 && t->kind != JTYPE_ARRAY);
}

/* On the wire stands the source form: letters, digits and _ $ . with brackets at the end. */
static void check_name(struct str s)
{
    ASSERT(s.n != 0);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        ASSERT((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               strchr("_$.[]", c) != NULL);
    }
}

static void try_values(const struct jtype *t)
{
    static const char *const values[] = {
        "null", "true", "5", "1.5", "\"x\"", "\"2018-01-29T12:00:00Z\"", "[1,[2]]", "{\"a\":null}"};
    const struct args_opts opts = {.max_depth = 16};

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        const struct arg arg = {.json = str_from(values[i]), .type = t};
        struct args_error e;
        struct buf out;

        buf_init(&out, 4096);
        if (arg_encode(&arg, &opts, &out, &e) == ARGS_OK)
            ASSERT(out.len != 0);
        else
            ASSERT(out.len == 0 && e.result == ARGS_BAD_ARGUMENT && e.detail[0] != '\0');
        buf_free(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena a;
    struct jtype t;
    struct jtype again;
    struct err e = {0};

    arena_init(&a);
    if (jtype_parse(text, &a, &t, &e)) {
        check_name(t.name);
        check_chain(&t);
        ASSERT(jtype_parse(t.name, &a, &again, &e));
        ASSERT(str_eq(again.name, t.name) && again.kind == t.kind && again.dims == t.dims &&
               again.primitive == t.primitive);
        try_values(&t);
    } else {
        ASSERT(e.text[0] != '\0');
    }
    arena_free(&a);
    return 0;
}
