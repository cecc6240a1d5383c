#include "gateway/direct.h"

#include <stdio.h>

#include "codec/utf.h"

enum { TYPES_MAX = 64 };

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

/* The same answer whether the service exists or not.  The names are checked first: a pattern of the
 * operator's must never meet something that is no Java name. */
static bool is_allowed(const struct settings *s, struct str interface, struct str method)
{
    struct refkey k;
    struct err e = {0};

    return refkey_make(interface, STR_NONE, STR_NONE, &k, &e) && is_method_name(method) &&
           !is_listed(&s->direct.deny, interface, method) &&
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

/* ---------------------------------------------------------------- version, group, types */

static const char *const version_headers[] = {"tri-service-version", "rest-service-version",
                                              "x-dubbo-service-version", NULL};
static const char *const group_headers[] = {"tri-service-group", "rest-service-group",
                                            "x-dubbo-service-group", NULL};
static const char *const type_headers[] = {"X-Dubbo-Types", "x-dubbo-service-method-overloading",
                                           NULL};
static const char *const no_headers[] = {NULL};

/* All of those headers begin with t, r or x; most requests have no such header at all. */
static bool may_have_options(const struct request *r)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        char c = r->headers[i].name.n != 0 ? (char)(r->headers[i].name.p[0] | 0x20) : '\0';

        if (c == 't' || c == 'r' || c == 'x')
            return true;
    }
    return false;
}

/* A query parameter, else the first of the headers; p == NULL: not given.  False: the problem is set. */
static bool option(const struct request *r, struct arena *a, const char *query,
                   const char *const *headers, struct str *v, struct problem *p)
{
    bool bad = false;

    if (request_query(r, str_from(query), 0, a, v, &bad))
        return true;
    *v = STR_NONE;
    if (bad) {
        problem_set(p, OUTCOME_BAD_REQUEST, "query.%s: bad percent-encoding", query);
        snprintf(p->source, sizeof(p->source), "query.%s", query);
        return false;
    }
    if (!may_have_options(r))
        return true;
    for (; *headers != NULL && v->p == NULL; headers++)
        *v = request_header(r, str_from(*headers));
    return true;
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

        if (refkey_eq(&v->key, k))
            return v;
    }
    return NULL;
}

static bool make_key(const struct settings *s, const struct request *r, struct arena *a,
                     struct str interface, struct direct_match *m, struct problem *p)
{
    struct str version = STR_NONE;
    struct str group = STR_NONE;
    const struct service *only = only_service(s, interface);
    struct err e = {0};

    if (!option(r, a, "version", version_headers, &version, p) ||
        !option(r, a, "group", group_headers, &group, p))
        return false;
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

/* Up to the next comma that is not inside <…>; rest->p is NULL behind the last one. */
static struct str cut_type(struct str list, struct str *rest)
{
    size_t depth = 0;

    for (size_t i = 0; i < list.n; i++) {
        char c = list.p[i];

        depth += c == '<' ? 1U : 0U;
        depth -= c == '>' && depth != 0 ? 1U : 0U;
        if (c == ',' && depth == 0) {
            *rest = (struct str){list.p + i + 1, list.n - i - 1};
            return str_sub(list, 0, i);
        }
    }
    *rest = STR_NONE;
    return list;
}

/* java.util.List<x.Dto>[] is java.util.List[] at run time: what clients copy from Java sources must not be
 * sent as it is, the provider would look for a class of that name.  False: the brackets do not pair. */
static bool erase_generics(struct str *type, struct arena *a)
{
    size_t from = str_find(*type, '<');
    size_t to = from;
    size_t depth = 0;
    char *erased = NULL;
    struct str tail;

    if (from == type->n)
        return true;
    do {
        depth += type->p[to] == '<' ? 1U : 0U;
        depth -= type->p[to] == '>' ? 1U : 0U;
        to++;
    } while (to < type->n && depth != 0);
    tail = str_sub(*type, to, type->n);
    if (depth != 0 || str_find(tail, '<') != tail.n)
        return false;
    erased = arena_alloc(a, from + tail.n + 1);
    __builtin_memcpy(erased, type->p, from);
    if (tail.n != 0)
        __builtin_memcpy(erased + from, tail.p, tail.n);
    *type = (struct str){erased, from + tail.n};
    return true;
}

static bool parse_types(struct str list, struct arena *a, struct direct_match *m, struct problem *p)
{
    struct jtype *types = NULL;
    struct err e = {0};
    size_t n = 1;

    for (size_t i = 0; i < list.n && n <= TYPES_MAX; i++)
        n += list.p[i] == ',' ? 1U : 0U;
    if (n > TYPES_MAX) {
        problem_set(p, OUTCOME_ARGUMENT_COUNT, "more than %d parameter types", TYPES_MAX);
        return false;
    }
    types = arena_alloc(a, n * sizeof(*types));
    m->types = types;
    m->n_types = 0;
    while (list.p != NULL) {
        struct str one = str_trim(cut_type(list, &list));
        struct str erased = one;

        if (!erase_generics(&erased, a)) {
            problem_set(p, OUTCOME_UNKNOWN_TYPE, "\"" STR_FMT "\" is not a Java type",
                        STR_ARG(utf_cut(one, 64)));
            return false;
        }
        if (!jtype_parse(erased, a, &types[m->n_types++], &e)) {
            problem_set(p, OUTCOME_UNKNOWN_TYPE, "%s", e.text);
            return false;
        }
    }
    return true;
}

static bool find_types(const struct request *r, struct arena *a, struct direct_match *m,
                       struct problem *p)
{
    struct str given = STR_NONE;

    if (!option(r, a, "types", type_headers, &given, p))
        return false;
    if (given.n != 0)
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
    if (!is_allowed(s, interface, m->method)) {
        problem_set(p, OUTCOME_NOT_ALLOWED, "this interface or method may not be called directly");
        return DIRECT_REFUSED;
    }
    if (!make_key(s, r, a, interface, m, p) || !find_types(r, a, m, p) ||
        !option(r, a, "timeout", no_headers, &m->timeout, p))
        return DIRECT_REFUSED;
    return DIRECT_FOUND;
}
