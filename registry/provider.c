#include "registry/provider.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/routing.h"
#include "registry/rules.h"
#include "registry/url.h"

static const char *const unusable_names[UNUSABLE_REASONS] = {
    [USABLE] = "usable",
    [UNUSABLE_PROTOCOL] = "protocol",
    [UNUSABLE_SERIALIZATION] = "serialization",
    [UNUSABLE_DISABLED] = "disabled",
    [UNUSABLE_TLS] = "tls",
    [UNUSABLE_ADDRESS] = "address",
};

const char *unusable_name(enum unusable u)
{
    return (unsigned)u < UNUSABLE_REASONS ? unusable_names[u] : "?";
}

const char *provider_found_name(const struct provider *p)
{
    if (p->found == FOUND_CONFIGURATION)
        return "configuration";
    if (p->found == (FOUND_INTERFACE | FOUND_INSTANCE))
        return "both";
    if (p->found == FOUND_INSTANCE)
        return "instance";
    return p->found == FOUND_INTERFACE ? "interface" : "saved";
}

/* A Java int; `absent` when missing, no number or out of range, as nobody can mean that. */
static int32_t to_int(struct str value, int32_t absent)
{
    int64_t v = 0;

    return str_to_i64(value, INT32_MIN, INT32_MAX, &v) ? (int32_t)v : absent;
}

static uint32_t to_positive(struct str value, int32_t absent)
{
    int32_t v = to_int(value, absent);

    return v > 0 ? (uint32_t)v : 0;
}

static bool is_true(struct str value)
{
    return str_eq_nocase(value, STR("true"));
}

static bool is_false(struct str value)
{
    return str_eq_nocase(value, STR("false"));
}

static bool list_contains(struct str list, struct str item)
{
    while (list.n != 0) {
        struct str rest = STR_NONE;

        if (str_eq(str_trim(str_cut(list, ',', &rest)), item))
            return true;
        list = rest;
    }
    return false;
}

static struct str without_zero_version(struct str version)
{
    return str_is(version, "0.0.0") ? STR_NONE : version;
}

/*
 * Other schemes are callable where the port takes Dubbo too (3.3 says so by ext.protocol).  From 2.7 on
 * a provider takes Hessian2 whatever `serialization` says; 2.6, which has no `release`, answers in its
 * own one (docs/PROTOCOL.md section 2).
 */
static enum unusable judge(const struct url *u)
{
    struct str serialization = url_param(u, STR("serialization"));

    if (!str_is(u->scheme, "dubbo") &&
        !list_contains(url_param(u, STR("ext.protocol")), STR("dubbo")))
        return UNUSABLE_PROTOCOL;
    if (is_true(url_param(u, STR("disabled"))) || is_false(url_param(u, STR("enabled"))))
        return UNUSABLE_DISABLED;
    if (is_true(url_param(u, STR("ssl-enabled"))))
        return UNUSABLE_TLS;
    if (serialization.n != 0 && !str_is(serialization, "hessian2") &&
        url_param(u, STR("release")).n == 0)
        return UNUSABLE_SERIALIZATION;
    return USABLE;
}

/* A URL's parameters before configurators were written over them; v NULL: none were. */
struct original {
    const struct url_param *v;
    size_t n;
};

/* What they wrote is another text. */
static bool is_written(const struct url *u, size_t i, const struct original *was)
{
    return was->v != NULL && (i >= was->n || u->params[i].value.p != was->v[i].value.p);
}

/* One parameter METHOD.KEY, or hash.KEY; `order` makes later ones win. */
struct found {
    struct method_param m;
    bool plain; /* not default.METHOD.… */
    size_t order;
};

static bool find_method_param(const struct url_param *p, struct found *out)
{
    struct str key = p->key;
    struct str value = str_trim(p->value);
    size_t dot = 0;

    *out = (struct found){.plain = !str_starts(key, STR("default.")), .m.weight = -1};
    if (!out->plain)
        key = str_sub(key, sizeof("default.") - 1, key.n);
    if (!str_is(key, "hash.nodes") && !str_is(key, "hash.arguments")) {
        dot = str_find(key, '.');
        out->m.method = str_sub(key, 0, dot);
        key = str_sub(key, dot + 1, key.n);
        if (out->m.method.n == 0)
            return false;
    }
    if (str_is(key, "timeout"))
        out->m.timeout_ms = to_positive(value, 0);
    else if (str_is(key, "weight"))
        out->m.weight = to_int(value, INT32_MIN) == INT32_MIN ? -1 : (int32_t)to_positive(value, 0);
    else if (str_is(key, "hash.nodes"))
        out->m.hash_nodes = to_positive(value, 0);
    else if (str_is(key, "hash.arguments"))
        out->m.hash_arguments = value;
    else if (str_is(key, "loadbalance"))
        out->m.loadbalance = value;
    return out->m.timeout_ms != 0 || out->m.weight >= 0 || out->m.hash_nodes != 0 ||
           out->m.hash_arguments.n != 0 || out->m.loadbalance.n != 0;
}

static int by_method(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;
    int order = str_cmp(x->m.method, y->m.method);

    if (order != 0)
        return order;
    if (x->plain != y->plain)
        return x->plain ? 1 : -1;
    return x->order < y->order ? -1 : 1;
}

/* Into `to`, which has room for all of them; returns how many it made of them. */
static size_t merge_method_params(struct found *all, size_t n, struct arena *a,
                                  struct method_param *to)
{
    size_t used = 0;

    qsort(all, n, sizeof(*all), by_method);
    for (size_t i = 0; i < n; i++) {
        const struct method_param *m = &all[i].m;

        if (used == 0 || !str_eq(to[used - 1].method, m->method))
            to[used++] = (struct method_param){.method = arena_str(a, m->method), .weight = -1};
        if (m->timeout_ms != 0) {
            to[used - 1].timeout_ms = m->timeout_ms;
            to[used - 1].timeout_written = m->timeout_written;
        }
        if (m->weight >= 0)
            to[used - 1].weight = m->weight;
        if (m->hash_nodes != 0)
            to[used - 1].hash_nodes = m->hash_nodes;
        if (m->hash_arguments.n != 0)
            to[used - 1].hash_arguments = arena_str(a, m->hash_arguments);
        if (m->loadbalance.n != 0)
            to[used - 1].loadbalance = arena_str(a, m->loadbalance);
    }
    return used;
}

/* Method parameters sorted by method, plain ones before default ones, the last of several; and the others. */
static void read_params(const struct url *u, const struct original *was, struct arena *a,
                        struct provider *out)
{
    struct found all[URL_PARAMS_MAX];
    struct provider_params *to = NULL;
    struct buf others;
    size_t n = 0;

    buf_init(&others, 2 * URL_MAX);
    for (size_t i = 0; i < u->n_params; i++) {
        const struct url_param *p = &u->params[i];

        if (find_method_param(p, &all[n])) {
            all[n].order = i;
            all[n++].m.timeout_written = is_written(u, i, was);
        } else if (!provider_param_is_known(p->key)) {
            buf_printf(&others, "%s" STR_FMT "=" STR_FMT, others.len != 0 ? "&" : "",
                       STR_ARG(p->key), STR_ARG(p->value));
        }
    }
    if (n != 0 || others.len != 0) {
        to = arena_alloc(a, sizeof(*to) + n * sizeof(*to->methods));
        to->others = arena_str(a, buf_str(&others));
        out->n_method_params = (uint16_t)merge_method_params(all, n, a, to->methods);
        out->params = to;
    }
    buf_free(&others);
}

static struct str copy(struct arena *a, struct str s)
{
    return s.n != 0 ? arena_str(a, s) : STR_NONE;
}

static void read_texts(const struct url *u, struct arena *a, struct provider *out)
{
    struct str interface = url_param(u, STR("interface"));

    if (interface.n == 0)
        interface = u->path;
    out->host = copy(a, u->host);
    out->interface = copy(a, interface);
    out->path = u->path.n == 0 || str_eq(u->path, interface) ? out->interface : copy(a, u->path);
    out->version = copy(a, without_zero_version(url_param(u, STR("version"))));
    out->group = copy(a, url_param(u, STR("group")));
    out->release = copy(a, url_param(u, STR("release")));
    out->application = copy(a, url_param(u, STR("application")));
    out->token = copy(a, url_param(u, STR("token")));
    out->loadbalance = copy(a, url_param(u, STR("loadbalance")));
    out->tag = copy(a, url_param(u, STR("dubbo.tag")));
    out->methods = copy(a, url_param(u, STR("methods")));
}

static void read_numbers(const struct url *u, struct provider *out)
{
    int32_t payload = to_int(url_param(u, STR("payload")), PROVIDER_PAYLOAD);
    uint32_t connections = to_positive(url_param(u, STR("connections")), 0);
    uint64_t timestamp = 0;

    if (!str_to_u64(url_param(u, STR("timestamp")), INT64_MAX, &timestamp))
        timestamp = 0;
    out->port = u->port;
    out->timeout_ms = to_positive(url_param(u, STR("timeout")), 0);
    out->weight = to_positive(url_param(u, STR("weight")), PROVIDER_WEIGHT);
    out->warmup_ms = to_positive(url_param(u, STR("warmup")), PROVIDER_WARMUP_MS);
    out->timestamp_ms = timestamp;
    out->payload = payload > 0 ? (uint32_t)payload : UINT32_MAX; /* 0 and less: no limit */
    out->heartbeat_ms = to_positive(url_param(u, STR("heartbeat")), 0);
    out->connections = connections < UINT16_MAX ? (uint16_t)connections : UINT16_MAX;
    out->dynamic = !is_false(url_param(u, STR("dynamic")));
    out->deprecated = is_true(url_param(u, STR("deprecated")));
}

static bool is_provider(const struct url *u, struct err *e)
{
    struct str category = url_param(u, STR("category"));

    if (!url_host_ok(u->host)) {
        err_set(e, "host is neither an address nor a name");
        return false;
    }
    if (u->port == 0) {
        err_set(e, "no port");
        return false;
    }
    if (category.n != 0 && !str_is(category, "providers")) {
        err_set(e, "category \"" STR_FMT "\" is not providers", STR_ARG(str_sub(category, 0, 40)));
        return false;
    }
    return true;
}

static void read_provider(const struct url *u, const struct original *was, struct arena *a,
                          struct provider *out)
{
    *out = (struct provider){.unusable = judge(u), .addr.sa.sa_family = AF_UNSPEC};
    read_texts(u, a, out);
    read_numbers(u, out);
    read_params(u, was, a, out);
    for (size_t i = 0; i < u->n_params; i++) {
        if (str_is(u->params[i].key, "timeout"))
            out->timeout_written = is_written(u, i, was);
    }
}

bool provider_from_url(struct str url, struct arena *a, struct provider *out, struct err *e)
{
    struct url u;

    if (!url_parse(url, &u, e) || !is_provider(&u, e))
        return false;
    read_provider(&u, &(const struct original){0}, a, out);
    return true;
}

static void read_party(const struct url *u, struct arena *a, struct routing_party *out)
{
    struct url_param *params = arena_alloc(a, (u->n_params + 1) * sizeof(*params));

    memcpy(params, u->params, u->n_params * sizeof(*params));
    *out = (struct routing_party){.protocol = u->scheme,
                                  .host = u->host,
                                  .port = u->port,
                                  .path = u->path,
                                  .params = params,
                                  .n_params = u->n_params};
}

bool provider_from_url_under(struct str url, const struct ruleset *rules,
                             const struct conf_consumer *consumer, struct arena *a,
                             struct provider *out, struct routing_party *party, struct err *e)
{
    struct url u;
    struct conf_url c;
    struct url_param *before = NULL;

    if (!url_parse(url, &u, e) || !is_provider(&u, e))
        return false;
    before = arena_alloc(a, (u.n_params + 1) * sizeof(*before));
    memcpy(before, u.params, u.n_params * sizeof(*before));
    c = (struct conf_url){u.host, u.port, u.params, u.n_params, URL_PARAMS_MAX};
    for (size_t i = 0; i < rules->n; i++)
        configurators_apply(&rules->v[i].rules->overrides, consumer, DUBBO_33, &c);
    const struct original was = {before, u.n_params};

    u.n_params = c.n;
    read_provider(&u, &was, a, out);
    if (party != NULL)
        read_party(&u, a, party);
    return true;
}

/* '*' and lists select among providers; a fixed address has nothing to select from. */
static struct str fixed(struct str selector)
{
    bool selects = str_find(selector, '*') != selector.n || str_find(selector, ',') != selector.n;

    return selects ? STR_NONE : selector;
}

bool provider_from_address(struct str text, const struct refkey *k, struct arena *a,
                           struct provider *out, struct err *e)
{
    if (!str_contains(text, STR("://")))
        text = arena_printf(a, "dubbo://" STR_FMT, STR_ARG(text));
    if (!provider_from_url(text, a, out, e))
        return false;
    if (out->interface.n == 0)
        out->interface = arena_str(a, k->interface);
    if (out->path.n == 0)
        out->path = out->interface;
    if (out->version.n == 0)
        out->version = copy(a, fixed(k->version));
    if (out->group.n == 0)
        out->group = copy(a, fixed(k->group));
    return true;
}

/* Also what a Dubbo consumer does not do: 0.0.0 and no version are the same. */
bool provider_matches(const struct provider *p, const struct refkey *k)
{
    struct str version = without_zero_version(k->version);

    if (!str_eq(p->interface, k->interface) && !str_is(p->interface, "*"))
        return false;
    if (!str_is(version, "*") && !str_eq(version, without_zero_version(p->version)))
        return false;
    return str_is(k->group, "*") || str_eq(k->group, p->group) ||
           (p->group.n != 0 && list_contains(k->group, p->group));
}

int provider_compare(const struct provider *a, const struct provider *b)
{
    int order = str_cmp(a->host, b->host);

    if (order == 0)
        order = (a->port > b->port) - (a->port < b->port);
    if (order == 0)
        order = str_cmp(a->path, b->path);
    if (order == 0)
        order = str_cmp(a->group, b->group);
    return order != 0 ? order : str_cmp(a->version, b->version);
}

bool provider_same(const struct provider *a, const struct provider *b)
{
    return a->port == b->port && str_eq(a->host, b->host) && str_eq(a->path, b->path) &&
           str_eq(a->group, b->group) && str_eq(a->version, b->version);
}

static const struct method_param *search_method(const struct provider *p, struct str method)
{
    size_t from = 0;
    size_t to = p->n_method_params;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = str_cmp(method, p->params->methods[middle].method);

        if (order == 0)
            return &p->params->methods[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

/* Most have none; every call asks it of every candidate. */
static inline const struct method_param *find_method(const struct provider *p, struct str method)
{
    return p->n_method_params != 0 ? search_method(p, method) : NULL;
}

uint32_t provider_timeout_ms(const struct provider *p, struct str method, bool *written)
{
    const struct method_param *m = find_method(p, method);
    bool own = m != NULL && m->timeout_ms != 0;

    *written = own ? m->timeout_written : p->timeout_written;
    return own ? m->timeout_ms : p->timeout_ms;
}

/*
 * The arithmetic is Dubbo's, in float as there, so that the shares are the same.  A provider whose clock
 * is ahead of ours counts as just started, as in 2.7 and 3.x; ahead by more than a warm-up the clock is
 * simply wrong and the weight is full, else such a provider would starve for as long as it is wrong.
 */
static uint32_t warm_up(uint32_t weight, uint32_t warmup_ms, uint64_t since_ms, uint64_t now_ms)
{
    uint64_t distance = now_ms > since_ms ? now_ms - since_ms : since_ms - now_ms;
    float share = 0;

    if (since_ms == 0 || distance >= warmup_ms)
        return weight;
    if (now_ms <= since_ms)
        return 1;
    share = (float)distance / ((float)warmup_ms / (float)weight);
    if (share < 1)
        return 1;
    return share < (float)weight ? (uint32_t)share : weight;
}

uint32_t provider_weight(const struct provider *p, struct str method, uint64_t wall_now_ms)
{
    const struct method_param *m = find_method(p, method);
    uint32_t weight = m != NULL && m->weight >= 0 ? (uint32_t)m->weight : p->weight;

    return weight != 0 ? warm_up(weight, p->warmup_ms, p->timestamp_ms, wall_now_ms) : 0;
}

struct str provider_loadbalance(const struct provider *p, struct str method)
{
    const struct method_param *m = find_method(p, method);

    return m != NULL && m->loadbalance.n != 0 ? m->loadbalance : p->loadbalance;
}

void provider_hash(const struct provider *p, struct str method, uint32_t *nodes,
                   struct str *arguments)
{
    const struct method_param *of_method = find_method(p, method);
    const struct method_param *of_all = find_method(p, STR_NONE);

    *nodes = of_method != NULL ? of_method->hash_nodes : 0;
    *arguments = of_method != NULL ? of_method->hash_arguments : STR_NONE;
    if (*nodes == 0 && of_all != NULL)
        *nodes = of_all->hash_nodes;
    if (arguments->n == 0 && of_all != NULL)
        *arguments = of_all->hash_arguments;
}
