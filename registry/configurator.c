#include "registry/configurator.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "base/yaml.h"
#include "registry/network.h"

static struct configurator *add(struct configurators *into, struct arena *a)
{
    if (into->n == into->cap) {
        size_t cap = into->cap != 0 ? into->cap * 2 : 8;
        struct configurator *v = arena_alloc(a, cap * sizeof(*v));

        if (into->n != 0)
            memcpy(v, into->v, into->n * sizeof(*v));
        into->v = v;
        into->cap = cap;
    }
    into->v[into->n] = (struct configurator){0};
    return &into->v[into->n++];
}

/* Parameters that say when a configurator applies, or nothing to a consumer: they are not written. */
static bool is_written(struct str key)
{
    static const struct str not [] = {
        STR_INIT("category"),
        STR_INIT("check"),
        STR_INIT("dynamic"),
        STR_INIT("enabled"),
        STR_INIT("group"),
        STR_INIT("version"),
        STR_INIT("application"),
        STR_INIT("side"),
        STR_INIT("configVersion"),
        STR_INIT("interfaces"),
        STR_INIT("compatible_config"),
    };

    for (size_t i = 0; i < ARRAY_LEN(not ); i++) {
        if (str_eq(key, not [i]))
            return false;
    }
    return key.n != 0 && key.p[0] != '~';
}

/* ---------------------------------------------------------------- URLs of 2.6 */

static void take_params(struct configurator *c, const struct url *u, struct arena *a)
{
    c->sets = arena_alloc(a, (u->n_params + 1) * sizeof(*c->sets));
    c->conditions = arena_alloc(a, (u->n_params + 1) * sizeof(*c->conditions));
    for (size_t i = 0; i < u->n_params; i++) {
        const struct url_param *p = &u->params[i];
        const struct url_param copy = {arena_str(a, p->key), arena_str(a, p->value)};

        if (p->key.n > 1 && p->key.p[0] == '~')
            c->conditions[c->n_conditions++] = (struct url_param){str_sub(copy.key, 1, copy.key.n),
                                                                  copy.value};
        else if (is_written(p->key))
            c->sets[c->n_sets++] = copy;
    }
}

static struct str keep(struct arena *a, const struct url *u, const char *name)
{
    return arena_str(a, url_param(u, str_from(name)));
}

enum rule_result configurator_from_url(struct str text, enum dubbo_line line, struct arena *a,
                                       struct configurators *into, struct err *e)
{
    struct url u;
    struct configurator *c = NULL;
    int64_t priority = 0;

    if (!url_parse(text, &u, e))
        return RULE_BAD;
    if (str_is(u.scheme, "empty"))
        return RULE_NONE;
    if (!str_is(u.scheme, "override") && !str_is(u.scheme, "absent")) {
        err_set(e, "\"" STR_FMT "\" is no configurator", STR_ARG(u.scheme));
        return RULE_BAD;
    }
    /* 2.6 had no such switch */
    if (line >= DUBBO_27 && str_is(url_param(&u, STR("enabled")), "false"))
        return RULE_NONE;
    if (into->n >= CONFIGURATORS_MAX) {
        err_set(e, "more than %d configurators", CONFIGURATORS_MAX);
        return RULE_BAD;
    }
    c = add(into, a);
    c->host = arena_str(a, u.host);
    c->port = u.port;
    c->absent = str_is(u.scheme, "absent");
    c->side = keep(a, &u, "side");
    c->application = keep(a, &u, "application");
    c->interface = arena_str(a, u.path);
    c->group = keep(a, &u, "group");
    c->version = keep(a, &u, "version");
    if (str_to_i64(url_param(&u, STR("priority")), INT32_MIN, INT32_MAX, &priority))
        c->priority = (int)priority;
    take_params(c, &u, a);
    return RULE_OK;
}

static int by_host_and_priority(const void *a, const void *b)
{
    const struct configurator *x = a;
    const struct configurator *y = b;
    int order = str_cmp(x->host, y->host);

    return order != 0 ? order : (x->priority > y->priority) - (x->priority < y->priority);
}

void configurators_sort(struct configurators *c)
{
    if (c->n != 0)
        qsort(c->v, c->n, sizeof(*c->v), by_host_and_priority);
}

/* ---------------------------------------------------------------- YAML of 2.7 and 3.x */

static size_t list_len(const struct yaml_node *n)
{
    return n != NULL && n->kind == YAML_LIST ? n->n : 0;
}

static struct conf_match read_match(const struct yaml_node *n)
{
    return (struct conf_match){
        .exact = yaml_text(n, STR("exact")),
        .prefix = yaml_text(n, STR("prefix")),
        .wildcard = yaml_text(n, STR("wildcard")),
        .regex = yaml_text(n, STR("regex")),
        .noempty = yaml_find(n, STR("noempty")) != NULL,
        .empty = yaml_find(n, STR("empty")) != NULL,
    };
}

static struct conf_match *read_one_of(const struct yaml_node *match, const char *name, size_t *n,
                                      struct arena *a)
{
    const struct yaml_node *m = yaml_find(match, str_from(name));
    const struct yaml_node *list = m != NULL ? yaml_find(m, STR("oneof")) : NULL;
    struct conf_match *v = arena_alloc(a, (list_len(list) + 1) * sizeof(*v));

    for (*n = 0; *n < list_len(list); (*n)++)
        v[*n] = read_match(list->values[*n]);
    return v;
}

static void read_matches(struct configurator *c, const struct yaml_node *match, struct arena *a)
{
    const struct yaml_node *address = yaml_find(match, STR("address"));
    const struct yaml_node *provider = yaml_find(match, STR("providerAddress"));
    const struct yaml_node *params = yaml_find(match, STR("param"));

    if (address != NULL) {
        c->consumer_wildcard = yaml_text(address, STR("wildcard"));
        if (c->consumer_wildcard.n == 0)
            c->consumer_wildcard = yaml_text(address, STR("cird")); /* as Dubbo spells it */
        c->consumer_exact = yaml_text(address, STR("exact"));
    }
    if (provider != NULL) {
        c->provider_wildcard = yaml_text(provider, STR("wildcard"));
        if (c->provider_wildcard.n == 0)
            c->provider_wildcard = yaml_text(provider, STR("cird"));
        c->provider_exact = yaml_text(provider, STR("exact"));
    }
    c->apps = read_one_of(match, "app", &c->n_apps, a);
    c->services = read_one_of(match, "service", &c->n_services, a);
    c->params = arena_alloc(a, (list_len(params) + 1) * sizeof(*c->params));
    for (size_t i = 0; i < list_len(params); i++) {
        const struct yaml_node *value = yaml_find(params->values[i], STR("value"));

        c->params[c->n_params].key = yaml_text(params->values[i], STR("key"));
        if (value != NULL)
            c->params[c->n_params++].value = read_match(value);
    }
}

static bool read_sets(struct configurator *c, const struct yaml_node *parameters, struct arena *a,
                      struct err *e)
{
    if (parameters == NULL || parameters->kind != YAML_MAP || parameters->n == 0 ||
        parameters->n > CONFIGURATOR_PARAMS_MAX) {
        err_set(e, "an item without parameters, or with more than %d", CONFIGURATOR_PARAMS_MAX);
        return false;
    }
    c->sets = arena_alloc(a, (parameters->n + 2) * sizeof(*c->sets));
    for (size_t i = 0; i < parameters->n; i++) {
        if (parameters->values[i]->kind == YAML_SCALAR && is_written(parameters->keys[i]->text))
            c->sets[c->n_sets++] = (struct url_param){parameters->keys[i]->text,
                                                      parameters->values[i]->text};
    }
    return true;
}

static void read_providers(struct configurator *c, const struct yaml_node *list, struct arena *a)
{
    struct buf b;

    c->provider_addresses = arena_alloc(a, (list_len(list) + 1) * sizeof(struct str));
    if (list_len(list) == 0)
        return;
    buf_init(&b, URL_MAX);
    for (size_t i = 0; i < list_len(list); i++) {
        c->provider_addresses[c->n_provider_addresses++] = list->values[i]->text;
        if (i != 0)
            buf_add_u8(&b, ',');
        buf_add_str(&b, list->values[i]->text);
    }
    /* Dubbo leaves it in the URL */
    c->sets[c->n_sets++] = (struct url_param){STR("providerAddresses"), arena_str(a, buf_str(&b))};
    buf_free(&b);
}

/* "group/interface:version". */
static void read_service(struct configurator *c, struct str key)
{
    size_t slash = str_find(key, '/');
    struct str rest = key;

    if (slash != key.n) {
        c->group = str_sub(key, 0, slash);
        rest = str_sub(key, slash + 1, key.n);
    }
    c->interface = str_cut(rest, ':', &c->version);
}

/* One item for one consumer address, application and service. */
static void add_item(struct configurators *into, const struct configurator *item, struct str host,
                     struct str application, struct str service, struct arena *a)
{
    struct configurator *c = add(into, a);
    struct str port_text = STR_NONE;
    uint64_t port = 0;

    *c = *item;
    c->host = str_cut(host, ':', &port_text);
    /* "0.0.0.0:*" makes Dubbo give up the rule; what is meant is plain */
    if (str_to_u64(port_text, 65535, &port))
        c->port = (uint16_t)port;
    c->application = application;
    read_service(c, service);
}

static const struct str anywhere = STR_INIT("0.0.0.0");
static const struct str anything = STR_INIT("*");

static struct str nth(const struct yaml_node *list, size_t i, struct str otherwise)
{
    return i < list_len(list) ? list->values[i]->text : otherwise;
}

static bool read_item(struct configurators *into, const struct yaml_node *n, struct str service,
                      struct str application, enum dubbo_line line, struct arena *a, struct err *e)
{
    const struct yaml_node *addresses = yaml_find(n, STR("addresses"));
    const struct yaml_node *services = yaml_find(n, STR("services"));
    const struct yaml_node *applications = yaml_find(n, STR("applications"));
    const struct yaml_node *match = line >= DUBBO_32 ? yaml_find(n, STR("match")) : NULL;
    struct str type = yaml_text(n, STR("type"));
    struct configurator item = {.side = yaml_text(n, STR("side")), .published = true};
    bool typed = type.n != 0 && !str_is(type, "general");

    if (!read_sets(&item, yaml_find(n, STR("parameters")), a, e))
        return false;
    if (!str_is(item.side, "consumer") || (typed && !str_is(yaml_text(n, STR("enabled")), "true")))
        return true;
    read_providers(&item, yaml_find(n, STR("providerAddresses")), a);
    if (match != NULL)
        read_matches(&item, match, a);
    for (size_t i = 0; i == 0 || i < list_len(addresses); i++) {
        struct str host = nth(addresses, i, anywhere);

        for (size_t j = 0; service.n == 0 && (j == 0 || j < list_len(services)); j++)
            add_item(into, &item, host, application, nth(services, j, anything), a);
        for (size_t j = 0; service.n != 0 && (j == 0 || j < list_len(applications)); j++)
            add_item(into, &item, host, nth(applications, j, anything), service, a);
    }
    return into->n < CONFIGURATORS_MAX;
}

enum rule_result configurators_from_yaml(struct str text, enum dubbo_line line, struct arena *a,
                                         struct configurators *into, struct err *e)
{
    enum rule_result r = RULE_OK;
    const struct yaml_node *root = NULL;
    const struct yaml_node *list = NULL;
    bool by_application = false;
    struct str key;

    r = rule_root(text, a, &root, e);
    if (r != RULE_OK)
        return r;
    if (str_is(yaml_text(root, STR("enabled")), "false"))
        return RULE_NONE;
    list = yaml_find(root, STR("configs"));
    key = yaml_text(root, STR("key"));
    by_application = str_is(yaml_text(root, STR("scope")), "application");
    if (list_len(list) == 0 || key.n == 0) {
        err_set(e, "no key or no configs");
        return RULE_BAD;
    }
    for (size_t i = 0; i < list->n; i++) {
        if (!read_item(into, list->values[i], by_application ? STR_NONE : key,
                       by_application ? key : STR_NONE, line, a, e))
            return RULE_BAD;
    }
    return RULE_OK;
}
