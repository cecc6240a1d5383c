#include "codec/invoke.h"

#include "codec/args_state.h"
#include "codec/hs2_write.h"
#include "codec/utf.h"

void invoke_typed(struct str interface, struct str version, struct str method,
                  struct str descriptor, struct buf *out)
{
    hs2_put_ascii(out, STR("2.0.2"));
    hs2_put_string(out, interface);
    hs2_put_string(out, version.n != 0 ? version : STR("0.0.0"));
    hs2_put_string(out, method);
    hs2_put_string(out, descriptor);
}

void invoke_string(struct str value, struct buf *out)
{
    hs2_put_string(out, value);
}

void invoke_prefix(struct str interface, struct str version, struct buf *out)
{
    invoke_typed(interface, version, STR("$invoke"),
                 STR("Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;"), out);
}

static bool all_typed(const struct arg *args, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (args[i].type == NULL)
            return false;
    }
    return true;
}

enum args_result invoke_middle(struct str method, const struct arg *args, size_t n_args,
                               const struct args_opts *opts, struct buf *out, struct args_error *e)
{
    size_t before = out->len;
    struct args_state s NO_AUTO_INIT;
    enum args_result r = ARGS_OK;

    hs2_put_string(out, method);
    if (all_typed(args, n_args)) {
        hs2_put_typed_list(out, STR("[string"), n_args);
        for (size_t i = 0; i < n_args; i++)
            hs2_put_string(out, args[i].type->name);
    } else {
        hs2_put_null(out); /* fine where the method is not overloaded (decision 16) */
    }
    hs2_put_typed_list(out, STR("[object"), n_args);
    args_begin(&s, opts, out, e);
    for (size_t i = 0; i < n_args && r == ARGS_OK; i++) {
        e->arg = i;
        r = args_one(&s, &args[i]);
    }
    args_end(&s);
    if (r == ARGS_OK && out->failed) {
        r = e->result = ARGS_TOO_LARGE;
        (void)str_copy(STR("the encoded arguments are too large"), e->detail, sizeof(e->detail));
    }
    if (r != ARGS_OK)
        buf_truncate(out, before);
    return r;
}

void invoke_attachments_begin(struct buf *out)
{
    buf_add_u8(out, HS2_MAP_BEGIN);
}

bool invoke_attachment(struct str name, struct str value, struct buf *out)
{
    if (!utf_valid(name) || !utf_valid(value))
        return false;
    hs2_put_string(out, name);
    hs2_put_string(out, value);
    return true;
}

/* One of our own strings: at most one chunk of 65,535 UTF-16 units.  False at the end. */
static bool take_string(struct str *entries, struct str *out)
{
    const uint8_t *p = (const uint8_t *)entries->p;
    size_t head = 1;
    size_t units = 0;
    size_t i = 0;

    if (entries->n < 3)
        return false;
    if (p[0] < 0x20) {
        units = p[0];
    } else if (p[0] < 0x34) {
        units = ((size_t)(p[0] - 0x30) << 8) + p[1];
        head = 2;
    } else {
        units = ((size_t)p[1] << 8) + p[2];
        head = 3;
    }
    for (i = head; units != 0 && i < entries->n; units--)
        i += p[i] < 0x80 ? 1 : p[i] < 0xe0 ? 2 : 3;
    if (units != 0 || i > entries->n)
        return false;
    *out = str_sub(*entries, head, i);
    *entries = str_sub(*entries, i, entries->n);
    return true;
}

bool invoke_attachment_find(struct str entries, struct str name, struct str *value)
{
    struct str key;

    while (take_string(&entries, &key) && take_string(&entries, value)) {
        if (str_eq(key, name))
            return true;
    }
    return false;
}

void invoke_attachments_end(struct buf *out)
{
    buf_add_u8(out, HS2_MAP_END);
}
