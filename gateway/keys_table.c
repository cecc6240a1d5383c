/*
 * Rows of the top level: listeners, limits, registries, logging.  Services and routes: keys_service.c.
 */
#include <string.h>

#include "base/log.h"
#include "gateway/accesslog.h"
#include "gateway/keys_row.h"

#define S struct settings

static const char *const log_levels[] = {"debug", "info", "notice", "warn", "error", NULL};
/* The values of `enum discovery` without the first. */
static const char *const discovery_choices[] = {"auto", "interface", "application", NULL};
static const char *const text_json[] = {"text", "json", NULL};
static const char *const json_combined[] = {"json", "combined", NULL};
static const char *const w3c_none[] = {"w3c", "none", NULL};

/* ---------------------------------------------------------------- forms */

bool key_is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && (i == 0 || (c != '_' && c != '.' && c != '-')))
            return false;
    }
    return s.n != 0 && s.n <= 64;
}

bool key_is_address(struct str s)
{
    size_t colon = s.n;
    uint64_t port = 0;

    if (str_starts(s, STR("unix:")))
        return s.n > 5;
    while (colon > 0 && s.p[colon - 1] != ':')
        colon--;
    return colon > 1 && str_to_u64(str_sub(s, colon, s.n), 65535, &port) && port != 0;
}

bool key_is_path(struct str s)
{
    return s.n != 0 && s.p[0] == '/';
}

static bool is_network(struct str s)
{
    struct network n;
    struct err e;

    return network_parse(s, &n, &e);
}

static bool is_registry(struct str s)
{
    return str_starts(s, STR("zookeeper://")) && s.n > 12;
}

static bool is_chroot(struct str s)
{
    return s.n == 0 || (key_is_path(s) && s.n > 1 && s.p[s.n - 1] != '/');
}

static bool is_target(struct str s)
{
    return str_is(s, "stderr") || key_is_path(s);
}

static bool is_access_target(struct str s)
{
    return str_is(s, "none") || str_is(s, "stdout") || key_is_path(s);
}

static bool is_workers(struct str s)
{
    uint64_t n = 0;

    return str_is(s, "auto") || (str_to_u64(s, 64, &n) && n > 0);
}

static bool is_mode(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '7')
            return false;
    }
    return s.n == 3 || s.n == 4;
}

/* ---------------------------------------------------------------- tables */

static const struct key keys_listen[] = {
    {.name = "address",
     ROW_TEXT(struct listener, address),
     .required = true,
     .restart = true,
     .check = key_is_address,
     .form = "HOST:PORT, [V6]:PORT or unix:PATH",
     .help = "HOST:PORT, [v6]:PORT or unix:PATH."},
    {.name = "backlog",
     ROW_U32(struct listener, backlog),
     .def = "511",
     .lo = 1,
     .hi = 65535,
     .restart = true,
     .help = "Listen backlog."},
    {.name = "mode",
     ROW_TEXT(struct listener, mode_text),
     .def = "0660",
     .check = is_mode,
     .restart = true,
     .form = "an octal mode such as 0660",
     .help = "Permissions of a unix socket."},
    {.name = NULL},
};

static const struct key keys_admin[] = {
    {.name = "listen",
     ROW_TEXTS(S, admin_listen),
     .check = key_is_address,
     .form = "HOST:PORT, [V6]:PORT or unix:PATH",
     .restart = true,
     .help =
         "Addresses of the admin interface; only loopback and unix sockets. Default 127.0.0.1:9901."},
    {.name = NULL},
};

static const struct key keys_process[] = {
    {.name = "workers",
     ROW_TEXT(S, process.workers),
     .def = "auto",
     .check = is_workers,
     .restart = true,
     .form = "\"auto\" or a number from 1 to 64",
     .help = "Event-loop threads: auto (CPUs of the process) or a number."},
    {.name = "pid_file",
     ROW_TEXT(S, process.pid_file),
     .def = "",
     .restart = true,
     .help = "PID file; empty = none."},
    {.name = "max_open_files",
     ROW_U32(S, process.max_open_files),
     .def = "65536",
     .lo = 0,
     .hi = 1048576,
     .restart = true,
     .help = "RLIMIT_NOFILE to ask for; 0 = leave."},
    {.name = "drain_timeout",
     ROW_MS(S, process.drain_timeout_ms),
     .def = "30s",
     .lo = 0,
     .hi = 600000,
     .help = "Longest graceful stop."},
    {.name = "drain_delay",
     ROW_MS(S, process.drain_delay_ms),
     .def = "0s",
     .lo = 0,
     .hi = 300000,
     .help = "Time between \"not ready\" and closing the listeners."},
    {.name = "state_dir",
     ROW_TEXT(S, process.state_dir),
     .def = "/var/lib/dubbogate",
     .restart = true,
     .help =
         "The last known provider lists and published rules are saved here; empty = not at all."},
    {.name = NULL},
};

static const struct key keys_limits[] = {
    {.name = "connections",
     ROW_U32(S, limits.connections),
     .def = "10000",
     .lo = 1,
     .hi = 1000000,
     .restart = true,
     .help = "Client connections; further ones wait in the backlog."},
    {.name = "requests_in_flight",
     ROW_U32(S, limits.requests_in_flight),
     .def = "4096",
     .lo = 1,
     .hi = 1000000,
     .help = "Calls in flight, whole daemon; above it 503 GATEWAY_BUSY."},
    {.name = "request_header",
     ROW_SIZE(S, limits.request_header),
     .def = "8k",
     .lo = 4096,
     .hi = 65536,
     .restart = true,
     .help = "Request line and headers; also the memory held per client connection."},
    {.name = "request_body",
     ROW_SIZE(S, limits.request_body),
     .def = "1m",
     .lo = 1024,
     .hi = 8388608,
     .restart = true,
     .help = "Largest request body."},
    {.name = "response_body",
     ROW_SIZE(S, limits.response_body),
     .def = "8m",
     .lo = 1024,
     .hi = 268435456,
     .restart = true,
     .help = "Largest provider answer, and largest JSON made of it."},
    {.name = "json_depth",
     ROW_U32(S, limits.json_depth),
     .def = "128",
     .lo = 8,
     .hi = 256,
     .help = "Nesting of request JSON and of results."},
    {.name = "references",
     ROW_U32(S, limits.references),
     .def = "1024",
     .lo = 1,
     .hi = 100000,
     .restart = true,
     .help = "Subscribed references (interface + version + group)."},
    {.name = "reference_idle",
     ROW_MS(S, limits.reference_idle_ms),
     .def = "10m",
     .lo = 10000,
     .hi = 86400000,
     .restart = true,
     .help = "Idle time before an on-demand reference is dropped."},
    {.name = "header_timeout",
     ROW_MS(S, limits.header_timeout_ms),
     .def = "10s",
     .lo = 1000,
     .hi = 300000,
     .restart = true,
     .help = "Time to receive the headers; then 408 and close."},
    {.name = "body_timeout",
     ROW_MS(S, limits.body_timeout_ms),
     .def = "30s",
     .lo = 1000,
     .hi = 600000,
     .restart = true,
     .help = "Time to receive the whole body; then 408 and close."},
    {.name = "write_timeout",
     ROW_MS(S, limits.write_timeout_ms),
     .def = "30s",
     .lo = 1000,
     .hi = 600000,
     .restart = true,
     .help = "Time for the client to take the answer; then close."},
    {.name = "keepalive_timeout",
     ROW_MS(S, limits.keepalive_timeout_ms),
     .def = "75s",
     .lo = 1000,
     .hi = 3600000,
     .restart = true,
     .help = "Idle client connection; then close."},
    {.name = "keepalive_requests",
     ROW_U32(S, limits.keepalive_requests),
     .def = "0",
     .lo = 0,
     .hi = 1000000000,
     .restart = true,
     .help = "Requests per connection; 0 = no limit."},
    {.name = "memory",
     ROW_SIZE(S, limits.memory),
     .def = "256m",
     .lo = 1048576,
     .hi = UINT64_C(68719476736),
     .restart = true,
     .help =
         "Request bodies, and as much again that waits for providers, whole daemon; above it 503 GATEWAY_BUSY."},
    {.name = "chunked_requests",
     ROW_BOOL(S, limits.chunked_requests),
     .def = "true",
     .restart = true,
     .help = "Take chunked request bodies; false: 411."},
    {.name = NULL},
};

#define R struct registry_settings
static const struct key keys_registries[] = {
    {.name = "name",
     ROW_TEXT(R, name),
     .required = true,
     .restart = true,
     .check = key_is_name,
     .form = "a name: letters, digits, \"_\", \".\", \"-\", at most 64",
     .help = "Name."},
    {.name = "address",
     ROW_TEXT(R, address),
     .required = true,
     .restart = true,
     .check = is_registry,
     .form = "zookeeper://HOST:PORT?backup=HOST:PORT,...",
     .masked = true,
     .help = "zookeeper://[user:password@]host:2181?backup=host2:2181,host3:2181. With user and "
             "password (digest) nodes get the ACL of their parent; -T, logs and pages show ***."},
    {.name = "root",
     ROW_TEXT(R, root),
     .def = "/dubbo",
     .restart = true,
     .check = key_is_path,
     .form = "a node path such as /dubbo",
     .help = "Root node (Dubbo: registry group)."},
    {.name = "config_root",
     ROW_TEXT(R, config_root),
     .def = "/dubbo/config/dubbo",
     .restart = true,
     .check = key_is_path,
     .form = "a node path such as /dubbo/config/dubbo",
     .help = "Directory of the rules of 2.7 and 3.x; it does not follow root."},
    {.name = "chroot",
     ROW_TEXT(R, chroot),
     .def = "",
     .restart = true,
     .check = is_chroot,
     .form = "a node path such as /prod",
     .help = "Node below which everything is: root, rules, instances."},
    {.name = "discovery",
     ROW_CHOICE(R, discovery),
     .def = "auto",
     .choices = discovery_choices,
     .restart = true,
     .help =
         "Where providers are looked for: interface (ROOT/IFACE/providers), application (instances of 3.x) or auto: both."},
    {.name = "session_timeout",
     ROW_MS(R, session_timeout_ms),
     .def = "30s",
     .lo = 4000,
     .hi = 300000,
     .restart = true,
     .help = "Session timeout asked for."},
    {.name = "connect_timeout",
     ROW_MS(R, connect_timeout_ms),
     .def = "5s",
     .lo = 100,
     .hi = 60000,
     .restart = true,
     .help = "After this time without a connection a start counts the registry as not answering."},
    {.name = "register_consumer",
     ROW_BOOL(R, register_consumer),
     .def = "true",
     .restart = true,
     .help = "Write one consumer node per reference."},
    {.name = "telnet_methods",
     ROW_BOOL(R, telnet_methods),
     .def = "false",
     .restart = true,
     .help = "Ask providers of 2.6 for their methods: one `ls -l` by telnet on the service port."},
    {.name = "snapshot_max_age",
     ROW_MS64(R, snapshot_max_age_ms),
     .def = "0",
     .lo = 0,
     .hi = UINT64_C(7776000000),
     .restart = true,
     .help = "Ignore a saved list older than this; 0 = never."},
    {.name = "provider_networks",
     ROW_TEXTS(R, provider_networks_text),
     .check = is_network,
     .restart = true,
     .form = "an IP address or network such as 10.0.0.0/8",
     .help =
         "Networks that providers may be in. Default: all but link-local and cloud metadata addresses."},
    {.name = NULL},
};
#undef R

static const struct key keys_consumer[] = {
    {.name = "application",
     ROW_TEXT(S, consumer.application),
     .def = "dubbogate",
     .restart = true,
     .check = key_is_name,
     .form = "an application name",
     .help = "Application name."},
    {.name = "address",
     ROW_TEXT(S, consumer.address),
     .def = "auto",
     .restart = true,
     .help = "IP in the consumer URL; auto = the local address of the registry connection."},
    {.name = "instance",
     ROW_TEXT(S, consumer.instance),
     .def = "",
     .restart = true,
     .help = "Tells gateways on one host apart; default: the port of the first listener."},
    {.name = "parameters",
     ROW_MAP(S, consumer.parameters),
     .restart = true,
     .help = "Further URL parameters."},
    {.name = NULL},
};

static const struct key keys_direct[] = {
    {.name = "enabled",
     ROW_BOOL(S, direct.enabled),
     .def = "false",
     .help = "Offer POST /INTERFACE/METHOD."},
    {.name = "path_prefix",
     ROW_TEXT(S, direct.path_prefix),
     .def = "/",
     .check = key_is_path,
     .form = "a path such as / or /dubbo",
     .help = "In front of the interface."},
    {.name = "registry",
     ROW_TEXT(S, direct.registry),
     .def = "",
     .help = "Registry to look in; needed when there are several."},
    {.name = "allow",
     ROW_TEXTS(S, direct.allow),
     .help = "INTERFACE or INTERFACE#METHOD, * as wildcard; needed when enabled."},
    {.name = "deny", ROW_TEXTS(S, direct.deny), .help = "The same; wins over allow."},
    {.name = "max_timeout",
     ROW_MS(S, direct.max_timeout_ms),
     .def = "30s",
     .lo = 1,
     .hi = 600000,
     .help = "Upper bound for the timeout that a client may ask for."},
    {.name = NULL},
};

static const struct key keys_error_log[] = {
    {.name = "target",
     ROW_TEXT(S, logging.error.target),
     .def = "stderr",
     .check = is_target,
     .form = "stderr or an absolute file name",
     .help = "stderr or a file."},
    {.name = "level",
     ROW_CHOICE(S, logging.error.level),
     .def = "notice",
     .choices = log_levels,
     .help = "Lowest level written."},
    {.name = "format",
     ROW_CHOICE(S, logging.error.format),
     .def = "text",
     .choices = text_json,
     .help = "Form."},
    {.name = "repeat_interval",
     ROW_MS(S, logging.error.repeat_ms),
     .def = "1s",
     .lo = 0,
     .hi = 3600000,
     .help = "The same message at most once in this time; the rest is counted."},
    {.name = NULL},
};

static const struct key keys_access_log[] = {
    {.name = "target",
     ROW_TEXT(S, logging.access.target),
     .def = "none",
     .check = is_access_target,
     .form = "none, stdout or an absolute file name",
     .help = "none, stdout or a file."},
    {.name = "format",
     ROW_CHOICE(S, logging.access.format),
     .def = "json",
     .choices = json_combined,
     .help = "json or combined."},
    {.name = "sample",
     ROW_DOUBLE(S, logging.access.sample),
     .def = "1.0",
     .lo = 0,
     .hi = 1,
     .help = "Share of good, fast requests that is logged."},
    {.name = "slow",
     ROW_MS(S, logging.access.slow_ms),
     .def = "1s",
     .lo = 0,
     .hi = 600000,
     .help = "Slower requests are always logged; 0 = off."},
    {.name = "buffer",
     ROW_SIZE(S, logging.access.buffer),
     .def = "64k",
     .lo = 0,
     .hi = 4194304,
     .help = "Buffer per thread."},
    {.name = "flush",
     ROW_MS(S, logging.access.flush_ms),
     .def = "1s",
     .lo = 0,
     .hi = 60000,
     .help = "Longest time in the buffer."},
    {.name = NULL},
};

static const struct key keys_logging[] = {
    {.name = "error", ROW_BLOCK(keys_error_log), .help = "Error log."},
    {.name = "access", ROW_BLOCK(keys_access_log), .help = "Access log."},
    {.name = NULL},
};

static const struct key keys_metrics[] = {
    {.name = "enabled", ROW_BOOL(S, metrics.enabled), .def = "true", .help = "Offer /metrics."},
    {.name = "per_provider",
     ROW_BOOL(S, metrics.per_provider),
     .def = "true",
     .help = "Series per provider address."},
    {.name = "max_series",
     ROW_U32(S, metrics.max_series),
     .def = "10000",
     .lo = 100,
     .hi = 1000000,
     .help = "Series over all metrics; above it labels become _OTHER."},
    {.name = NULL},
};

static const struct key keys_tracing[] = {
    {.name = "propagation",
     ROW_CHOICE(S, tracing.propagation),
     .def = "w3c",
     .choices = w3c_none,
     .help = "Headers read and attachments written."},
    {.name = "generate",
     ROW_BOOL(S, tracing.generate),
     .def = "true",
     .help = "Start a trace where none came."},
    {.name = NULL},
};

static const struct key keys_defaults_block[] = {
    {ROW_EMBED(S, defaults, keys_policy)},
    {.name = NULL},
};

const struct key keys_top[] = {
    {.name = "config_version",
     ROW_U32(S, config_version),
     .def = "1",
     .lo = 1,
     .hi = 1,
     .help = "Format of this file."},
    {.name = "listen",
     ROW_BLOCKS(S, listen, n_listen, struct listener, keys_listen),
     .required = true,
     .restart = true,
     .help = "HTTP listeners."},
    {.name = "admin", ROW_BLOCK(keys_admin), .help = "Admin interface."},
    {.name = "process", ROW_BLOCK(keys_process), .help = "The process."},
    {.name = "limits", ROW_BLOCK(keys_limits), .help = "Limits."},
    {.name = "trusted_proxies",
     ROW_TEXTS(S, trusted_proxies_text),
     .check = is_network,
     .form = "an IP address or network such as 10.0.0.0/8",
     .help = "Networks whose X-Forwarded-For, X-Request-Id and traceparent are believed."},
    {.name = "registries",
     ROW_BLOCKS(S, registries, n_registries, struct registry_settings, keys_registries),
     .restart = true,
     .help = "Registries."},
    {.name = "consumer",
     ROW_BLOCK(keys_consumer),
     .help = "How the gateway appears in the registry."},
    {.name = "defaults", ROW_BLOCK(keys_defaults_block), .help = "For every service and route."},
    {.name = "services",
     ROW_BLOCKS(S, services, n_services, struct service, keys_services),
     .init = key_init_service,
     .help = "Backend services."},
    {.name = "routes",
     ROW_BLOCKS(S, routes, n_routes, struct route, keys_routes),
     .init = key_init_route,
     .help = "HTTP routes."},
    {.name = "direct",
     ROW_BLOCK(keys_direct),
     .help = "Direct form: POST /INTERFACE/METHOD without any route."},
    {.name = "logging", ROW_BLOCK(keys_logging), .help = "Logs."},
    {.name = "metrics", ROW_BLOCK(keys_metrics), .help = "Metrics."},
    {.name = "tracing", ROW_BLOCK(keys_tracing), .help = "Trace headers."},
    {.name = NULL},
};
