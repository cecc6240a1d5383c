/*
 * A provider as text, for the saved lists: its fields, and of its URL what no field holds.
 */
#include <stdlib.h>

#include "base/fatal.h"
#include "registry/provider.h"
#include "registry/url.h"

static void add_text(struct buf *out, const char *key, struct str value)
{
    if (value.n != 0)
        buf_printf(out, "&%s=" STR_FMT, key, STR_ARG(value));
}

static void add_number(struct buf *out, const char *key, uint64_t value, uint64_t unless)
{
    if (value != unless)
        buf_printf(out, "&%s=%llu", key, (unsigned long long)value);
}

static void add_method_text(struct buf *out, struct str method, const char *key, struct str value)
{
    if (value.n != 0)
        buf_printf(out, "&" STR_FMT "%s%s=" STR_FMT, STR_ARG(method), method.n != 0 ? "." : "", key,
                   STR_ARG(value));
}

static void print_method_params(const struct provider *p, struct buf *out)
{
    for (size_t i = 0; i < p->n_method_params; i++) {
        const struct method_param *m = &p->params->methods[i];

        if (m->timeout_ms != 0)
            buf_printf(out, "&" STR_FMT ".timeout=%u", STR_ARG(m->method), m->timeout_ms);
        if (m->weight >= 0)
            buf_printf(out, "&" STR_FMT ".weight=%d", STR_ARG(m->method), m->weight);
        add_method_text(out, m->method, "loadbalance", m->loadbalance);
        add_method_text(out, m->method, "hash.arguments", m->hash_arguments);
        if (m->hash_nodes != 0)
            buf_printf(out, "&" STR_FMT "%shash.nodes=%u", STR_ARG(m->method),
                       m->method.n != 0 ? "." : "", m->hash_nodes);
    }
}

/* The interface is told once when it is the path.  It went into the path if that holds a '?', which no
 * path can. */
static void print_names(const struct provider *p, struct buf *out)
{
    bool in_path = str_find(p->path, '?') == p->path.n;

    if (in_path) {
        buf_add_u8(out, '/');
        buf_add_str(out, p->path);
    }
    buf_add_str(out, STR("?side=provider"));
    if (!in_path || !str_eq(p->path, p->interface))
        add_text(out, "interface", p->interface);
}

/* A URL that is being printed. */
struct printed {
    struct buf *out;
    size_t from;
    size_t n_params;
};

/* Fields may take more room than they had in the URL: what does not fit is left out. */
static void add_param(struct printed *to, struct str key, struct str value)
{
    if (to->n_params >= URL_PARAMS_MAX || to->out->len - to->from + key.n + value.n + 2 > URL_MAX)
        return;
    buf_printf(to->out, "&" STR_FMT "=" STR_FMT, STR_ARG(key), STR_ARG(value));
    to->n_params++;
}

static void print_others(const struct provider *p, struct printed *to)
{
    struct str rest = p->params != NULL ? p->params->others : STR_NONE;

    while (rest.n != 0) {
        struct str value = STR_NONE;
        struct str key = str_cut(str_cut(rest, '&', &rest), '=', &value);

        add_param(to, key, value);
    }
}

static void print_fields(const struct provider *p, struct buf *out)
{
    buf_add_str(out, STR("dubbo://"));
    url_add_host_port(p->host, p->port, out);
    print_names(p, out);
    add_text(out, "version", p->version);
    add_text(out, "group", p->group);
    add_text(out, "release", p->release);
    add_text(out, "application", p->application);
    add_text(out, "token", p->token);
    add_text(out, "loadbalance", p->loadbalance);
    add_text(out, "dubbo.tag", p->tag);
    add_text(out, "methods", p->methods);
    add_number(out, "timeout", p->timeout_ms, 0);
    add_number(out, "weight", p->weight, PROVIDER_WEIGHT);
    add_number(out, "warmup", p->warmup_ms, PROVIDER_WARMUP_MS);
    add_number(out, "timestamp", p->timestamp_ms, 0);
    if (p->payload == UINT32_MAX)
        add_text(out, "payload", STR("-1"));
    else
        add_number(out, "payload", p->payload, PROVIDER_PAYLOAD);
    add_number(out, "heartbeat", p->heartbeat_ms, 0);
    add_number(out, "connections", p->connections, 0);
    add_text(out, "dynamic", p->dynamic ? STR_NONE : STR("false"));
    add_text(out, "deprecated", p->deprecated ? STR("true") : STR_NONE);
    print_method_params(p, out);
}

void provider_print(const struct provider *p, const struct url_param *more, size_t n_more,
                    struct buf *out)
{
    struct printed to = {.out = out, .from = out->len, .n_params = 1};

    ASSERT(p->unusable == USABLE || p->unusable == UNUSABLE_ADDRESS);
    print_fields(p, out);
    for (size_t i = to.from; i < out->len; i++)
        to.n_params += out->data[i] == '&' ? 1 : 0;
    print_others(p, &to);
    for (size_t i = 0, n = out->len; i < n_more; i++) {
        if (url_peek(str_sub(buf_str(out), to.from, n), more[i].key).n == 0)
            add_param(&to, more[i].key, more[i].value);
    }
}

/* ---------------------------------------------------------------- what is not kept */

/* Of fields, and what the framework writes into every URL, in order. */
static const char *const known[] = {
    "anyhost",
    "application",
    "background",
    "bean.name",
    "bind.ip",
    "bind.port",
    "category",
    "connections",
    "default.deprecated",
    "default.dynamic",
    "default.group",
    "default.heartbeat",
    "default.loadbalance",
    "default.payload",
    "default.timeout",
    "default.token",
    "default.version",
    "default.warmup",
    "default.weight",
    "deprecated",
    "disabled",
    "dubbo",
    "dubbo.tag",
    "dynamic",
    "enabled",
    "executor-management-mode",
    "ext.protocol",
    "file-cache",
    "generic",
    "group",
    "heartbeat",
    "interface",
    "ipv6",
    "loadbalance",
    "metadata-type",
    "methods",
    "payload",
    "pid",
    "prefer.serialization",
    "release",
    "revision",
    "serialization",
    "service-name-mapping",
    "side",
    "ssl-enabled",
    "timeout",
    "timestamp",
    "token",
    "version",
    "warmup",
    "weight",
};

static int by_name(const void *key, const void *name)
{
    return str_cmp(*(const struct str *)key, str_from(*(const char *const *)name));
}

bool provider_param_is_known(struct str key)
{
    return bsearch(&key, known, ARRAY_LEN(known), sizeof(known[0]), by_name) != NULL;
}
