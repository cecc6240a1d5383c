#include "gateway/wiring.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { CONN_IN_FLIGHT = 65536 };

unsigned wiring_workers(const struct settings *s)
{
    uint64_t n = 0;
    cpu_set_t cpus;

    if (str_to_u64(s->process.workers, 64, &n) && n != 0)
        return (unsigned)n;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 0)
        return (unsigned)CPU_COUNT(&cpus) < 64 ? (unsigned)CPU_COUNT(&cpus) : 64;
    return 1;
}

void wiring_log(const struct settings *s, struct log_opts *out)
{
    bool file = !str_is(s->logging.error.target, "stderr");

    *out = (struct log_opts){
        .file = file ? s->logging.error.target.p : NULL,
        .level = (enum log_level)s->logging.error.level,
        .json = s->logging.error.format != 0,
        .repeat_ms = s->logging.error.repeat_ms,
    };
}

void wiring_accesslog(const struct settings *s, struct accesslog_opts *out)
{
    *out = (struct accesslog_opts){
        .target = s->logging.access.target.p,
        .format = (enum accesslog_format)s->logging.access.format,
        .slow_ms = s->logging.access.slow_ms,
        .sample = s->logging.access.sample,
        .buffer = s->logging.access.buffer,
        .flush_ms = s->logging.access.flush_ms,
    };
}

uint32_t wiring_share(uint32_t whole, unsigned n_workers)
{
    uint32_t part = (whole + n_workers - 1) / n_workers;

    return part != 0 ? part : 1;
}

void wiring_exchange(const struct settings *s, unsigned n_workers, struct exchange_limits *out)
{
    *out = (struct exchange_limits){
        .timeout_ms =
            {
                [PHASE_HEADERS] = s->limits.header_timeout_ms,
                [PHASE_BODY] = s->limits.body_timeout_ms,
                [PHASE_WRITE] = s->limits.write_timeout_ms,
                [PHASE_IDLE] = s->limits.keepalive_timeout_ms,
            },
        .request_header = s->limits.request_header,
        .request_body = s->limits.request_body,
        .response_body = s->limits.response_body,
        .memory = s->limits.memory / n_workers,
        .connections = wiring_share(s->limits.connections, n_workers),
        .keepalive_requests = s->limits.keepalive_requests,
        .chunked_requests = s->limits.chunked_requests,
    };
}

/* The port of the first listener: stable over restarts, different for two gateways on one host. */
static const char *instance_of(const struct settings *s, struct arena *a)
{
    struct str address = s->n_listen != 0 ? s->listen[0].address : STR_NONE;
    size_t colon = address.n;

    if (s->consumer.instance.n != 0)
        return s->consumer.instance.p;
    while (colon > 0 && address.p[colon - 1] != ':')
        colon--;
    return arena_cstr(a, str_sub(address, colon, address.n));
}

void wiring_registry(const struct settings *s, struct arena *a, struct registry_opts *out)
{
    struct registry_conf *rc = arena_alloc(a, (s->n_registries + 1) * sizeof(*rc));
    struct text_pair *params = s->consumer.parameters.v;
    struct url_param *up = arena_alloc(a, (s->consumer.parameters.n + 1) * sizeof(*up));

    for (size_t i = 0; i < s->n_registries; i++) {
        const struct registry_settings *r = &s->registries[i];

        rc[i] = (struct registry_conf){
            .name = r->name.p,
            .address = r->address.p,
            .root = r->root.p,
            .config_root = r->config_root.p,
            .discovery = (enum discovery)(DISCOVERY_AUTO + r->discovery),
            .chroot = r->chroot.p,
            .session_timeout_ms = r->session_timeout_ms,
            .connect_timeout_ms = r->connect_timeout_ms,
            .register_consumer = r->register_consumer,
            .telnet_methods = r->telnet_methods,
            .snapshot_max_age_ms = r->snapshot_max_age_ms,
            .provider_networks = r->provider_networks,
            .n_provider_networks = r->provider_networks_text.n,
        };
    }
    for (size_t i = 0; i < s->consumer.parameters.n; i++)
        up[i] = (struct url_param){params[i].name, params[i].value};
    *out = (struct registry_opts){
        .registries = rc,
        .n_registries = s->n_registries,
        .state_dir = s->process.state_dir.p,
        .application = s->consumer.application.p,
        .consumer_address = s->consumer.address.p,
        .consumer_instance = instance_of(s, a),
        .consumer_parameters = up,
        .n_consumer_parameters = s->consumer.parameters.n,
        .max_references = s->limits.references,
        .reference_idle_ms = s->limits.reference_idle_ms,
    };
}

static struct str join(const struct text_list *l, struct arena *a)
{
    struct str text = STR_NONE;

    for (size_t i = 0; i < l->n; i++)
        text = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(text), i != 0 ? "," : "",
                            STR_ARG(l->v[i]));
    return text;
}

/* A reference that is made for a call looks where its registry says, so a service that says it itself is never one. */
static bool is_subscribed(const struct service *s)
{
    return s->preload || s->providers.n != 0 || s->discovery != DISCOVERY_INHERIT ||
           s->provided_by.n != 0;
}

struct wanted_service *wiring_services(const struct settings *s, struct arena *a, size_t *n)
{
    struct wanted_service *v = arena_alloc(a, (s->n_services + 1) * sizeof(*v));

    *n = 0;
    for (size_t i = 0; i < s->n_services; i++) {
        const struct service *sv = &s->services[i];
        struct err e;

        if (!is_subscribed(sv))
            continue;
        if (!refkey_make(sv->interface, sv->version, sv->group, &v[*n].key, &e))
            continue;
        v[*n].registry = sv->registry.n != 0 ? sv->registry.p : NULL;
        v[*n].urls = sv->providers.v;
        v[*n].n_urls = sv->providers.n;
        v[*n].discovery = (enum discovery)sv->discovery;
        v[*n].provided_by = join(&sv->provided_by, a);
        (*n)++;
    }
    return v;
}

void wiring_peer(const struct settings *s, const struct service *service, struct peer_opts *out)
{
    const struct policy *p = service != NULL ? &service->policy : &s->defaults;

    memset(out, 0, sizeof(*out)); /* compared bytewise */
    out->connections = p->connections;
    out->conn.connect_timeout_ms = p->connect_timeout_ms;
    out->conn.heartbeat_ms = p->heartbeat_ms;
    out->conn.max_in_flight = CONN_IN_FLIGHT;
    out->conn.max_buffered = s->limits.memory / wiring_workers(s);
    out->conn.max_response = (uint32_t)s->limits.response_body;
}

void wiring_plan(const struct policy *p, unsigned n_workers, struct call_plan *out)
{
    *out = (struct call_plan){
        .timeout_ms = p->timeout_ms,
        .timeout_explicit = p->timeout_set,
        .max_timeout_ms = p->max_timeout_ms,
        .per_try_timeout_ms = p->retry.per_try_timeout_ms,
        .attempts = p->retry.attempts,
        .conditions = p->retry.conditions,
        .idempotent_conditions = p->retry.idempotent_conditions,
        .budget_percent = p->retry.budget_percent,
        .budget_min = p->retry.budget_min,
        .outlier = p->outlier,
        .max_requests = wiring_share(p->breakers.max_requests, n_workers),
        .max_requests_per_provider = wiring_share(p->breakers.max_requests_per_provider, n_workers),
        .balancer = p->balancer,
        .wish = {.hash_arguments = p->hash.indexes, .hash_nodes = p->hash.nodes},
    };
}
