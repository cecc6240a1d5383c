#include "gateway/httpd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "gateway/httpd_parts.h"
#include "gateway/wiring.h"

/* ---------------------------------------------------------------- requests */

static struct req *req_new(struct httpd *h, struct exchange *x)
{
    struct list *l = list_take(&h->free_requests);
    struct req *r = l != NULL ? container_of(l, struct req, link) : xcalloc(1, sizeof(*r));

    r->home = h;
    r->x = x;
    r->gen = h->gen;
    r->gen->users++;
    r->route = NULL;
    r->policy = NULL;
    r->stats = h->other_stats;
    r->call = NULL;
    r->out = NULL;
    r->outcome = OUTCOME_OK;
    r->refused = r->options = false;
    r->tries = 0;
    r->provider_us = 0;
    r->provider[0] = r->id[0] = r->traceparent[0] = '\0';
    r->key = (struct refkey){0};
    r->method = STR_NONE;
    r->m.n_vars = 0;
    r->m.route = NULL;
    problem_clear(&r->problem);
    h->n_requests++;
    x->user = r;
    return r;
}

static void req_free(struct req *r)
{
    struct httpd *h = r->home;

    if (--r->gen->users == 0 && r->gen != h->gen)
        generation_free(r->gen);
    list_init(&r->link);
    list_add(&h->free_requests, &r->link);
    h->n_requests--;
}

/* ---------------------------------------------------------------- answers */

static void send_answer(struct req *r)
{
    struct out_buf *out = r->out;

    r->out = NULL;
    exchange_answer(r->x, r->answer.status, r->answer.headers, r->answer.n_headers, out);
}

static struct buf *body_of(struct req *r)
{
    if (r->out == NULL)
        r->out = out_buf_get(&r->home->http);
    return &r->out->buf;
}

static void answer_with_problem(struct req *r)
{
    r->outcome = r->problem.outcome;
    answer_problem(&r->answer, r->policy, &r->problem, r->x->request.id, &r->x->arena, body_of(r));
    send_answer(r);
}

/* Before the body was read: what follows on the connection is not ours to find.  Without a body the answer
 * waits for the library's second call: given in the first one, it would close the connection. */
static void refuse_head(struct req *r)
{
    if (!r->x->verdict.has_body) {
        r->refused = true;
        return;
    }
    r->x->close = true;
    answer_begin(&r->answer, r->x->request.id);
    answer_with_problem(r);
}

static void answer_allow(struct req *r)
{
    if (!r->x->verdict.has_body && !r->refused) {
        r->refused = r->options = true;
        return;
    }
    answer_begin(&r->answer, r->x->request.id);
    answer_empty(&r->answer, 204);
    answer_header(&r->answer, STR("Allow"), arena_str(&r->x->arena, str_from(r->problem.allow)));
    exchange_answer(r->x, 204, r->answer.headers, r->answer.n_headers, NULL);
}

/* ---------------------------------------------------------------- head */

static void set_identity(struct req *r)
{
    const struct settings *s = r->gen->settings;
    struct request *q = &r->x->request;

    identity_request_id(q, r->home->w, r->id);
    identity_client_ip(q, s);
    identity_trace(q, s, r->home->w, r->traceparent);
}

static bool find_direct(struct req *r)
{
    switch (direct_match(r->gen->settings, &r->x->request, &r->x->arena, &r->d, &r->problem)) {
    case DIRECT_FOUND:
        r->policy = r->d.policy;
        r->stats = r->home->direct_stats;
        r->key = r->d.key;
        r->method = r->d.method;
        return true;
    case DIRECT_NONE:
        route_not_found(r->gen->routes, &r->x->request, &r->x->arena, &r->problem);
        break;
    case DIRECT_OPTIONS:
        answer_allow(r);
        return false;
    case DIRECT_REFUSED:
        r->stats = r->home->direct_stats;
        break;
    }
    refuse_head(r);
    return false;
}

static bool find_route(struct req *r)
{
    switch (route_match(r->gen->routes, &r->x->request, &r->x->arena, &r->m, &r->problem)) {
    case ROUTE_FOUND:
        r->route = r->m.route;
        r->policy = &r->route->policy;
        r->stats = r->gen->route_stats[r->route->index];
        r->method = r->route->method_name;
        r->x->max_body = r->route->max_body < r->x->max_body ? r->route->max_body : r->x->max_body;
        return true;
    case ROUTE_NONE:
        return find_direct(r);
    case ROUTE_OPTIONS:
        answer_allow(r);
        return false;
    case ROUTE_METHOD:
    case ROUTE_BAD:
        break;
    }
    refuse_head(r);
    return false;
}

static bool within_limits(struct req *r)
{
    const struct httpd *h = r->home;
    const struct settings *s = r->gen->settings;
    const struct exchange *x = r->x;

    if (x->verdict.content_length > x->max_body) {
        problem_set(&r->problem, OUTCOME_REQUEST_TOO_LARGE,
                    "the request body is over the limit of %zu bytes", x->max_body);
    } else if (h->n_requests > wiring_share(s->limits.requests_in_flight, h->n_workers)) {
        problem_set(&r->problem, OUTCOME_GATEWAY_BUSY, "too many requests in flight");
    } else if (h->http.body_bytes + x->verdict.content_length > h->http.limits.memory) {
        problem_set(&r->problem, OUTCOME_GATEWAY_BUSY, "too many request bodies in memory");
    } else {
        return true;
    }
    refuse_head(r);
    return false;
}

static void on_head(struct exchange *x)
{
    struct httpd *h = x->client->home->owner;
    struct req *r = req_new(h, x);

    set_identity(r);
    if (find_route(r))
        within_limits(r);
}

static void on_refused(struct exchange *x, const struct problem *p)
{
    struct httpd *h = x->client->home->owner;
    struct req *r = req_new(h, x);

    set_identity(r);
    r->problem = *p;
    if (p->outcome == OUTCOME_METHOD_NOT_ALLOWED)
        snprintf(r->problem.allow, sizeof(r->problem.allow),
                 "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    answer_begin(&r->answer, x->request.id);
    answer_with_problem(r);
}

/* ---------------------------------------------------------------- the call */

static void on_attachment(void *ctx, struct str name, struct str value)
{
    struct req *r = ((struct call *)ctx)->user;

    answer_attachment(&r->answer, r->route, name, value, &r->x->arena);
}

static void answer_result(struct req *r, struct call *c)
{
    if (r->route != NULL && r->route->oneway) {
        answer_empty(&r->answer, 202);
        buf_truncate(body_of(r), 0);
        send_answer(r);
        return;
    }
    if (c->cycles != 0)
        counter_add(&r->home->cycles, c->cycles);
    if (c->kind == REPLY_NULL)
        buf_truncate(body_of(r), 0);
    problem_clear(&r->problem);
    r->outcome = r->problem.outcome = c->swallowed; /* for the log */
    if (answer_value(&r->answer, r->policy, r->route, body_of(r), &r->x->arena, &r->problem))
        send_answer(r);
    else
        answer_with_problem(r);
}

static void on_end(struct call *c)
{
    struct req *r = c->user;

    r->tries = c->tries;
    r->provider_us = c->provider_us;
    memcpy(r->provider, c->provider, sizeof(r->provider));
    r->call = NULL; /* the answer may end the request */
    if (r->route != NULL && r->route->cluster->settle != NULL)
        r->route->cluster->settle(c);
    if (c->outcome == OUTCOME_METHOD_NOT_FOUND || c->outcome == OUTCOME_AMBIGUOUS_METHOD)
        refs_describe_again(c->plan.ref);
    if (c->outcome == OUTCOME_OK) {
        answer_result(r, c);
    } else {
        r->problem = c->problem;
        if (r->problem.outcome == OUTCOME_PROVIDER_EXCEPTION ||
            r->problem.outcome == OUTCOME_VALIDATION_FAILED)
            answer_map_exception(r->route, &r->problem);
        answer_with_problem(r);
    }
    call_free(c);
}

static void answer_refused(struct req *r)
{
    if (r->options) {
        answer_allow(r);
        return;
    }
    answer_begin(&r->answer, r->x->request.id);
    answer_with_problem(r);
}

static void start_call(struct req *r, struct call *c)
{
    if (r->route != NULL)
        cluster_start(&r->home->clusters, c, r->route->cluster, r->route->forks);
    else
        call_start(c);
}

static void on_request(struct exchange *x)
{
    struct req *r = x->user;
    struct call *c = NULL;
    struct ref *ref = NULL;

    if (r->refused) {
        answer_refused(r);
        return;
    }
    c = call_new(&r->home->calls);
    c->start_us = x->start_us;
    answer_begin(&r->answer, x->request.id);
    if (!req_prepare(r, c)) {
        call_free(c);
        answer_with_problem(r);
        return;
    }
    ref = req_ref(r); /* only now: a bad request asks the registry nothing */
    if (ref == NULL) {
        call_free(c);
        problem_set(&r->problem, OUTCOME_INTERNAL, "no reference");
        answer_with_problem(r);
        return;
    }
    if (r->key.interface.n == 0)
        r->key = ref->key; /* of a configured service; a direct call has its own copy */
    c->plan.ref = ref;
    c->json = body_of(r);
    c->on_end = on_end;
    c->on_attachment = on_attachment;
    c->user = r;
    r->call = c;
    start_call(r, c);
    if (!x->answered)
        exchange_wait(x);
}

/* ---------------------------------------------------------------- done */

static void write_access(struct req *r, uint64_t us, bool complete)
{
    const struct exchange *x = r->x;
    const struct request *q = &x->request;
    bool failed = r->outcome != OUTCOME_OK;
    const struct access a = {
        .wall_ms = r->home->w->wall_ms,
        .duration_us = us,
        .provider_us = r->provider_us,
        .bytes_in = q->body.n,
        .bytes_out = x->bytes_out,
        .status = x->status,
        .tries = r->tries,
        .client_ip = q->client_ip,
        .method = q->method,
        .path = q->path,
        .version = q->version,
        .route = str_from(r->stats->name),
        .request_id = q->id,
        .trace_id = str_sub(str_from(r->traceparent), 3, 35),
        .user_agent = request_header(q, STR("User-Agent")),
        .interface = r->key.interface,
        .rpc_method = r->method,
        .rpc_version = r->key.version,
        .rpc_group = r->key.group,
        .provider = str_from(r->provider),
        .code = failed ? str_from(problem_code(&r->problem)) : STR_NONE,
        .exception = failed ? str_from(r->problem.exception_class) : STR_NONE,
        .reason = !complete ? STR("DC")
                  : failed  ? str_from(outcome_row(r->outcome)->flag)
                            : STR_NONE,
    };

    accesslog_write(&r->home->log, &a);
}

static void on_done(struct exchange *x, bool complete)
{
    struct req *r = x->user;
    uint64_t us = clock_us() - x->start_us;

    if (r == NULL)
        return; /* the connection ended inside a head */
    if (r->call != NULL) {
        /* the client's connection broke while its call ran: nobody is left to answer */
        struct call *c = r->call;

        c->on_end = call_free;
        r->call = NULL;
        call_abort(c, OUTCOME_DRAINING);
    }
    if (r->out != NULL)
        out_buf_put(r->out);
    r->out = NULL;
    if (x->status != 0)
        route_stats_count(r->stats, x->status, x->request.method, us);
    if (r->outcome != OUTCOME_OK)
        r->stats->errors[r->outcome]++;
    r->stats->bytes_in += x->request.body.n;
    r->stats->bytes_out += x->bytes_out;
    if (x->seen_head && (r->route == NULL || r->route->access_log))
        write_access(r, us, complete);
    req_free(r);
}

static bool is_trusted(void *owner, const struct sockaddr *peer)
{
    const struct httpd *h = owner;
    const struct settings *s = h->gen->settings;

    return peer != NULL && networks_contain(s->trusted_proxies, s->trusted_proxies_text.n, peer);
}

/* ---------------------------------------------------------------- life */

void httpd_use_settings(struct httpd *h, struct settings *s)
{
    struct generation *old = h->gen;

    h->gen = generation_new(s, h->refs, &h->stats);
    wiring_peer(s, NULL, &h->asker.opts);
    if (old != NULL && old->users == 0)
        generation_free(old);
}

static const struct exchange_hooks hooks = {
    .on_head = on_head,
    .on_request = on_request,
    .on_refused = on_refused,
    .on_done = on_done,
    .is_trusted = is_trusted,
};

bool httpd_init(struct httpd *h, struct wctx *w, const struct httpd_opts *o, struct err *e)
{
    struct exchange_limits limits;
    struct accesslog_opts ao;
    struct refs_opts ro = {
        .registry = o->registry, .box = o->box, .application = o->settings->consumer.application.p};

    *h = (struct httpd){.w = w, .n_workers = wiring_workers(o->settings)};
    list_init(&h->free_requests);
    wiring_exchange(o->settings, h->n_workers, &limits);
    exchanges_init(&h->http, &limits, &hooks, h);
    calls_init(&h->calls, w);
    clusters_init(&h->clusters, &h->calls);
    wiring_peer(o->settings, NULL, &ro.peer);
    h->peers = peers_new(w);
    h->refs = refs_new(w, h->peers, &ro);
    h->asker = (struct asker){.w = w,
                              .peers = h->peers,
                              .registry = o->registry,
                              .decoder = h->calls.decoder};
    asker_init(&h->asker);
    telnet_init(&h->telnet, w, o->registry);
    h->direct_stats = route_stats_get(&h->stats, STR("direct"), STR("direct"));
    h->other_stats = route_stats_get(&h->stats, STR("-"), STR("_none"));
    wiring_accesslog(o->settings, &ao);
    if (!accesslog_open(&h->log, &ao, e))
        return false;
    httpd_use_settings(h, o->settings);
    return true;
}

void httpd_free(struct httpd *h)
{
    struct list *l = NULL;

    accesslog_close(&h->log);
    generation_free(h->gen); /* the last one: no request is left */
    refs_free(h->refs);
    asker_free(&h->asker);
    telnet_free(&h->telnet);
    peers_free(h->peers);
    clusters_free(&h->clusters);
    calls_free(&h->calls);
    exchanges_free(&h->http);
    while ((l = list_take(&h->free_requests)) != NULL)
        free(container_of(l, struct req, link));
    route_stats_free_all(h->stats);
}

void httpd_on_registry(struct httpd *h, struct registry_mail *m)
{
    if (m->kind == REGISTRY_MAIL_ASK) {
        asker_ask(&h->asker, m->ask);
        m->ask = NULL;
    }
    if (m->kind == REGISTRY_MAIL_TELNET) {
        telnet_ask(&h->telnet, m->telnet);
        m->telnet = NULL;
    }
    refs_apply(h->refs, m);
}

void httpd_tick(struct httpd *h)
{
    accesslog_tick(&h->log, h->w->now_ms);
}

void httpd_cut_calls(struct httpd *h)
{
    /* one that ends may take others along */
    while (!list_empty(&h->calls.live))
        call_abort(container_of(h->calls.live.next, struct call, link), OUTCOME_DRAINING);
}
