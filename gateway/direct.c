#include "gateway/direct.h"

#include <stdio.h>

/* ---------------------------------------------------------------- names */

static bool is_listed(const struct text_list *l, struct str interface, struct str method)
{
    for (size_t i = 0; i < l->n; i++) {
        struct str m = STR_NONE;
        struct str iface = str_cut(l->v[i], '#', &m);

        if (str_glob(iface, interface) && (m.p == NULL || str_glob(m, method)))
            return true;
    }
    return false;
}

/* The same answer whether the service exists or not. */
static bool is_allowed(const struct settings *s, struct str interface, struct str method)
{
    return !is_listed(&s->direct.deny, interface, method) &&
           is_listed(&s->direct.allow, interface, method);
}

/* The two segments behind the prefix; a trailing slash is taken. */
static bool split(const struct settings *s, struct str path, struct arena *a, struct str *interface,
                  struct str *method)
{
    struct str prefix = s->direct.path_prefix;
    struct str rest = STR_NONE;

    while (prefix.n != 0 && prefix.p[prefix.n - 1] == '/')
        prefix.n--;
    if (!str_starts(path, prefix) || path.n <= prefix.n || path.p[prefix.n] != '/')
        return false;
    path = str_sub(path, prefix.n + 1, path.n);
    *interface = str_cut(path, '/', &rest);
    if (rest.n != 0 && rest.p[rest.n - 1] == '/')
        rest.n--;
    *method = rest;
    return interface->n != 0 && method->n != 0 && str_find(*method, '/') == method->n &&
           request_decode(*interface, false, a, interface) &&
           request_decode(*method, false, a, method) && str_find(*interface, '.') < interface->n;
}

static bool is_method_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';

        if (!letter && !(i != 0 && c >= '0' && c <= '9'))
            return false;
    }
    return s.n != 0 && s.n <= 128;
}

/* ---------------------------------------------------------------- version, group, types */

/* A query parameter, else the first of the headers; p == NULL: not given. */
static struct str option(const struct request *r, struct arena *a, const char *query,
                         const char *const *headers, size_t n)
{
    struct str v = STR_NONE;
    bool bad = false;

    if (request_query(r, str_from(query), 0, a, &v, &bad))
        return v;
    v = STR_NONE;
    for (size_t i = 0; i < n && v.p == NULL; i++)
        v = request_header(r, str_from(headers[i]));
    return v;
}

/* Configured under exactly one version and group: then those need not be given. */
static const struct service *only_service(const struct settings *s, struct str interface)
{
    const struct service *found = NULL;

    for (size_t i = 0; i < s->n_services; i++) {
        if (!str_eq(s->services[i].interface, interface))
            continue;
        if (found != NULL)
            return NULL;
        found = &s->services[i];
    }
    return found;
}

static const struct service *exact_service(const struct settings *s, const struct refkey *k)
{
    for (size_t i = 0; i < s->n_services; i++) {
        const struct service *v = &s->services[i];
        struct refkey own;
        struct err e;

        if (refkey_make(v->interface, v->version, v->group, &own, &e) && refkey_eq(&own, k))
            return v;
    }
    return NULL;
}

static bool make_key(const struct settings *s, const struct request *r, struct arena *a,
                     struct str interface, struct direct_match *m, struct problem *p)
{
    static const char *const versions[] = {"tri-service-version", "rest-service-version",
                                           "x-dubbo-service-version"};
    static const char *const groups[] = {"tri-service-group", "rest-service-group",
                                         "x-dubbo-service-group"};
    struct str version = option(r, a, "version", versions, ARRAY_LEN(versions));
    struct str group = option(r, a, "group", groups, ARRAY_LEN(groups));
    const struct service *only = only_service(s, interface);
    struct err e = {0};

    if (version.p == NULL && group.p == NULL && only != NULL) {
        version = only->version;
        group = only->group;
    }
    if (!refkey_make(interface, version, group, &m->key, &e)) {
        problem_set(p, OUTCOME_BAD_REQUEST, "%s", e.text);
        return false;
    }
    m->service = exact_service(s, &m->key);
    m->method_def = m->service != NULL ? service_method(m->service, m->method) : NULL;
    m->policy = m->method_def != NULL ? &m->method_def->policy
                : m->service != NULL  ? &m->service->policy
                                      : &s->defaults;
    return true;
}

static bool parse_types(struct str list, struct arena *a, struct direct_match *m, struct problem *p)
{
    struct jtype *types = NULL;
    size_t n = 1;
    struct err e = {0};

    for (size_t i = 0; i < list.n; i++)
        n += list.p[i] == ',' ? 1U : 0U;
    types = arena_alloc(a, n * sizeof(*types));
    m->n_types = 0;
    while (list.n != 0) {
        struct str one = str_cut(list, ',', &list);

        if (!jtype_parse(one, a, &types[m->n_types++], &e)) {
            problem_set(p, OUTCOME_UNKNOWN_TYPE, "%s", e.text);
            return false;
        }
    }
    m->types = types;
    return true;
}

static bool find_types(const struct request *r, struct arena *a, struct direct_match *m,
                       struct problem *p)
{
    static const char *const headers[] = {"X-Dubbo-Types", "x-dubbo-service-method-overloading"};
    struct str given = option(r, a, "types", headers, ARRAY_LEN(headers));

    if (given.p != NULL && given.n != 0)
        return parse_types(given, a, m, p);
    if (m->method_def != NULL) {
        m->types = m->method_def->types;
        m->n_types = m->method_def->type_names.n;
    }
    return true;
}

enum direct_result direct_match(const struct settings *s, const struct request *r, struct arena *a,
                                struct direct_match *m, struct problem *p)
{
    struct str interface = STR_NONE;
    bool bad = false;

    *m = (struct direct_match){0};
    if (!s->direct.enabled || !split(s, r->path, a, &interface, &m->method))
        return DIRECT_NONE;
    snprintf(p->allow, sizeof(p->allow), "POST, OPTIONS");
    if (str_is(r->method, "OPTIONS"))
        return DIRECT_OPTIONS;
    if (!str_is(r->method, "POST")) { /* nothing runs by a GET that a crawler sends */
        problem_set(p, OUTCOME_METHOD_NOT_ALLOWED, "a direct call is a POST");
        return DIRECT_REFUSED;
    }
    p->allow[0] = '\0';
    if (!is_method_name(m->method) || !is_allowed(s, interface, m->method)) {
        problem_set(p, OUTCOME_NOT_ALLOWED, "this interface or method may not be called directly");
        return DIRECT_REFUSED;
    }
    if (!make_key(s, r, a, interface, m, p) || !find_types(r, a, m, p))
        return DIRECT_REFUSED;
    m->timeout = STR_NONE;
    if (!request_query(r, STR("timeout"), 0, a, &m->timeout, &bad))
        m->timeout = STR_NONE;
    return DIRECT_FOUND;
}
