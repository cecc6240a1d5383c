/*
 * Scripted behaviour: {"METHOD": [[action, …], [action, …]]}: the nth call of METHOD runs the nth list, the last
 * list serves all further calls.  "*" stands for every method without a list of its own; "$heartbeat" for heartbeats,
 * which are answered as usual without one.
 *
 * Actions, in order:
 *   {"delay_ms": N}            what follows happens later
 *   {"value": JSON}, {"null": true}, {"exception": {"class": C, "message": M}}   status 20; "attachments": {…}
 *   {"status": N, "text": T, "serial": 2|23|6}   any other status; serial 23 = JSONB text, 6 = JSON text
 *   {"raw": HEX}               these bytes; "ID" inside stands for the 16 digits of the call's id
 *   {"wrong_id": true}         an answer for an id that nobody asked with
 *   {"twice": true}            the next answer is sent two times
 *   {"split": N, "ms": M}      of what is sent so far in this list only N bytes now, the rest after M ms
 *   {"readonly": true}         the readonly event (Hessian2; "serial": 23 for fastjson2)
 *   {"request": HEX}           a frame from the provider's side, as in raw
 *   {"close": true}, {"reset": true}, {"deaf": true}, {"never": true}
 */
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

#include "tests/stub/hessian.h"
#include "tests/stub/stub.h"

enum {
    KIND_VALUE = 4,
    KIND_NULL = 5,
    STATUS_OK = 20,
    SERIAL_HESSIAN2 = 2,
    SERIAL_FASTJSON = 6,
    SERIAL_JSONB = 23
};

struct later {
    ev_timer timer;
    struct stub *stub;
    struct stub_conn *conn;
    struct stub_call call; /* id and flags only */
    json_t *actions;
    size_t from;
};

static void run_from(struct stub_conn *k, const struct stub_call *c, json_t *actions, size_t from);

static bool still_open(const struct stub *s, const struct stub_conn *k)
{
    list_each(l, &s->conns) {
        if (container_of(l, struct stub_conn, link) == k)
            return true;
    }
    return false;
}

static void on_later(struct ev_loop *loop, ev_timer *t, int events)
{
    struct later *l = container_of(t, struct later, timer);

    ev_timer_stop(loop, t);
    if (still_open(l->stub, l->conn)) {
        l->conn->slow = false;
        run_from(l->conn, &l->call, l->actions, l->from);
        stub_flush(l->conn);
    }
    json_decref(l->actions);
    free(l);
}

static void run_later(struct stub_conn *k, const struct stub_call *c, json_t *actions, size_t from,
                      double after_s)
{
    struct later *l = xcalloc(1, sizeof(*l));

    l->stub = k->stub;
    l->conn = k;
    l->call.id = c->id;
    l->call.one_way = c->one_way;
    l->actions = json_incref(actions);
    l->from = from;
    ev_timer_init(&l->timer, on_later, after_s, 0.);
    ev_timer_start(k->stub->loop, &l->timer);
}

static void put_hex(struct buf *out, const char *hex, uint64_t id)
{
    while (*hex != '\0') {
        if (strncmp(hex, "ID", 2) == 0) {
            buf_add_be64(out, id);
            hex += 2;
            continue;
        }
        if (*hex == ' ' || *hex == '\n') {
            hex++;
            continue;
        }
        char two[3] = {hex[0], hex[1], '\0'};

        buf_add_u8(out, (uint8_t)strtoul(two, NULL, 16));
        hex += hex[1] != '\0' ? 2 : 1;
    }
}

/* fastjson2's JSONB: length of the block, then one string as UTF-8. */
static void put_jsonb(struct buf *out, struct str text)
{
    buf_add_be32(out, (uint32_t)text.n + 6);
    buf_add_u8(out, 0x7a);
    buf_add_u8(out, 0x48);
    buf_add_be32(out, (uint32_t)text.n);
    buf_add_str(out, text);
}

static void send_status(struct stub_conn *k, uint64_t id, const json_t *a)
{
    struct buf *b = &k->stub->body;
    int64_t serial = json_object_get(a, "serial") != NULL
                         ? json_integer_value(json_object_get(a, "serial"))
                         : SERIAL_HESSIAN2;
    const json_t *t = json_object_get(a, "text");
    struct str text = {json_string_value(t), json_string_length(t)};

    buf_truncate(b, 0);
    if (serial == SERIAL_JSONB) {
        put_jsonb(b, text);
    } else if (serial == SERIAL_FASTJSON) {
        char *quoted = json_dumps(t, JSON_ENCODE_ANY);

        buf_add_str(b, str_from(quoted));
        free(quoted);
    } else {
        hessian_put_string(b, text);
    }
    stub_frame(k, (uint8_t)serial, (uint8_t)json_integer_value(json_object_get(a, "status")), id,
               buf_str(b));
}

static void send_answer(struct stub_conn *k, uint64_t id, const json_t *a)
{
    struct buf *b = &k->stub->body;
    const json_t *e = json_object_get(a, "exception");
    const json_t *serial = json_object_get(a, "serial");

    buf_truncate(b, 0);
    if (e != NULL) {
        put_exception(b, json_string_value(json_object_get(e, "class")),
                      json_string_value(json_object_get(e, "message")));
    } else if (json_object_get(a, "null") != NULL) {
        hessian_put_int(b, KIND_NULL);
        put_attachments_end(b, json_object_get(a, "attachments"));
    } else {
        hessian_put_int(b, KIND_VALUE);
        hessian_put_json(b, json_object_get(a, "value"));
        put_attachments_end(b, json_object_get(a, "attachments"));
    }
    stub_frame(k, serial != NULL ? (uint8_t)json_integer_value(serial) : SERIAL_HESSIAN2, STATUS_OK,
               id, buf_str(b));
}

static void send_readonly(struct stub_conn *k, const json_t *a)
{
    bool jsonb = json_integer_value(json_object_get(a, "serial")) == SERIAL_JSONB;
    static const uint8_t block[] = {0, 0, 0, 2, 0x4a, 'R'};

    if (jsonb)
        stub_frame(k, FRAME_REQUEST | FRAME_EVENT | SERIAL_JSONB, 0, 0,
                   (struct str){(const char *)block, sizeof(block)});
    else
        stub_frame(k, FRAME_REQUEST | FRAME_EVENT | SERIAL_HESSIAN2, 0, 0, STR("\x01R"));
}

static bool is_answer(const json_t *a)
{
    return json_object_get(a, "value") != NULL || json_object_get(a, "null") != NULL ||
           json_object_get(a, "exception") != NULL;
}

/* True when the rest of the list is done later or never. */
static bool run_one(struct stub_conn *k, const struct stub_call *c, json_t *actions, size_t i)
{
    const json_t *a = json_array_get(actions, i);
    bool twice = i > 0 && json_object_get(json_array_get(actions, i - 1), "twice") != NULL;
    const json_t *v = NULL;

    if ((v = json_object_get(a, "delay_ms")) != NULL) {
        run_later(k, c, actions, i + 1, (double)json_integer_value(v) / 1000);
        return true;
    }
    for (int n = 0; n < (twice ? 2 : 1); n++) {
        if (is_answer(a))
            send_answer(k, c->id, a);
        if (json_object_get(a, "status") != NULL)
            send_status(k, c->id, a);
    }
    if ((v = json_object_get(a, "raw")) != NULL || (v = json_object_get(a, "request")) != NULL)
        put_hex(&k->out, json_string_value(v), c->id);
    if (json_object_get(a, "wrong_id") != NULL)
        stub_frame(k, SERIAL_HESSIAN2, STATUS_OK, c->id ^ UINT64_C(0x5555000000000000),
                   STR("\x92"));
    if (json_object_get(a, "readonly") != NULL)
        send_readonly(k, a);
    if (json_object_get(a, "close") != NULL)
        k->closing = true;
    if (json_object_get(a, "deaf") != NULL)
        k->deaf = true;
    if (json_object_get(a, "reset") != NULL) {
        stub_close(k, true);
        return true;
    }
    if ((v = json_object_get(a, "split")) != NULL) {
        size_t asked = (size_t)json_integer_value(v);
        struct buf all = k->out;
        size_t n = asked < all.len ? asked : all.len;

        k->out.len = n;
        stub_flush(k);
        if (!still_open(k->stub, k))
            return true;
        /* what was held back is sent by the timer: as one more raw action */
        char *hex = xcalloc(1, (all.len - n) * 2 + 1);

        for (size_t j = n; j < all.len; j++)
            snprintf(hex + (j - n) * 2, 3, "%02x", all.data[j]);
        json_t *rest = json_array();

        json_array_append_new(rest, json_pack("{s:s}", "raw", hex));
        for (size_t j = i + 1; j < json_array_size(actions); j++)
            json_array_append(rest, json_array_get(actions, j));
        k->slow = true;
        run_later(k, c, rest, 0, (double)json_integer_value(json_object_get(a, "ms")) / 1000);
        json_decref(rest);
        free(hex);
        return true;
    }
    return false;
}

static void run_from(struct stub_conn *k, const struct stub_call *c, json_t *actions, size_t from)
{
    for (size_t i = from; i < json_array_size(actions); i++) {
        if (run_one(k, c, actions, i))
            return;
    }
}

bool script_run(struct stub_conn *k, const struct stub_call *c)
{
    struct stub *s = k->stub;
    char method[256];
    json_t *lists = NULL;
    json_int_t n = 0;

    if (s->script == NULL)
        return false;
    snprintf(method, sizeof(method), STR_FMT, STR_ARG(c->method));
    lists = json_object_get(s->script, method);
    if (lists == NULL && !str_is(c->method, "$heartbeat"))
        lists = json_object_get(s->script, "*");
    if (json_array_size(lists) == 0)
        return false;
    n = json_integer_value(json_object_get(s->counts, method));
    json_object_set_new(s->counts, method, json_integer(n + 1));
    if ((size_t)n >= json_array_size(lists))
        n = (json_int_t)json_array_size(lists) - 1;
    run_from(k, c, json_array_get(lists, (size_t)n), 0);
    return true;
}
