/*
 * Rows of services, methods and routes, and the policy that they inherit.
 */
#include <string.h>

#include "registry/instance.h"
#include "gateway/balance.h"
#include "gateway/cluster.h"
#include "gateway/keys_row.h"
#include "gateway/outcome.h"

/* The values of `enum discovery`. */
static const char *const discovery_choices[] = {"registry", "auto", "interface", "application",
                                                NULL};
static const char *const class_key_choices[] = {"reject", "strip", "pass", NULL};
static const char *const reject_last[] = {"reject", "last", NULL};
static const char *const auto_string[] = {"auto", "string", NULL};
static const char *const ignore_reject[] = {"ignore", "reject", NULL};
static const char *const none_standard[] = {"none", "standard", NULL};
static const char *const strip_keep[] = {"strip", "keep", NULL};
static const char *const long_choices[] = {"never", "unsafe", "always", NULL};
static const char *const number_string[] = {"number", "string", NULL};
static const char *const date_choices[] = {"rfc3339", "epoch_ms", NULL};
static const char *const base64_array[] = {"base64", "array", NULL};
static const char *const string_null[] = {"string", "null", NULL};
static const char *const null_error[] = {"null", "error", NULL};
static const char *const detail_choices[] = {"none", "message", "class_and_message", NULL};
const char *const http_method_names[HTTP_METHODS] = {"GET", "HEAD",  "POST",
                                                     "PUT", "PATCH", "DELETE"};
static const char *const method_choices[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", NULL};

/* ---------------------------------------------------------------- forms */

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

bool key_is_java_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_word_char(s.p[i]))
            return false;
    }
    return s.n != 0 && s.n <= 128 && !(s.p[0] >= '0' && s.p[0] <= '9');
}

bool key_is_interface(struct str s)
{
    struct refkey k;
    struct err e;

    return str_find(s, '.') < s.n && refkey_make(s, STR_NONE, STR_NONE, &k, &e);
}

bool key_is_header(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_word_char(s.p[i]) && s.p[i] != '-')
            return false;
    }
    return s.n != 0 && s.n <= 64;
}

static bool is_zone(struct str s)
{
    return str_is(s, "UTC") || (s.n == 6 && (s.p[0] == '+' || s.p[0] == '-') && s.p[3] == ':');
}

static bool is_call(struct str s)
{
    size_t dot = s.n;

    while (dot > 0 && s.p[dot - 1] != '.')
        dot--;
    return dot > 1 && dot < s.n;
}

static bool is_code(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!((s.p[i] >= 'A' && s.p[i] <= 'Z') || (s.p[i] >= '0' && s.p[i] <= '9') ||
              s.p[i] == '_'))
            return false;
    }
    return s.n != 0 && s.n < 60;
}

static bool is_provider(struct str s)
{
    return s.n > 8 && (str_starts(s, STR("dubbo://")) || str_find(s, ':') < s.n);
}

static bool is_source(struct str s)
{
    struct source out;

    return keys_parse_source(s, &out);
}

/* ---------------------------------------------------------------- policy */

#define P struct policy

static const struct key keys_request[] = {
    {.name = "class_key",
     ROW_CHOICE(P, request.class_key),
     .def = "reject",
     .choices = class_key_choices,
     .help =
         "Members named \"class\" with a string value, at any depth; pass only for allow_classes."},
    {.name = "allow_classes",
     ROW_TEXTS(P, request.allow_classes),
     .help = "Class names that class_key: pass lets through."},
    {.name = "duplicate_keys",
     ROW_CHOICE(P, request.duplicate_keys),
     .def = "reject",
     .choices = reject_last,
     .help = "The same key twice in one JSON object."},
    {.name = "decimals",
     ROW_CHOICE(P, request.decimals),
     .def = "auto",
     .choices = auto_string,
     .help = "Non-integer numbers without a declared type: shortest exact form, or always text."},
    {.name = "timezone",
     ROW_TEXT(P, request.timezone),
     .def = "UTC",
     .check = is_zone,
     .form = "UTC or an offset such as +08:00",
     .help = "Zone for date texts without one."},
    {.name = "preserve_order",
     ROW_BOOL(P, request.preserve_order),
     .def = "false",
     .help = "Send objects for Map parameters as LinkedHashMap."},
    {.name = "unknown_query",
     ROW_CHOICE(P, request.unknown_query),
     .def = "ignore",
     .choices = ignore_reject,
     .help = "Query parameters that the route does not map."},
    {.name = NULL},
};

static const struct key keys_success[] = {
    {.name = "field",
     ROW_TEXT(P, response.success.field),
     .def = "",
     .help = "Member holding the business code."},
    {.name = "values", ROW_TEXTS(P, response.success.values), .help = "Values that mean success."},
    {.name = "message_field",
     ROW_TEXT(P, response.success.message_field),
     .def = "message",
     .help = "Member holding the text."},
    {.name = "status",
     ROW_U32(P, response.success.status),
     .def = "422",
     .lo = 400,
     .hi = 599,
     .help = "Status when the test fails."},
    {.name = NULL},
};

static const struct key keys_response[] = {
    {.name = "envelope",
     ROW_CHOICE(P, response.envelope),
     .def = "none",
     .choices = none_standard,
     .help = "Body form."},
    {.name = "unwrap",
     ROW_TEXT(P, response.unwrap),
     .def = "",
     .help = "Member of the result to answer instead of the whole, e.g. data."},
    {.name = "success", ROW_BLOCK(keys_success), .help = "Test of wrapper results."},
    {.name = "status",
     ROW_U32(P, response.status),
     .def = "200",
     .lo = 200,
     .hi = 299,
     .help = "Status of a good answer."},
    {.name = "null_status",
     ROW_U32(P, response.null_status),
     .def = "200",
     .lo = 200,
     .hi = 404,
     .help = "Status of a null or void result: 200, 204 or 404."},
    {.name = "headers", ROW_MAP(P, response.headers), .help = "Fixed response headers."},
    {.name = "class_key",
     ROW_CHOICE(P, response.class_key),
     .def = "strip",
     .choices = strip_keep,
     .help = "Members named \"class\" holding a Java class name."},
    {.name = "omit_nulls",
     ROW_BOOL(P, response.omit_nulls),
     .def = "false",
     .help = "Leave null members out."},
    {.name = "long_as_string",
     ROW_CHOICE(P, response.long_as_string),
     .def = "never",
     .choices = long_choices,
     .help = "Integers as strings (for JavaScript clients)."},
    {.name = "decimal",
     ROW_CHOICE(P, response.decimal),
     .def = "number",
     .choices = number_string,
     .help = "BigDecimal and BigInteger."},
    {.name = "date",
     ROW_CHOICE(P, response.date),
     .def = "rfc3339",
     .choices = date_choices,
     .help = "Dates."},
    {.name = "bytes",
     ROW_CHOICE(P, response.bytes),
     .def = "base64",
     .choices = base64_array,
     .help = "byte[]."},
    {.name = "non_finite",
     ROW_CHOICE(P, response.non_finite),
     .def = "string",
     .choices = string_null,
     .help = "NaN and infinities."},
    {.name = "cycle",
     ROW_CHOICE(P, response.cycle),
     .def = "null",
     .choices = null_error,
     .help = "Reference to an object that is still open."},
    {.name = "rebuild",
     ROW_BOOL(P, response.rebuild),
     .def = "true",
     .help =
         "Turn UUID, Instant and the like back into text where the provider sends their getters."},
    {.name = "exception_detail",
     ROW_CHOICE(P, response.exception_detail),
     .def = "class_and_message",
     .choices = detail_choices,
     .help = "What a client sees of a provider exception."},
    {.name = NULL},
};

const struct key keys_policy[] = {
    {.name = "timeout",
     .type = KEY_MS,
     .offset = PLACE(P, timeout_ms, uint32_t),
     .set_offset = PLACE(P, timeout_set, bool),
     .def = "3s",
     .lo = 1,
     .hi = 600000,
     .help =
         "Time for the whole call, retries included. Not given: a provider's own timeout counts."},
    {.name = "max_timeout",
     ROW_MS(P, max_timeout_ms),
     .def = "30s",
     .lo = 1,
     .hi = 600000,
     .help = "Upper bound for the timeout that a client may ask for."},
    {.name = "retry", ROW_BLOCK(keys_retry), .help = "When the gateway tries another provider."},
    {.name = "loadbalance",
     ROW_TEXT(P, loadbalance),
     .def = "",
     .choices = balance_names,
     .help = "Choice of provider. Not given: as the provider wishes, else p2c."},
    {.name = "hash", ROW_BLOCK(keys_hash), .help = "Settings of loadbalance: consistenthash."},
    {.name = "hash_policy",
     ROW_TEXTS(P, hash_policy_text),
     .check = is_source,
     .form = "a source: path.X, query.X, header.X, body.X, client.ip, …",
     .help =
         "The same provider for the same values (sticky): loadbalance: consistenthash with this key. A request that "
         "has none of them is balanced as loadbalance says."},
    {.name = "connections",
     ROW_U32(P, connections),
     .def = "1",
     .lo = 1,
     .hi = 16,
     .help = "TCP connections per provider and worker."},
    {.name = "connect_timeout",
     ROW_MS(P, connect_timeout_ms),
     .def = "1s",
     .lo = 10,
     .hi = 30000,
     .help = "TCP connect."},
    {.name = "heartbeat",
     ROW_MS(P, heartbeat_ms),
     .def = "60s",
     .lo = 1000,
     .hi = 600000,
     .help = "Idle time before a heartbeat; a provider URL with heartbeat= wins."},
    {.name = "outlier_detection",
     ROW_BLOCK(keys_outlier),
     .help = "Passive ejection of failing providers."},
    {.name = "circuit_breakers",
     ROW_BLOCK(keys_breakers),
     .help = "Limits that protect a service."},
    {.name = "attachments",
     ROW_SOURCES(P, attachments),
     .help = "Attachments sent with every call: constants or sources."},
    {.name = "request",
     ROW_BLOCK(keys_request),
     .help = "How JSON requests become Java arguments."},
    {.name = "response", ROW_BLOCK(keys_response), .help = "How results become JSON."},
    {.name = NULL},
};
#undef P

/* ---------------------------------------------------------------- services */

void key_init_service(struct key_context *c, void *element, const struct yaml_node *node,
                      const void *parent)
{
    ((struct service *)element)->policy = c->s->defaults;
}

static void init_method(struct key_context *c, void *element, const struct yaml_node *node,
                        const void *parent)
{
    ((struct method *)element)->policy = ((const struct service *)parent)->policy;
}

static const struct key keys_methods[] = {
    {.name = "name",
     ROW_TEXT(struct method, name),
     .required = true,
     .check = key_is_java_name,
     .form = "a Java method name",
     .help = "Java method name."},
    {.name = "types",
     ROW_TEXTS(struct method, type_names),
     .help = "Parameter types; needed for overloads and for exact encoding."},
    {.name = "params",
     ROW_TEXTS(struct method, params),
     .check = key_is_java_name,
     .form = "a parameter name",
     .help = "Parameter names, same order as types; needed for named arguments."},
    {.name = "idempotent",
     ROW_BOOL(struct method, idempotent),
     .def = "false",
     .help = "May be repeated after an unknown outcome."},
    {ROW_EMBED(struct method, policy, keys_policy)},
    {.name = NULL},
};

const struct key keys_services[] = {
    {.name = "name",
     ROW_TEXT(struct service, name),
     .required = true,
     .check = key_is_name,
     .form = "a name: letters, digits, \"_\", \".\", \"-\", at most 64",
     .help = "Name used by routes, logs and metrics."},
    {.name = "interface",
     ROW_TEXT(struct service, interface),
     .required = true,
     .check = key_is_interface,
     .form = "a full Java interface name such as com.example.UserService",
     .help = "Java interface."},
    {.name = "version", ROW_TEXT(struct service, version), .def = "", .help = "Service version."},
    {.name = "group", ROW_TEXT(struct service, group), .def = "", .help = "Service group."},
    {.name = "registry",
     ROW_TEXT(struct service, registry),
     .def = "",
     .help = "Registry to look in; needed when there are several."},
    {.name = "providers",
     ROW_TEXTS(struct service, providers),
     .check = is_provider,
     .form = "a provider URL such as dubbo://10.0.0.5:20880?weight=100",
     .help = "Fixed providers; no registry is asked."},
    {.name = "discovery",
     ROW_CHOICE(struct service, discovery),
     .def = "registry",
     .choices = discovery_choices,
     .help = "Where its providers are looked for; registry: as registries[].discovery says."},
    {.name = "provided_by",
     ROW_TEXTS(struct service, provided_by),
     .check = app_name_ok,
     .form = "the name of an application",
     .help = "Applications that have the service, beside those of its mapping."},
    {.name = "preload",
     ROW_BOOL(struct service, preload),
     .def = "true",
     .help = "Subscribe at start (false: at the first call)."},
    {ROW_EMBED(struct service, policy, keys_policy)},
    {.name = "methods",
     ROW_BLOCKS(struct service, methods, n_methods, struct method, keys_methods),
     .init = init_method,
     .help = "Known methods."},
    {.name = NULL},
};

/* ---------------------------------------------------------------- routes */

/* The service and the method that `call` names, as far as they exist: their policy is inherited. */
void key_init_route(struct key_context *c, void *element, const struct yaml_node *node,
                    const void *parent)
{
    struct route *r = element;
    const struct yaml_node *call = yaml_find(node, STR("call"));
    size_t dot = 0;

    r->policy = c->s->defaults;
    if (call == NULL || call->kind != YAML_SCALAR)
        return;
    dot = call->text.n;
    while (dot > 0 && call->text.p[dot - 1] != '.')
        dot--;
    if (dot == 0)
        return;
    r->method_name = str_sub(call->text, dot, call->text.n);
    r->service = settings_service(c->s, str_sub(call->text, 0, dot - 1));
    if (r->service == NULL)
        return;
    r->method_def = service_method(r->service, r->method_name);
    r->policy = r->method_def != NULL ? r->method_def->policy : r->service->policy;
    r->idempotent = r->method_def != NULL && r->method_def->idempotent;
}

static const struct key keys_args[] = {
    {.name = "from",
     ROW_TEXT(struct route_arg, from_text),
     .check = is_source,
     .form =
         "a source: path.X, query.X, header.X, body, body.X, client.ip, request.id, const:VALUE",
     .help = "Where the value comes from."},
    {.name = "type", ROW_TEXT(struct route_arg, type_name), .def = "", .help = "Java type."},
    {.name = "fields",
     ROW_SOURCES(struct route_arg, fields),
     .help = "Build an object from several sources."},
    {.name = "set",
     ROW_SOURCES(struct route_arg, set),
     .help = "Members to set on the object named in \"from\"."},
    {.name = "required",
     ROW_BOOL(struct route_arg, required),
     .def = "true",
     .help = "400 when the source is absent (otherwise null or default)."},
    {.name = "default",
     .type = KEY_TEXT,
     .offset = PLACE(struct route_arg, default_text, struct str),
     .set_offset = PLACE(struct route_arg, has_default, bool),
     .help = "Value when the source is absent."},
    {.name = "all",
     ROW_BOOL(struct route_arg, all),
     .def = "false",
     .help = "Repeated query or header values as a list."},
    {.name = NULL},
};

static const struct key keys_exceptions[] = {
    {.name = "class",
     ROW_TEXT(struct exception_rule, class),
     .required = true,
     .help = "Exception class name; * at the end as wildcard."},
    {.name = "status",
     ROW_U32(struct exception_rule, status),
     .required = true,
     .lo = 400,
     .hi = 599,
     .help = "HTTP status."},
    {.name = "code",
     ROW_TEXT(struct exception_rule, code),
     .def = "PROVIDER_EXCEPTION",
     .check = is_code,
     .form = "an upper-case code such as USER_NOT_FOUND",
     .help = "Value of \"code\" in the error body."},
    {.name = NULL},
};

#define R struct route
const struct key keys_routes[] = {
    {.name = "name",
     ROW_TEXT(R, name),
     .required = true,
     .check = key_is_name,
     .form = "a name: letters, digits, \"_\", \".\", \"-\", at most 64",
     .help = "Name in logs and metrics."},
    {.name = "method",
     ROW_CHOICE(R, method),
     .def = "POST",
     .choices = method_choices,
     .help = "HTTP method."},
    {.name = "path",
     ROW_TEXT(R, path),
     .required = true,
     .check = key_is_path,
     .form = "a path starting with \"/\"",
     .help = "Path template: /users/{id}, /files/{path=**}, /users/{id}:lock."},
    {.name = "hosts",
     ROW_TEXTS(R, hosts),
     .help = "Only for these Host names; *.example.com allowed."},
    {.name = "call",
     ROW_TEXT(R, call),
     .required = true,
     .check = is_call,
     .form = "SERVICE.METHOD",
     .help = "service.method to call."},
    {.name = "args",
     ROW_BLOCKS(R, args, n_args, struct route_arg, keys_args),
     .help = "Arguments in order; without it the body or the parameters by name."},
    {.name = "idempotent",
     ROW_BOOL(R, idempotent),
     .help = "May be repeated after an unknown outcome."},
    {.name = "oneway",
     ROW_BOOL(R, oneway),
     .def = "false",
     .help = "Do not wait for an answer: 202."},
    {ROW_EMBED(R, policy, keys_policy)},
    {.name = "forward_headers",
     ROW_TEXTS(R, forward_headers),
     .check = key_is_header,
     .form = "a header name",
     .help = "Request headers sent as attachments (http.NAME)."},
    {.name = "return_attachments",
     ROW_TEXTS(R, return_attachments),
     .check = key_is_header,
     .form = "an attachment name",
     .help = "Answer attachments sent as X-Dubbo-NAME headers."},
    {.name = "cluster",
     ROW_TEXT(R, cluster_text),
     .def = "failover",
     .choices = cluster_names,
     .help = "What is done with several providers."},
    {.name = "forks",
     ROW_U32(R, forks),
     .def = "2",
     .lo = 2,
     .hi = 8,
     .help = "Providers that cluster: forking asks at once."},
    {.name = "max_body",
     ROW_SIZE(R, max_body),
     .def = "8m",
     .lo = 1024,
     .hi = 8388608,
     .help = "Request body limit, below limits.request_body."},
    {.name = "exceptions",
     ROW_BLOCKS(R, exceptions, n_exceptions, struct exception_rule, keys_exceptions),
     .help = "Exception mapping, first match wins."},
    {.name = "access_log",
     ROW_BOOL(R, access_log),
     .def = "true",
     .help = "Write access log lines for this route."},
    {.name = "summary", ROW_TEXT(R, summary), .def = "", .help = "One line of description."},
    {.name = "tags", ROW_TEXTS(R, tags), .help = "Tags."},
    {.name = "deprecated",
     ROW_BOOL(R, deprecated),
     .def = "false",
     .help = "Sends Deprecation: true."},
    {.name = NULL},
};
#undef R
