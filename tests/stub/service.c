/*
 * What the sample provider exports.  The answers are made as Java's PojoUtils makes them: maps with a
 * "class" member, decimals as java.math.BigDecimal.
 */
#include <string.h>

#include "tests/stub/hessian.h"
#include "tests/stub/stub.h"

enum { KIND_EXCEPTION = 3, KIND_VALUE = 4, KIND_NULL = 5 };

void put_attachments_end(struct buf *out, const json_t *more)
{
    const char *key = NULL;
    json_t *v = NULL;

    buf_add_u8(out, 'H');
    hessian_put_string(out, STR("dubbo"));
    hessian_put_string(out, STR("2.0.2"));
    json_object_foreach((json_t *)(uintptr_t)more, key, v)
    {
        hessian_put_string(out, str_from(key));
        hessian_put_json(out, v);
    }
    buf_add_u8(out, 'Z');
}

void put_exception(struct buf *out, const char *class, const char *message)
{
    hessian_put_int(out, KIND_EXCEPTION);
    buf_add_u8(out, 'C');
    hessian_put_string(out, STR("org.apache.dubbo.rpc.service.GenericException"));
    hessian_put_int(out, 3);
    hessian_put_string(out, STR("exceptionClass"));
    hessian_put_string(out, STR("exceptionMessage"));
    hessian_put_string(out, STR("detailMessage"));
    buf_add_u8(out, 0x60);
    hessian_put_string(out, str_from(class));
    if (message != NULL)
        hessian_put_string(out, str_from(message));
    else
        buf_add_u8(out, 'N');
    hessian_put_string(out, str_from(class));
    put_attachments_end(out, NULL);
}

static void put_member(struct buf *out, const char *key, const char *value)
{
    hessian_put_string(out, str_from(key));
    hessian_put_string(out, str_from(value));
}

/* {"class":"demo.User","id":42,"name":"Zoë","tags":["a","b"],"balance":12345.6700} */
static void put_user(struct buf *out, int64_t id)
{
    unsigned classes = 0;

    buf_add_u8(out, 'H');
    put_member(out, "class", "demo.User");
    hessian_put_string(out, STR("id"));
    hessian_put_long(out, id);
    put_member(out, "name", "Zo\xc3\xab");
    hessian_put_string(out, STR("tags"));
    buf_add_u8(out, 0x7a);
    hessian_put_string(out, STR("a"));
    hessian_put_string(out, STR("b"));
    hessian_put_string(out, STR("balance"));
    hessian_put_decimal(out, "12345.6700", &classes);
    buf_add_u8(out, 'Z');
}

static bool get_user(struct stub *s, const struct stub_call *c, struct buf *out)
{
    struct cursor in = {.p = c->args[0], .end = c->args[0] + c->arg_len[0]};
    int64_t id = 0;

    if (c->n_args != 1 || !hessian_long(&in, &id))
        return false;
    if (id <= 0) {
        put_exception(out, "demo.UserNotFoundException", "no user with this id");
        return true;
    }
    hessian_put_int(out, KIND_VALUE);
    put_user(out, id);
    put_attachments_end(out, NULL);
    return true;
}

/* The argument's own members, copied as they came, with a new id in front. */
static bool create_user(struct stub *s, const struct stub_call *c, struct buf *out)
{
    struct cursor in = {.p = c->args[0], .end = c->args[0] + c->arg_len[0]};
    struct buf key;

    if (c->n_args != 1 || (*in.p != 'H' && *in.p != 'M'))
        return false;
    if (*in.p == 'M') {
        in.p++;
        if (!hessian_string(&in, &s->scratch))
            return false;
    } else {
        in.p++;
    }
    hessian_put_int(out, KIND_VALUE);
    buf_add_u8(out, 'H');
    put_member(out, "class", "demo.User");
    hessian_put_string(out, STR("id"));
    hessian_put_long(out, 1001);
    buf_init(&key, 4096);
    while (in.p < in.end && *in.p != 'Z') {
        const uint8_t *entry = in.p;

        buf_truncate(&key, 0);
        if (!hessian_string(&in, &key) || !hessian_skip(&in, 0))
            break;
        if (!str_is(buf_str(&key), "id") && !str_is(buf_str(&key), "class"))
            buf_add(out, entry, (size_t)(in.p - entry));
    }
    buf_free(&key);
    buf_add_u8(out, 'Z');
    put_attachments_end(out, NULL);
    return true;
}

/* The first argument comes back byte for byte. */
static bool echo(struct stub *s, const struct stub_call *c, struct buf *out)
{
    if (c->n_args != 1)
        return false;
    hessian_put_int(out, KIND_VALUE);
    buf_add(out, c->args[0], c->arg_len[0]);
    put_attachments_end(out, NULL);
    return true;
}

static bool whoami(struct stub *s, const struct stub_call *c, struct buf *out)
{
    hessian_put_int(out, KIND_VALUE);
    hessian_put_string(out, str_from(s->name));
    put_attachments_end(out, NULL);
    return true;
}

static bool nothing(struct stub *s, const struct stub_call *c, struct buf *out)
{
    hessian_put_int(out, KIND_NULL);
    put_attachments_end(out, NULL);
    return true;
}

/* What the provider was sent besides the arguments. */
static bool attachments(struct stub *s, const struct stub_call *c, struct buf *out)
{
    hessian_put_int(out, KIND_VALUE);
    if (c->attachments_len != 0)
        buf_add(out, c->attachments, c->attachments_len);
    else
        buf_add_u8(out, 'N');
    put_attachments_end(out, NULL);
    return true;
}

/* What the arguments looked like on the wire: a list of hex texts. */
static bool raw_arguments(struct stub *s, const struct stub_call *c, struct buf *out)
{
    hessian_put_int(out, KIND_VALUE);
    buf_add_u8(out, 'X');
    hessian_put_int(out, (int64_t)c->n_args);
    for (size_t i = 0; i < c->n_args; i++) {
        buf_truncate(&s->scratch, 0);
        for (size_t j = 0; j < c->arg_len[i]; j++)
            buf_printf(&s->scratch, "%02x", c->args[i][j]);
        hessian_put_string(out, buf_str(&s->scratch));
    }
    put_attachments_end(out, NULL);
    return true;
}

static bool throws(struct stub *s, const struct stub_call *c, struct buf *out)
{
    put_exception(out, "demo.BizException", "business says no");
    return true;
}

/* slow(ms): null after so many milliseconds. */
static bool slow(struct stub *s, const struct stub_call *c, struct buf *out)
{
    return nothing(s, c, out);
}

static const struct {
    const char *name;
    bool (*run)(struct stub *s, const struct stub_call *c, struct buf *out);
} methods[] = {
    {"getUser", get_user}, {"createUser", create_user},
    {"echo", echo},        {"whoami", whoami},
    {"nothing", nothing},  {"attachments", attachments},
    {"throws", throws},    {"rawArguments", raw_arguments},
    {"slow", slow},
};

bool service_answer(struct stub *s, const struct stub_call *c, struct buf *out, double *delay_s)
{
    int64_t ms = 0;
    struct cursor in = {0};

    *delay_s = 0;
    if (str_is(c->method, "slow") && c->n_args == 1) {
        in = (struct cursor){.p = c->args[0], .end = c->args[0] + c->arg_len[0]};
        if (hessian_long(&in, &ms) && ms > 0)
            *delay_s = (double)ms / 1000;
    }
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (str_is(c->method, methods[i].name))
            return methods[i].run(s, c, out);
    }
    return false;
}
