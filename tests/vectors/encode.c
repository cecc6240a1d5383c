#include <stdio.h>
#include <string.h>

#include "codec/base64.h"
#include "codec/json_args.h"
#include "codec/json_write.h"

#include "tests/vectors/vectors.h"

enum { OUTPUT = 64 * 1024 * 1024, SHOWN = 40 };

static void show(struct str bytes, char *out, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes.n && i < SHOWN && n + 3 < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%02x", (unsigned char)bytes.p[i]);
}

bool vectors_encode(const char *declared, struct str json, struct str want, struct err *why)
{
    const struct args_opts opts = {.max_depth = 256, .class_key = ARGS_CLASS_STRIP};
    struct args_error e;
    struct arena a;
    struct jtype type;
    struct buf out;
    char got[2 * SHOWN + 4] = "";
    char wanted[2 * SHOWN + 4] = "";
    bool ok = false;

    arena_init(&a);
    buf_init(&out, OUTPUT);
    if (jtype_parse(str_from(declared), &a, &type, why)) {
        const struct arg arg = {.json = json, .type = &type};

        if (arg_encode(&arg, &opts, &out, &e) != ARGS_OK)
            err_set(why, "%s: %s", declared, e.detail);
        else
            ok = str_eq(buf_str(&out), want);
        if (!ok && why->text[0] == '\0') {
            show(buf_str(&out), got, sizeof(got));
            show(want, wanted, sizeof(wanted));
            err_set(why, "%s: got %s, want %s", declared, got, wanted);
        }
    }
    buf_free(&out);
    arena_free(&a);
    return ok;
}

void vectors_add_bytes(const json_t *gen, struct buf *out)
{
    json_int_t n = json_integer_value(json_object_get(gen, "bytes"));

    for (json_int_t i = 0; i < n; i++)
        buf_add_u8(out, (uint8_t)(7 * i + 3)); /* the recipe's byte_i */
}

void vectors_add_json(const struct buf *value, bool text, struct buf *out)
{
    if (text) {
        json_add_string(out, buf_str(value));
        return;
    }
    buf_add_u8(out, '"');
    base64_add(out, value->data, value->len);
    buf_add_u8(out, '"');
}
