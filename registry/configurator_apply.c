#include <string.h>

#include "registry/configurator.h"

/* ---------------------------------------------------------------- does it apply? */

static struct str *find_param(struct conf_url *u, struct str key)
{
    for (size_t i = 0; i < u->n; i++) {
        if (str_eq(u->params[i].key, key))
            return &u->params[i].value;
    }
    return NULL;
}

static struct str param_of(struct conf_url *u, struct str key)
{
    const struct str *v = find_param(u, key);

    return v != NULL ? *v : STR_NONE;
}

static bool text_matches(const struct conf_match *m, struct str value)
{
    const struct tag_match regex = {.kind = TAG_REGEX, .value = m->regex};

    if (m->exact.n != 0)
        return str_eq(m->exact, value);
    if (m->prefix.n != 0)
        return value.n != 0 && str_starts(value, m->prefix);
    if (m->regex.n != 0)
        return tag_match_value(&regex, value);
    if (m->wildcard.n != 0)
        return str_is(m->wildcard, "*") || str_eq(m->wildcard, value);
    if (m->empty)
        return value.n == 0;
    return m->noempty && value.n != 0;
}

static bool one_matches(const struct conf_match *v, size_t n, struct str value)
{
    for (size_t i = 0; i < n; i++) {
        if (text_matches(&v[i], value))
            return true;
    }
    return n == 0;
}

static bool is_any_of(struct str wanted, struct str value)
{
    return wanted.n == 0 || str_is(wanted, "*") || str_eq(wanted, value);
}

/* From 3.x on a configurator says for which service it is; 2.x goes by the node that it was read from. */
static bool service_matches(const struct configurator *c, const struct refkey *k)
{
    return is_any_of(c->interface, k->interface) &&
           (str_is(c->interface, "*") ||
            ((str_is(c->group, "*") || str_eq(c->group, k->group)) &&
             (str_is(c->version, "*") || str_eq(c->version, k->version))));
}

/* Whose host the configurator names: the provider's when it names a port, else the consumer's. */
static bool host_matches(const struct configurator *c, struct str own_ip, const struct conf_url *u)
{
    struct str host = c->port != 0 ? u->host : own_ip;

    if (c->port != 0 && (c->published || c->port != u->port))
        return false;
    return str_is(c->host, "0.0.0.0") || str_eq(c->host, host);
}

static bool is_listed(const struct configurator *c, const struct conf_url *u)
{
    for (size_t i = 0; i < c->n_provider_addresses; i++) {
        if (rule_address_matches(c->provider_addresses[i], u->host, u->port))
            return true;
    }
    return c->n_provider_addresses == 0;
}

static bool conditions_hold(const struct configurator *c, struct conf_url *u)
{
    for (size_t i = 0; i < c->n_conditions; i++) {
        if (!str_is(c->conditions[i].value, "*") &&
            !str_eq(c->conditions[i].value, param_of(u, c->conditions[i].key)))
            return false;
    }
    for (size_t i = 0; i < c->n_params; i++) {
        if (!text_matches(&c->params[i].value, param_of(u, c->params[i].key)))
            return false;
    }
    return true;
}

static bool address_matches(struct str wildcard, struct str exact, struct str host, uint16_t port)
{
    return (wildcard.n == 0 || str_is(wildcard, "*") ||
            rule_address_matches(wildcard, host, port)) &&
           (exact.n == 0 || rule_address_matches(exact, host, port));
}

static bool service_key_matches(const struct configurator *c, const struct refkey *k)
{
    char text[REFKEY_TEXT_MAX + 8];
    struct buf b = {.data = (uint8_t *)text, .cap = sizeof(text), .limit = sizeof(text)};

    if (c->n_services == 0)
        return true;
    if (k->group.n != 0)
        buf_printf(&b, STR_FMT "/", STR_ARG(k->group));
    buf_add_str(&b, k->interface);
    if (k->version.n != 0)
        buf_printf(&b, ":" STR_FMT, STR_ARG(k->version));
    return one_matches(c->services, c->n_services, buf_str(&b));
}

static bool applies(const struct configurator *c, const struct conf_consumer *me,
                    enum dubbo_line line, struct conf_url *u)
{
    return host_matches(c, me->ip, u) && is_any_of(c->side, STR("consumer")) &&
           is_any_of(c->application, me->application) && is_listed(c, u) && conditions_hold(c, u) &&
           (line < DUBBO_32 || service_matches(c, &me->key)) &&
           address_matches(c->consumer_wildcard, c->consumer_exact, me->ip, 0) &&
           address_matches(c->provider_wildcard, c->provider_exact, u->host, u->port) &&
           one_matches(c->apps, c->n_apps, me->application) && service_key_matches(c, &me->key);
}

/* ---------------------------------------------------------------- writing */

static void write_params(const struct configurator *c, struct conf_url *u)
{
    for (size_t i = 0; i < c->n_sets; i++) {
        struct str *there = find_param(u, c->sets[i].key);

        if (there != NULL && !c->absent)
            *there = c->sets[i].value;
        else if (there == NULL && u->n < u->cap)
            u->params[u->n++] = c->sets[i];
    }
}

void configurators_apply(const struct configurators *c, const struct conf_consumer *consumer,
                         enum dubbo_line line, struct conf_url *u)
{
    for (size_t i = 0; i < c->n; i++) {
        if (applies(&c->v[i], consumer, line, u))
            write_params(&c->v[i], u);
    }
}
