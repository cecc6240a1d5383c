#include "registry/instance.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fatal.h"
#include "registry/url.h"

/* ---------------------------------------------------------------- texts */

/* One part of a path. */
static bool segment_ok(struct str s, size_t max)
{
    return s.n != 0 && s.n <= max && url_text_ok(s) && str_find(s, '/') == s.n && !str_is(s, ".") &&
           !str_is(s, "..");
}

bool app_name_ok(struct str name)
{
    return segment_ok(name, APP_NAME_MAX) && str_find(name, ',') == name.n;
}

bool revision_ok(struct str revision)
{
    return segment_ok(revision, REVISION_MAX);
}

static struct str text_of(const json_t *v)
{
    return json_is_string(v) ? (struct str){json_string_value(v), json_string_length(v)} : STR_NONE;
}

/* What a URL can hold: a '&' would begin another parameter. */
static bool key_ok(struct str key)
{
    return key.n != 0 && url_text_ok(key) && str_find(key, '=') == key.n &&
           str_find(key, '&') == key.n;
}

static bool value_ok(struct str value)
{
    return url_text_ok(value) && str_find(value, '&') == value.n;
}

static void add_param(struct buf *out, struct str key, struct str value)
{
    if (!key_ok(key) || !value_ok(value) || value.n == 0)
        return;
    if (out->len != 0)
        buf_add_u8(out, '&');
    buf_printf(out, STR_FMT "=" STR_FMT, STR_ARG(key), STR_ARG(value));
}

static uint16_t port_of(const json_t *v)
{
    int64_t port = 0;

    if (json_is_integer(v))
        port = json_integer_value(v);
    else if (!str_to_i64(text_of(v), 0, UINT16_MAX, &port))
        port = 0;
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

static json_t *load(struct str text, size_t max, struct err *e)
{
    json_error_t je;
    json_t *o = NULL;

    if (text.n > max) {
        err_set(e, "it is longer than %zu bytes", max);
        return NULL;
    }
    o = json_loadb(text.n != 0 ? text.p : "", text.n, 0, &je);
    if (o == NULL)
        err_set(e, "it is no JSON: %s", je.text);
    return o;
}

/* ---------------------------------------------------------------- instances */

static struct str without_brackets(struct str host)
{
    bool bracketed = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

    return bracketed ? str_sub(host, 1, host.n - 1) : host;
}

/* [{"port":20880,"protocol":"dubbo"}], as a text. */
static void read_endpoints(struct str text, struct arena *a, struct instance *out)
{
    struct err e;
    json_t *list = load(text, INSTANCE_TEXT_MAX, &e);
    size_t n = json_array_size(list);
    struct instance_endpoint *v = NULL;

    if (n > INSTANCE_ENDPOINTS_MAX)
        n = INSTANCE_ENDPOINTS_MAX;
    v = arena_alloc(a, (n + 1) * sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);
        struct str protocol = text_of(json_object_get(o, "protocol"));
        uint16_t port = port_of(json_object_get(o, "port"));

        if (port != 0 && value_ok(protocol))
            v[out->n_endpoints++] = (struct instance_endpoint){arena_str(a, protocol), port};
    }
    out->endpoints = v;
    json_decref(list);
}

/* {"protocol":"dubbo","port":"20880"}; 3.0 wrote {"dubbo":{"port":"20880"}}. */
static uint16_t read_ask_port(struct str text)
{
    struct err e;
    json_t *o = load(text, INSTANCE_TEXT_MAX, &e);
    const json_t *protocol = json_object_get(o, "protocol");
    uint16_t port = 0;

    if (protocol == NULL)
        port = port_of(json_object_get(json_object_get(o, "dubbo"), "port"));
    else if (str_is(text_of(protocol), "dubbo"))
        port = port_of(json_object_get(o, "port"));
    json_decref(o);
    return port;
}

static void read_params(json_t *metadata, struct arena *a, struct instance *out)
{
    struct buf b;
    const char *key = NULL;
    json_t *v = NULL;

    buf_init(&b, URL_MAX);
    json_object_foreach(metadata, key, v)
    {
        struct str k = str_from(key);

        if (!str_starts(k, STR("dubbo.metadata")) && !str_is(k, "dubbo.endpoints"))
            add_param(&b, k, text_of(v));
    }
    if (!b.failed)
        out->params = arena_str(a, buf_str(&b));
    buf_free(&b);
}

static bool read_address(const json_t *o, struct arena *a, struct instance *out, struct err *e)
{
    struct str host = without_brackets(text_of(json_object_get(o, "address")));

    if (!url_host_ok(host)) {
        err_set(e, "its address is neither an address nor a name");
        return false;
    }
    out->host = arena_str(a, host);
    out->port = port_of(json_object_get(o, "port"));
    return true;
}

static bool read_instance(const json_t *o, struct arena *a, struct instance *out, struct err *e)
{
    json_t *metadata = json_object_get(json_object_get(o, "payload"), "metadata");
    struct str revision = text_of(json_object_get(metadata, "dubbo.metadata.revision"));

    if (!read_address(o, a, out, e))
        return false;
    if (revision.n != 0 && !revision_ok(revision)) {
        err_set(e, "its revision cannot be one");
        return false;
    }
    if (!str_is(revision, "0"))
        out->revision = arena_str(a, revision);
    out->remote = str_is(text_of(json_object_get(metadata, "dubbo.metadata.storage-type")),
                         "remote");
    out->ask_port = read_ask_port(
        text_of(json_object_get(metadata, "dubbo.metadata-service.url-params")));
    read_endpoints(text_of(json_object_get(metadata, "dubbo.endpoints")), a, out);
    read_params(metadata, a, out);
    return true;
}

bool instance_parse(struct str json, struct arena *a, struct instance *out, struct err *e)
{
    json_t *o = load(json, INSTANCE_TEXT_MAX, e);
    bool ok = false;

    *out = (struct instance){0};
    if (o != NULL)
        ok = read_instance(o, a, out, e);
    json_decref(o);
    return ok;
}

static struct str put(char **at, struct str s)
{
    struct str copy = {*at, s.n};

    if (s.n != 0)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

struct instance *instance_clone(const struct instance *i)
{
    size_t n_endpoints = i->n_endpoints * sizeof(struct instance_endpoint);
    size_t n = i->host.n + i->revision.n + i->params.n;
    struct instance_endpoint *endpoints = NULL;
    struct instance *c = NULL;
    char *at = NULL;

    for (size_t j = 0; j < i->n_endpoints; j++)
        n += i->endpoints[j].protocol.n;
    c = xcalloc(1, sizeof(*c) + n_endpoints + n + 1);
    *c = *i;
    endpoints = (struct instance_endpoint *)(c + 1);
    at = (char *)(endpoints + i->n_endpoints);
    c->host = put(&at, i->host);
    c->revision = put(&at, i->revision);
    c->params = put(&at, i->params);
    c->endpoints = endpoints;
    for (size_t j = 0; j < i->n_endpoints; j++) {
        endpoints[j].port = i->endpoints[j].port;
        endpoints[j].protocol = put(&at, i->endpoints[j].protocol);
    }
    return c;
}

/* ---------------------------------------------------------------- metadata */

/* Says the service itself, before what the parameters say. */
static struct str own_or_param(const json_t *service, const char *key)
{
    struct str own = text_of(json_object_get(service, key));

    return own.n != 0 ? own : text_of(json_object_get(json_object_get(service, "params"), key));
}

static bool is_own_key(struct str key)
{
    return str_is(key, "interface") || str_is(key, "group") || str_is(key, "version") ||
           str_is(key, "application");
}

static void compose_query(const json_t *service, struct str interface, struct str app,
                          struct buf *out)
{
    json_t *params = json_object_get(service, "params");
    struct str application = text_of(json_object_get(params, "application"));
    const char *key = NULL;
    json_t *v = NULL;

    buf_truncate(out, 0);
    add_param(out, STR("interface"), interface);
    add_param(out, STR("group"), own_or_param(service, "group"));
    add_param(out, STR("version"), own_or_param(service, "version"));
    add_param(out, STR("application"), application.n != 0 ? application : app);
    json_object_foreach(params, key, v)
    {
        if (!is_own_key(str_from(key)))
            add_param(out, str_from(key), text_of(v));
    }
}

/* '?' would end the path, which is why no path can have it. */
static bool path_ok(struct str path)
{
    return path.n != 0 && url_text_ok(path) && str_find(path, '?') == path.n;
}

static struct app_service copy_service(const struct app_service *s, struct arena *a)
{
    return (struct app_service){
        .interface = arena_str(a, s->interface),
        .protocol = arena_str(a, s->protocol),
        .path = arena_str(a, s->path),
        .port = s->port,
        .query = arena_str(a, s->query),
    };
}

bool app_service_ok(const struct app_service *s)
{
    return value_ok(s->interface) && path_ok(s->interface) && path_ok(s->path) &&
           segment_ok(s->protocol, 32) && s->query.n <= URL_MAX && url_text_ok(s->query);
}

static bool read_service(const json_t *o, struct str app, struct arena *a, struct buf *query,
                         struct app_service *out)
{
    struct app_service s = {
        .interface = text_of(json_object_get(o, "name")),
        .protocol = text_of(json_object_get(o, "protocol")),
        .path = text_of(json_object_get(o, "path")),
        .port = port_of(json_object_get(o, "port")),
    };

    if (s.path.n == 0)
        s.path = s.interface;
    compose_query(o, s.interface, app, query);
    s.query = buf_str(query);
    if (query->failed || !app_service_ok(&s))
        return false;
    *out = copy_service(&s, a);
    return true;
}

static int by_interface(const void *a, const void *b)
{
    const struct app_service *x = a;
    const struct app_service *y = b;
    int order = str_cmp(x->interface, y->interface);

    return order != 0 ? order : str_cmp(x->query, y->query);
}

void metadata_sort(struct app_metadata *m)
{
    if (m->n != 0)
        qsort(m->services, m->n, sizeof(*m->services), by_interface);
}

void metadata_copy(const struct app_metadata *from, struct arena *a, struct app_metadata *out)
{
    out->n = from->n;
    out->services = arena_alloc(a, (from->n + 1) * sizeof(*out->services));
    for (size_t i = 0; i < from->n; i++)
        out->services[i] = copy_service(&from->services[i], a);
}

static void read_services(json_t *services, struct str app, struct arena *a,
                          struct app_metadata *out, size_t *skipped)
{
    size_t max = json_object_size(services);
    const char *key = NULL;
    json_t *o = NULL;
    struct buf query;

    buf_init(&query, URL_MAX);
    out->services = arena_alloc(a, (max + 1) * sizeof(*out->services));
    json_object_foreach(services, key, o)
    {
        if (out->n < METADATA_SERVICES_MAX &&
            read_service(o, app, a, &query, &out->services[out->n]))
            out->n++;
        else
            (*skipped)++;
    }
    metadata_sort(out);
    buf_free(&query);
}

bool metadata_parse(struct str json, struct str app, struct arena *a, struct app_metadata *out,
                    size_t *skipped, struct err *e)
{
    json_t *o = load(json, METADATA_TEXT_MAX, e);
    json_t *services = json_object_get(o, "services");
    bool ok = json_is_object(services);

    *out = (struct app_metadata){0};
    *skipped = 0;
    if (ok)
        read_services(services, app, a, out, skipped);
    else if (o != NULL)
        err_set(e, "it has no services");
    json_decref(o);
    return ok;
}

const struct app_service *metadata_find(const struct app_metadata *m, struct str interface,
                                        size_t *n)
{
    size_t from = 0;
    size_t to = m->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (str_cmp(m->services[middle].interface, interface) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *n = 0;
    while (from + *n < m->n && str_eq(m->services[from + *n].interface, interface))
        (*n)++;
    return *n != 0 ? &m->services[from] : NULL;
}

/* ---------------------------------------------------------------- URLs */

static uint16_t port_for(const struct instance *i, const struct app_service *s)
{
    if (s->port != 0)
        return s->port;
    for (size_t j = 0; j < i->n_endpoints; j++) {
        if (str_eq(i->endpoints[j].protocol, s->protocol))
            return i->endpoints[j].port;
    }
    return i->port;
}

static bool has_key(struct str query, struct str key)
{
    while (query.n != 0) {
        struct str value = STR_NONE;
        struct str param = str_cut(query, '&', &query);

        if (str_eq(str_cut(param, '=', &value), key))
            return true;
    }
    return false;
}

void instance_url(const struct instance *i, const struct app_service *s, struct buf *out)
{
    struct str params = i->params;
    uint16_t port = port_for(i, s);

    if (port == 0)
        return;
    buf_printf(out, STR_FMT "://", STR_ARG(s->protocol));
    url_add_host_port(i->host, port, out);
    buf_printf(out, "/" STR_FMT "?" STR_FMT, STR_ARG(s->path), STR_ARG(s->query));
    while (params.n != 0) {
        struct str value = STR_NONE;
        struct str param = str_cut(params, '&', &params);

        if (!has_key(s->query, str_cut(param, '=', &value)))
            buf_printf(out, "&" STR_FMT, STR_ARG(param));
    }
}

/* ---------------------------------------------------------------- mapping */

static bool is_among(struct str name, const struct str *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(v[i], name))
            return true;
    }
    return false;
}

size_t mapping_parse(struct str text, struct str apps[MAPPING_APPS_MAX])
{
    size_t n = 0;

    if (text.n > MAPPING_TEXT_MAX)
        return 0;
    while (text.n != 0 && n < MAPPING_APPS_MAX) {
        struct str name = str_trim(str_cut(text, ',', &text));

        if (app_name_ok(name) && !is_among(name, apps, n))
            apps[n++] = name;
    }
    return n;
}
