#include "gateway/settings_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/provider.h"
#include "registry/registry.h"
#include "gateway/balance.h"
#include "gateway/cluster.h"
#include "gateway/keys_row.h"
#include "gateway/listen.h"
#include "gateway/request.h"
#include "gateway/route.h"

#define AT(node) (node)->line, (node)->column

/* ---------------------------------------------------------------- finding the place of a value */

/* Node number `i` of a list of blocks at the top. */
static const struct yaml_node *block(const struct settings *s, const char *section, size_t i)
{
    const struct yaml_node *list = yaml_find(s->root, str_from(section));

    return list != NULL && list->kind == YAML_LIST && i < list->n ? list->values[i] : s->root;
}

static const struct yaml_node *place(const struct yaml_node *b, const char *key)
{
    const struct yaml_node *v = b->kind == YAML_MAP ? yaml_find(b, str_from(key)) : NULL;

    return v != NULL ? v : b;
}

static const struct yaml_node *item(const struct yaml_node *list, size_t i)
{
    return list->kind == YAML_LIST && i < list->n ? list->values[i] : list;
}

/* ---------------------------------------------------------------- policies */

static int32_t offset_seconds(struct str zone)
{
    int64_t h = 0;
    int64_t m = 0;

    if (zone.n != 6 || !str_to_i64(str_sub(zone, 1, 3), 0, 18, &h) ||
        !str_to_i64(str_sub(zone, 4, 6), 0, 59, &m))
        return 0;
    return (int32_t)((h * 3600 + m * 60) * (zone.p[0] == '-' ? -1 : 1));
}

/* What a block inherits is told where it is written. */
static bool is_said(const struct key_context *c, const struct yaml_node *b, const char *one,
                    const char *other)
{
    const struct yaml_node *defaults = yaml_find(c->s->root, STR("defaults"));

    return b == c->s->root || b == defaults || place(b, one) != b || place(b, other) != b;
}

static bool is_framing(struct str name)
{
    static const char *const ours[] = {
        "Connection", "Content-Length",    "Date",    "Keep-Alive",  "TE",
        "Trailer",    "Transfer-Encoding", "Upgrade", "X-Request-Id"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (str_eq_nocase(name, str_from(ours[i])))
            return true;
    }
    return false;
}

static void check_headers(struct key_context *c, const struct text_map *m,
                          const struct yaml_node *b)
{
    const struct yaml_node *at = place(place(b, "response"), "headers");

    if (at == place(b, "response") || at == b)
        return; /* inherited */
    for (size_t i = 0; i < m->n; i++) {
        if (!header_name_ok(m->v[i].name))
            config_error(c->errs, AT(at), "\"headers\": \"" STR_FMT "\" is no header name",
                         STR_ARG(m->v[i].name));
        else if (is_framing(m->v[i].name))
            config_error(c->errs, AT(at), "\"headers\": " STR_FMT " is set by the gateway itself",
                         STR_ARG(m->v[i].name));
        else if (!header_value_ok(m->v[i].value))
            config_error(c->errs, AT(at),
                         "\"headers\": the value of " STR_FMT " holds control bytes",
                         STR_ARG(m->v[i].name));
    }
}

/* "0,2", as a provider's URL writes it. */
static struct str join(struct key_context *c, const struct text_list *l)
{
    struct str all = STR_NONE;

    for (size_t i = 0; i < l->n; i++)
        all = arena_printf(c->a, STR_FMT "%s" STR_FMT, STR_ARG(all), i != 0 ? "," : "",
                           STR_ARG(l->v[i]));
    return all;
}

/* What the form check has refused stays empty. */
static struct source *parse_sources(struct key_context *c, const struct text_list *texts)
{
    struct source *v = arena_alloc(c->a, (texts->n + 1) * sizeof(*v));

    for (size_t i = 0; i < texts->n; i++) {
        if (!keys_parse_source(texts->v[i], &v[i]))
            v[i] = (struct source){.kind = SOURCE_CONST};
    }
    return v;
}

static void resolve_policy(struct key_context *c, struct policy *p, const struct yaml_node *b)
{
    const struct response_policy *r = &p->response;

    p->balancer = balance_find(p->loadbalance);
    p->hash.indexes = join(c, &p->hash.arguments);
    p->hash_policy = parse_sources(c, &p->hash_policy_text);
    p->request.utc_offset_s = offset_seconds(p->request.timezone);
    p->args_opts = (struct args_opts){
        .class_key = (enum args_class_key)p->request.class_key,
        .allow_classes = p->request.allow_classes.v,
        .n_allow_classes = p->request.allow_classes.n,
        .duplicate_keys_last = p->request.duplicate_keys != 0,
        .decimals_as_string = p->request.decimals != 0,
        .preserve_order = p->request.preserve_order,
        .utc_offset_s = p->request.utc_offset_s,
        .max_depth = c->s->limits.json_depth,
    };
    p->reply_opts = (struct reply_opts){
        .keep_class = r->class_key != 0,
        .omit_nulls = r->omit_nulls,
        .decimal_as_string = r->decimal != 0,
        .bytes_as_array = r->bytes != 0,
        .non_finite_as_null = r->non_finite != 0,
        .cycle_is_error = r->cycle != 0,
        .no_rebuild = !r->rebuild,
        .date = (enum reply_date)r->date,
        .longs = (enum reply_longs)r->long_as_string,
        .max_depth = c->s->limits.json_depth,
    };
    if (p->timeout_ms > p->max_timeout_ms && is_said(c, b, "timeout", "max_timeout"))
        config_error(c->errs, AT(place(b, "timeout")),
                     "\"timeout\" is larger than \"max_timeout\"");
    if (r->null_status != 200 && r->null_status != 204 && r->null_status != 404)
        config_error(c->errs, AT(b), "\"null_status\": %u is not one of 200, 204, 404",
                     r->null_status);
    check_headers(c, &r->headers, b);
    if (r->success.field.n != 0 && r->success.values.n == 0)
        config_error(c->errs, AT(b), "missing key \"values\" in response.success");
}

/* ---------------------------------------------------------------- networks */

static struct network *parse_networks(struct key_context *c, const struct text_list *texts)
{
    struct network *v = arena_alloc(c->a, (texts->n + 1) * sizeof(*v));
    struct err e;

    for (size_t i = 0; i < texts->n; i++) {
        if (!network_parse(texts->v[i], &v[i], &e))
            continue; /* the table's form check has said so */
    }
    return v;
}

/* ---------------------------------------------------------------- sections */

static bool is_loopback(struct str address)
{
    return str_starts(address, STR("127.")) || str_starts(address, STR("[::1]")) ||
           str_starts(address, STR("localhost:")) || str_starts(address, STR("unix:"));
}

/* The address can be bound, as far as that can be seen without doing it, and is named once. */
static void check_address(struct key_context *c, struct str address, size_t index,
                          const struct yaml_node *at)
{
    struct sockaddr_storage sa;
    socklen_t len = 0;
    struct err e = {0};
    const struct settings *s = c->s;

    if (!key_is_address(address))
        return; /* was told already */
    if (!listen_parse(address, &sa, &len, &e))
        config_error(c->errs, AT(at), "%s", e.text);
    for (size_t i = 0; i < index; i++) {
        struct str other = i < s->n_listen ? s->listen[i].address
                                           : s->admin_listen.v[i - s->n_listen];

        if (str_eq(other, address))
            config_error(c->errs, AT(at), "\"" STR_FMT "\" is listened on twice", STR_ARG(address));
    }
}

static void check_listeners(struct key_context *c)
{
    struct settings *s = c->s;
    const struct yaml_node *admin = yaml_find(s->root, STR("admin"));

    if (s->n_listen == 0)
        config_error(c->errs, AT(place(s->root, "listen")), "\"listen\" must have at least 1 item");
    for (size_t i = 0; i < s->n_listen; i++)
        s->listen[i].mode = (unsigned)strtoul(
            s->listen[i].mode_text.n != 0 ? s->listen[i].mode_text.p : "0660", NULL, 8);
    for (size_t i = 0; i < s->n_listen; i++)
        check_address(c, s->listen[i].address, i, place(block(s, "listen", i), "address"));
    for (size_t i = 0; i < s->admin_listen.n; i++)
        check_address(c, s->admin_listen.v[i], s->n_listen + i, admin != NULL ? admin : s->root);
    for (size_t i = 0; i < s->admin_listen.n; i++) {
        if (!is_loopback(s->admin_listen.v[i]))
            config_error(
                c->errs, AT(admin != NULL ? admin : s->root),
                "admin.listen: \"" STR_FMT
                "\" can be reached from other machines; only loopback addresses and unix sockets",
                STR_ARG(s->admin_listen.v[i]));
    }
}

static void check_registries(struct key_context *c)
{
    struct settings *s = c->s;
    struct err e = {0};

    for (size_t i = 0; i < s->n_registries; i++) {
        struct registry_settings *r = &s->registries[i];
        const struct yaml_node *b = block(s, "registries", i);

        r->provider_networks = parse_networks(c, &r->provider_networks_text);
        if (r->address.n != 0 && /* else it was told already */
            !registry_check_address(arena_cstr(c->a, r->address), &e))
            config_error(c->errs, AT(place(b, "address")), "%s", e.text);
        for (size_t j = 0; j < i; j++) {
            if (str_eq(s->registries[j].name, r->name))
                config_error(c->errs, AT(place(b, "name")),
                             "registry \"" STR_FMT "\" exists already", STR_ARG(r->name));
        }
    }
}

static bool has_registry(const struct settings *s, struct str name)
{
    for (size_t i = 0; i < s->n_registries; i++) {
        if (name.n == 0 || str_eq(s->registries[i].name, name))
            return true;
    }
    return false;
}

/* `name` is what "registry" in block `b` says.  True when it was told that something is wrong with it. */
static bool check_registry_name(struct key_context *c, struct str name, const struct yaml_node *b)
{
    const struct settings *s = c->s;

    if (name.n != 0 && !has_registry(s, name))
        config_error(c->errs, AT(place(b, "registry")), "no registry named \"" STR_FMT "\"",
                     STR_ARG(name));
    else if (name.n == 0 && s->n_registries > 1)
        config_error(c->errs, AT(b), "there are several registries: say which with \"registry\"");
    else
        return false;
    return true;
}

static void resolve_method(struct key_context *c, struct method *m, const struct yaml_node *b)
{
    struct jtype *types = arena_alloc(c->a, (m->type_names.n + 1) * sizeof(*types));
    const struct yaml_node *list = place(b, "types");
    struct err e;

    for (size_t i = 0; i < m->type_names.n; i++) {
        if (!jtype_parse(m->type_names.v[i], c->a, &types[i], &e))
            config_error(c->errs, AT(item(list, i)), "\"types\": %s", e.text);
    }
    m->types = types;
    if (m->params.n != 0 && m->type_names.n != 0 && m->params.n != m->type_names.n)
        config_error(c->errs, AT(place(b, "params")), "\"params\" has %zu items and \"types\" %zu",
                     m->params.n, m->type_names.n);
    resolve_policy(c, &m->policy, b);
}

static void check_providers(struct key_context *c, const struct service *sv,
                            const struct yaml_node *list)
{
    const struct refkey k = {.interface = STR("any.Interface")}; /* of the service: another check */

    for (size_t i = 0; i < sv->providers.n; i++) {
        struct provider p;
        struct err e = {0};

        if (!provider_from_address(sv->providers.v[i], &k, c->a, &p, &e))
            config_error(c->errs, AT(item(list, i)), "\"providers\": %s", e.text);
        else if (p.unusable != USABLE)
            config_error(c->errs, AT(item(list, i)),
                         "\"providers\": \"" STR_FMT "\" cannot be called (%s)",
                         STR_ARG(sv->providers.v[i]), unusable_name(p.unusable));
    }
}

static void check_service(struct key_context *c, struct service *sv, size_t index)
{
    struct settings *s = c->s;
    const struct yaml_node *b = block(s, "services", index);
    const struct yaml_node *methods = place(b, "methods");
    struct err e;

    sv->index = index;
    resolve_policy(c, &sv->policy, b);
    for (size_t i = 0; i < sv->n_methods; i++)
        resolve_method(c, &sv->methods[i], item(methods, i));
    if (sv->interface.n != 0 && !refkey_make(sv->interface, sv->version, sv->group, &sv->key, &e))
        config_error(c->errs, AT(b), "%s", e.text);
    check_providers(c, sv, place(b, "providers"));
    if (sv->providers.n == 0 && !check_registry_name(c, sv->registry, b) &&
        !has_registry(s, sv->registry))
        config_error(c->errs, AT(b), "service \"" STR_FMT "\" needs \"providers\" or a registry",
                     STR_ARG(sv->name));
    for (size_t i = 0; i < index; i++) {
        const struct service *o = &s->services[i];

        if (str_eq(o->name, sv->name))
            config_error(c->errs, AT(place(b, "name")), "service \"" STR_FMT "\" exists already",
                         STR_ARG(sv->name));
        else if (str_eq(o->interface, sv->interface) && str_eq(o->version, sv->version) &&
                 str_eq(o->group, sv->group) && sv->interface.n != 0)
            config_error(c->errs, AT(place(b, "interface")),
                         "service \"" STR_FMT "\" has the same interface, version and group",
                         STR_ARG(o->name));
    }
}

/* ---------------------------------------------------------------- routes */

static const char *nearest_service(const struct settings *s, struct str name, char *out, size_t cap)
{
    size_t best = (name.n / 3 > 1 ? name.n / 3 : 1) + 1;

    out[0] = '\0';
    for (size_t i = 0; i < s->n_services; i++) {
        size_t d = str_distance(name, s->services[i].name);

        if (d < best) {
            best = d;
            snprintf(out, cap, "; did you mean \"" STR_FMT "\"?", STR_ARG(s->services[i].name));
        }
    }
    return out;
}

static void check_call(struct key_context *c, struct route *r, const struct yaml_node *b)
{
    const struct yaml_node *at = place(b, "call");
    char hint[128];
    size_t best = (r->method_name.n / 3 > 1 ? r->method_name.n / 3 : 1) + 1;

    if (r->call.n == 0 || r->method_name.n == 0)
        return;
    if (r->service == NULL) {
        struct str name = str_sub(r->call, 0, r->call.n - r->method_name.n - 1);

        config_error(c->errs, AT(at), "no service named \"" STR_FMT "\"%s", STR_ARG(name),
                     nearest_service(c->s, name, hint, sizeof(hint)));
        return;
    }
    if (r->service->n_methods == 0 || r->method_def != NULL)
        return;
    hint[0] = '\0';
    for (size_t i = 0; i < r->service->n_methods; i++) {
        size_t d = str_distance(r->method_name, r->service->methods[i].name);

        if (d < best) {
            best = d;
            snprintf(hint, sizeof(hint), "; did you mean \"" STR_FMT "\"?",
                     STR_ARG(r->service->methods[i].name));
        }
    }
    if (hint[0] != '\0')
        config_error(c->errs, AT(at), "service \"" STR_FMT "\" lists no method \"" STR_FMT "\"%s",
                     STR_ARG(r->service->name), STR_ARG(r->method_name), hint);
}

static bool has_body(uint32_t method)
{
    return method == HTTP_POST || method == HTTP_PUT || method == HTTP_PATCH;
}

static void check_source(struct key_context *c, const struct route *r, const struct source *s,
                         const struct yaml_node *at)
{
    if (s->kind == SOURCE_PATH && !route_template_has(r->path, s->name))
        config_error(c->errs, AT(at),
                     "\"" STR_FMT "\": the path " STR_FMT " has no variable {" STR_FMT "}",
                     STR_ARG(s->text), STR_ARG(r->path), STR_ARG(s->name));
    if (s->kind == SOURCE_BODY && !has_body(r->method))
        config_error(c->errs, AT(at), "\"" STR_FMT "\": a %s request has no body", STR_ARG(s->text),
                     http_method_names[r->method]);
}

static void check_arg(struct key_context *c, const struct route *r, struct route_arg *a,
                      size_t index, const struct yaml_node *at)
{
    struct jtype *type = NULL;
    struct err e;

    if ((a->from_text.n != 0) == (a->fields.n != 0)) {
        config_error(c->errs, AT(at), "an argument needs exactly one of \"from\" and \"fields\"");
        return;
    }
    if (a->from_text.n != 0 && keys_parse_source(a->from_text, &a->from)) {
        a->from.all = a->from.all || a->all;
        check_source(c, r, &a->from, place(at, "from"));
    }
    for (size_t i = 0; i < a->fields.n; i++)
        check_source(c, r, &a->fields.v[i].source, place(at, "fields"));
    for (size_t i = 0; i < a->set.n; i++)
        check_source(c, r, &a->set.v[i].source, place(at, "set"));
    if (a->type_name.n != 0) {
        type = arena_alloc(c->a, sizeof(*type));
        if (!jtype_parse(a->type_name, c->a, type, &e))
            config_error(c->errs, AT(place(at, "type")), "\"type\": %s", e.text);
        else
            a->type = type;
    } else if (r->method_def != NULL && index < r->method_def->type_names.n) {
        a->type = &r->method_def->types[index];
    }
}

static void check_args(struct key_context *c, struct route *r, const struct yaml_node *b)
{
    const struct yaml_node *list = place(b, "args");
    size_t typed = 0;

    r->args_given = yaml_find(b, STR("args")) != NULL;
    for (size_t i = 0; i < r->n_args; i++) {
        check_arg(c, r, &r->args[i], i, item(list, i));
        typed += r->args[i].type != NULL ? 1U : 0U;
    }
    if (typed != 0 && typed != r->n_args)
        config_error(c->errs, AT(list), "give the types of all arguments or of none");
    if (r->args_given && r->method_def != NULL && r->method_def->type_names.n != 0 &&
        r->n_args != r->method_def->type_names.n)
        config_error(c->errs, AT(list), "method " STR_FMT " has %zu parameters, \"args\" has %zu",
                     STR_ARG(r->method_name), r->method_def->type_names.n, r->n_args);
}

/* An inherited one may name variables that only some paths have. */
static void check_hash_policy(struct key_context *c, struct route *r, const struct yaml_node *b)
{
    const struct yaml_node *list = place(b, "hash_policy");

    for (size_t i = 0; list != b && i < r->policy.hash_policy_text.n; i++)
        check_source(c, r, &r->policy.hash_policy[i], item(list, i));
}

static void check_cluster(struct key_context *c, struct route *r, const struct yaml_node *b)
{
    const struct yaml_node *at = place(b, "cluster");
    struct str group = r->service != NULL ? r->service->group : STR("*");
    bool groups = str_is(group, "*") || str_find(group, ',') != group.n;

    r->cluster = cluster_find(r->cluster_text);
    if (r->cluster == NULL) {
        r->cluster = &cluster_failover; /* was told already */
        return;
    }
    if (r->cluster->idempotent_only && !r->idempotent)
        config_error(c->errs, AT(at),
                     "\"cluster: %s\" runs a call more than once: only with \"idempotent: true\"",
                     r->cluster->name);
    if (r->cluster->groups_only && !groups)
        config_error(c->errs, AT(at),
                     "\"cluster: %s\" needs a service with \"group: '*'\" or a list of groups",
                     r->cluster->name);
    if (r->cluster->not_oneway && r->oneway)
        config_error(c->errs, AT(at), "\"cluster: %s\" waits for answers: not with \"oneway\"",
                     r->cluster->name);
}

static void check_route(struct key_context *c, struct route *r, size_t index)
{
    const struct yaml_node *b = block(c->s, "routes", index);
    struct err e;

    r->index = index;
    if (b->kind != YAML_MAP)
        return;
    resolve_policy(c, &r->policy, b);
    if (r->path.n != 0 && !route_template_check(r->path, &e))
        config_error(c->errs, AT(place(b, "path")), "\"path\": %s", e.text);
    check_call(c, r, b);
    check_args(c, r, b);
    check_hash_policy(c, r, b);
    check_cluster(c, r, b);
    for (size_t i = 0; i < index; i++) {
        const struct route *o = &c->s->routes[i];

        if (str_eq(o->name, r->name))
            config_error(c->errs, AT(place(b, "name")), "route \"" STR_FMT "\" exists already",
                         STR_ARG(r->name));
        else if (o->method == r->method && o->hosts.n == 0 && r->hosts.n == 0 &&
                 route_template_same(o->path, r->path))
            config_error(c->errs, AT(place(b, "path")),
                         "route \"" STR_FMT "\" in line %u has the same method and path",
                         STR_ARG(o->name), (unsigned)block(c->s, "routes", i)->line);
    }
}

static void check_direct(struct key_context *c)
{
    const struct settings *s = c->s;
    const struct yaml_node *b = yaml_find(s->root, STR("direct"));

    if (!s->direct.enabled || b == NULL)
        return;
    if (s->direct.allow.n == 0)
        config_error(c->errs, AT(place(b, "enabled")),
                     "direct.enabled needs \"allow\": what may be called, e.g. com.example.*");
    (void)check_registry_name(c, s->direct.registry, b);
    if (s->n_registries == 0 && s->n_services == 0)
        config_error(c->errs, AT(b),
                     "direct.enabled needs a registry or services with \"providers\"");
}

void settings_resolve(struct key_context *c)
{
    struct settings *s = c->s;
    const struct yaml_node *defaults = yaml_find(s->root, STR("defaults"));

    s->trusted_proxies = parse_networks(c, &s->trusted_proxies_text);
    resolve_policy(c, &s->defaults, defaults != NULL ? defaults : s->root);
    check_listeners(c);
    check_registries(c);
    for (size_t i = 0; i < s->n_services; i++)
        check_service(c, &s->services[i], i);
    for (size_t i = 0; i < s->n_routes; i++)
        check_route(c, &s->routes[i], i);
    check_direct(c);
}
