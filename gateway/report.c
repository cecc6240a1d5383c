#include "gateway/report.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/fatal.h"

/* ---------------------------------------------------------------- references */

static json_t *text(struct str s)
{
    json_t *t = json_stringn(s.n != 0 ? s.p : "", s.n);

    return t != NULL ? t : json_string("?"); /* not UTF-8 */
}

static const char *endpoint_state(const struct endpoint *ep, const struct peer_info *info)
{
    if (ep->provider->unusable != USABLE)
        return unusable_name(ep->provider->unusable);
    if (outlier_is_ejected(ep))
        return "ejected";
    return ep->peer != NULL ? info->state : "idle";
}

static void put_int(json_t *o, const char *key, uint64_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

static json_t *endpoint_json(const struct endpoint *ep, struct str method, const struct wctx *w)
{
    const struct provider *p = ep->provider;
    struct peer_info info = {.state = "idle", .last_error = ""};
    char address[URL_HOST_PORT_CAP];
    json_t *o = json_object();

    if (ep->peer != NULL)
        peer_info(ep->peer, &info);
    json_object_set_new(
        o, "address",
        json_stringn(address, url_print_host_port(p->host, p->port, address, sizeof(address))));
    json_object_set_new(o, "state", json_string(endpoint_state(ep, &info)));
    json_object_set_new(o, "usable", json_boolean(p->unusable == USABLE));
    json_object_set_new(o, "unlisted", json_boolean(p->unlisted));
    put_int(o, "weight", p->weight);
    put_int(o, "weight_now", provider_weight(p, method, w->wall_ms));
    json_object_set_new(o, "release", text(p->release));
    json_object_set_new(o, "application", text(p->application));
    json_object_set_new(o, "found", json_string(provider_found_name(p)));
    put_int(o, "timeout_ms", p->timeout_ms);
    put_int(o, "payload", p->payload);
    put_int(o, "in_flight", ep->in_flight);
    put_int(o, "calls", ep->calls);
    put_int(o, "errors", ep->errors);
    put_int(o, "failures_in_a_row", ep->failures_in_a_row);
    put_int(o, "ejected_ms", outlier_left_ms(ep, w->now_ms));
    put_int(o, "latency_us", ep->latency_us);
    put_int(o, "connections", info.connections);
    put_int(o, "backoff_ms", info.backoff_ms);
    json_object_set_new(o, "last_error", json_string(info.last_error));
    json_object_set_new(
        o, "last_failure",
        json_string(ep->last_failure != 0 ? outcome_row(ep->last_failure)->code : ""));
    return o;
}

struct reference_sink {
    struct worker *w;
    json_t *into;
};

static void add_reference(struct ref *r, void *ctx)
{
    struct reference_sink *sink = ctx;
    json_t *o = json_object();
    json_t *providers = json_array();

    put_int(o, "in_flight", r->in_flight);
    put_int(o, "calls", r->calls);
    put_int(o, "errors", r->errors);
    for (size_t i = 0; i < r->n_endpoints; i++)
        json_array_append_new(providers, endpoint_json(ref_endpoint(r, i), STR_NONE, &sink->w->w));
    json_object_set_new(o, "providers", providers);
    json_object_set_new(sink->into, r->key_text, o);
}

void report_references(struct worker *w, json_t *into)
{
    struct reference_sink sink = {w, into};

    refs_each(w->httpd.refs, add_reference, &sink);
}

static const char *const summed[] = {"in_flight", "calls", "errors", "connections"};

static void add_numbers(json_t *to, const json_t *from)
{
    for (size_t i = 0; i < ARRAY_LEN(summed); i++) {
        const json_t *v = json_object_get(from, summed[i]);

        if (v != NULL)
            json_object_set_new(to, summed[i],
                                json_integer(json_integer_value(json_object_get(to, summed[i])) +
                                             json_integer_value(v)));
    }
}

/* The state that tells most of one address seen by several workers. */
static int state_rank(const char *state)
{
    static const char *const order[] = {"idle",    "up",      "connecting",
                                        "backoff", "ejected", "readonly"};

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        if (strcmp(order[i], state) == 0)
            return (int)i;
    }
    return (int)ARRAY_LEN(order);
}

static void merge_provider(json_t *to, const json_t *from)
{
    const char *mine = json_string_value(json_object_get(to, "state"));
    const char *theirs = json_string_value(json_object_get(from, "state"));
    static const char *const kept[] = {"failures_in_a_row", "ejected_ms", "backoff_ms",
                                       "latency_us"};

    add_numbers(to, from);
    if (json_string_length(json_object_get(to, "last_failure")) == 0)
        json_object_set(to, "last_failure", json_object_get(from, "last_failure"));
    if (mine != NULL && theirs != NULL && state_rank(theirs) > state_rank(mine)) {
        json_object_set(to, "state", json_object_get(from, "state"));
        json_object_set(to, "last_error", json_object_get(from, "last_error"));
    }
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        json_t *v = json_object_get(from, kept[i]);

        if (json_integer_value(v) > json_integer_value(json_object_get(to, kept[i])))
            json_object_set(to, kept[i], v);
    }
}

static json_t *find_provider(const json_t *list, const char *address)
{
    size_t i = 0;
    json_t *p = NULL;

    json_array_foreach(list, i, p)
    {
        const char *a = json_string_value(json_object_get(p, "address"));

        if (a != NULL && address != NULL && strcmp(a, address) == 0)
            return p;
    }
    return NULL;
}

static void merge_reference(json_t *to, const json_t *from)
{
    json_t *mine = json_object_get(to, "providers");
    size_t i = 0;
    json_t *p = NULL;

    add_numbers(to, from);
    json_array_foreach(json_object_get(from, "providers"), i, p)
    {
        json_t *same = find_provider(mine, json_string_value(json_object_get(p, "address")));

        if (same != NULL)
            merge_provider(same, p);
        else
            json_array_append(mine, p);
    }
}

void report_merge_references(json_t *to, const json_t *from)
{
    const char *key = NULL;
    json_t *r = NULL;

    /* jansson's macro wants a pointer it may write to; nothing is changed */
    json_object_foreach((json_t *)(uintptr_t)from, key, r)
    {
        json_t *mine = json_object_get(to, key);

        if (mine != NULL)
            merge_reference(mine, r);
        else
            json_object_set(to, key, r);
    }
}

/* ---------------------------------------------------------------- connections */

static void print_peer(const union address *a, char *out, size_t cap)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (a->sa.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof(host));
        snprintf(out, cap, "[%s]:%u", host, (unsigned)ntohs(a->v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof(host));
        snprintf(out, cap, "%s:%u", host, (unsigned)ntohs(a->v4.sin_port));
    }
}

struct connection_sink {
    json_t *into;
    unsigned worker;
};

static void add_connection(const union address *a, const struct conn *c, void *ctx)
{
    struct connection_sink *sink = ctx;
    struct conn_info info;
    char address[64];
    json_t *o = json_object();

    conn_info(c, &info);
    print_peer(a, address, sizeof(address));
    json_object_set_new(o, "address", json_string(address));
    put_int(o, "worker", sink->worker);
    json_object_set_new(o, "state", json_string(conn_state_name(info.state)));
    put_int(o, "local_port", info.local_port);
    put_int(o, "in_flight", info.in_flight);
    put_int(o, "age_ms", info.age_ms);
    put_int(o, "idle_ms", info.idle_ms);
    put_int(o, "buffered", info.buffered);
    json_object_set_new(o, "readonly", json_boolean(info.readonly));
    json_array_append_new(sink->into, o);
}

void report_connections(struct worker *w, json_t *into)
{
    struct connection_sink sink = {into, w->index};

    peers_each_conn(w->httpd.peers, add_connection, &sink);
}

/* ---------------------------------------------------------------- metrics */

static void label(struct buf *b, const char *name, const char *value)
{
    metrics_label(b, name, str_from(value));
}

static const char *labels_of(struct buf *b)
{
    buf_add_u8(b, '\0');
    b->len--; /* the text goes on behind what is there */
    return b->data != NULL ? (const char *)b->data : "";
}

static void add_route(struct metrics *m, const struct route_stats *s, struct buf *b)
{
    char status[8];

    for (size_t i = 0; i < s->n_seen; i++) {
        buf_truncate(b, 0);
        label(b, "http_request_method",
              s->seen[i].method < HTTP_METHODS ? http_method_names[s->seen[i].method] : "_OTHER");
        label(b, "http_route", s->path);
        snprintf(status, sizeof(status), "%u", s->seen[i].status);
        label(b, "http_response_status_code", status);
        metrics_add_hist(m, METRIC_HTTP_DURATION, labels_of(b), s->seen[i].hist);
    }
    for (enum outcome o = OUTCOME_OK; o < OUTCOMES; o++) {
        if (s->errors[o] == 0)
            continue;
        buf_truncate(b, 0);
        label(b, "code", outcome_row(o)->code);
        label(b, "route", s->name);
        metrics_add(m, METRIC_ERRORS, labels_of(b), (double)s->errors[o]);
    }
    buf_truncate(b, 0);
    label(b, "route", s->name);
    metrics_add(m, METRIC_REQUEST_BYTES, labels_of(b), (double)s->bytes_in);
    metrics_add(m, METRIC_RESPONSE_BYTES, labels_of(b), (double)s->bytes_out);
}

struct metrics_sink {
    struct metrics *m;
    struct buf *b;
    bool per_provider;
};

static void add_endpoint_metrics(struct metrics_sink *sink, const struct ref *r,
                                 const struct endpoint *ep)
{
    char address[URL_HOST_PORT_CAP];
    struct str provider = {address, url_print_host_port(ep->provider->host, ep->provider->port,
                                                        address, sizeof(address))};

    for (int failed = 0; failed < 2; failed++) {
        buf_truncate(sink->b, 0);
        label(sink->b, "service", r->key_text);
        metrics_label(sink->b, "provider", provider);
        label(sink->b, "result", failed ? "error" : "ok");
        metrics_add(sink->m, METRIC_PROVIDER_CALLS, labels_of(sink->b),
                    (double)(failed ? ep->errors : ep->calls - ep->errors));
    }
}

static void add_ref_metrics(struct ref *r, void *ctx)
{
    struct metrics_sink *sink = ctx;

    if (r->state != REF_KNOWN || (r->calls == 0 && r->pins == 0))
        return;
    buf_truncate(sink->b, 0);
    label(sink->b, "service", r->key_text);
    metrics_add(sink->m, METRIC_IN_FLIGHT, labels_of(sink->b), r->in_flight);
    metrics_add(sink->m, METRIC_PROVIDER_EJECTIONS, labels_of(sink->b), (double)r->ejections);
    metrics_add(sink->m, METRIC_PROVIDERS_EJECTED, labels_of(sink->b), (double)r->n_ejected);
    for (size_t i = 0; sink->per_provider && i < r->n_endpoints; i++)
        add_endpoint_metrics(sink, r, ref_endpoint(r, i));
}

static void add_calls(struct metrics *m, const struct calls *cs)
{
    static const char *const reasons[RETRY_CONDITIONS] = {
        [RETRY_CONNECT_FAILURE] = "connect_failure",
        [RETRY_NOT_EXPORTED] = "not_exported",
        [RETRY_BUSY] = "busy",
        [RETRY_REJECTED] = "rejected",
        [RETRY_CONNECTION_LOST] = "connection_lost",
        [RETRY_TIMEOUT] = "timeout",
    };
    char labels[64];

    for (size_t i = RETRY_CONNECT_FAILURE; i < RETRY_CONDITIONS; i++) {
        snprintf(labels, sizeof(labels), "reason=\"%s\"", reasons[i]);
        metrics_add(m, METRIC_RETRIES, labels, (double)counter_get(&cs->retries[i]));
    }
    metrics_add(m, METRIC_RETRY_BUDGET_EXHAUSTED, "", (double)counter_get(&cs->budget_exhausted));
}

static void add_clients(struct metrics *m, const struct exchanges *h)
{
    static const char *const phases[PHASES] = {"headers", "body", "call", "write", "idle"};
    char labels[64];

    for (size_t i = 0; i < PHASES; i++) {
        snprintf(labels, sizeof(labels), "phase=\"%s\"", phases[i]);
        metrics_add(m, METRIC_CLIENT_CONNECTIONS, labels, h->n_phase[i]);
        metrics_add(m, METRIC_CLIENT_TIMEOUTS, labels, (double)counter_get(&h->stats.timeouts[i]));
    }
    metrics_add(m, METRIC_CLIENT_CONNECTIONS_TOTAL, "",
                (double)counter_get(&h->stats.connections_total));
}

static void add_wire_metrics(const struct wire_stats *s, struct metrics *into)
{
    const struct {
        enum metric what;
        const struct counter *value;
    } rows[] = {
        {METRIC_PROVIDER_CONNECTS, &s->connects},
        {METRIC_PROVIDER_CONNECT_FAILURES, &s->connect_failures},
        {METRIC_PROVIDER_CONNECTIONS_LOST, &s->connections_lost},
        {METRIC_PROVIDER_READONLY_EVENTS, &s->readonly_events},
        {METRIC_PROVIDER_HEARTBEATS, &s->heartbeats_sent},
        {METRIC_PROTOCOL_ERRORS, &s->protocol_errors},
        {METRIC_LATE_RESPONSES, &s->late_responses},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        metrics_add(into, rows[i].what, "", (double)counter_get(rows[i].value));
}

void report_metrics(struct worker *w, struct metrics *into)
{
    struct httpd *h = &w->httpd;
    struct buf b;
    struct metrics_sink sink = {into, &b, h->gen->settings->metrics.per_provider};

    buf_init(&b, 65536);
    for (const struct route_stats *s = h->stats; s != NULL; s = s->hh.next)
        add_route(into, s, &b);
    refs_each(h->refs, add_ref_metrics, &sink);
    add_calls(into, &h->calls);
    add_clients(into, &h->http);
    metrics_add(into, METRIC_HTTP_ACTIVE, "", h->n_requests);
    add_wire_metrics(&w->w.stats, into);
    metrics_add(into, METRIC_JSON_CYCLES, "", (double)counter_get(&h->cycles));
    metrics_add(into, METRIC_LOG_DROPPED, "log=\"access\"", (double)counter_get(&h->log.dropped));
    buf_free(&b);
}
