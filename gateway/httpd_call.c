#include "gateway/httpd_parts.h"
#include "gateway/typing.h"
#include "gateway/wiring.h"

static bool argument_text(void *user, unsigned index, struct str *out)
{
    const struct req *r = user;

    return bind_argument_text(&r->bound, index, &r->x->arena, out);
}

static void plan_call(struct req *r, struct call *c)
{
    struct call_plan *plan = &c->plan;

    wiring_plan(r->policy, r->home->n_workers, plan);
    plan->method = r->method;
    if (r->route == NULL)
        plan->max_timeout_ms = r->gen->settings->direct.max_timeout_ms;
    plan->idempotent = r->route != NULL ? r->route->idempotent
                                        : r->d.method_def != NULL && r->d.method_def->idempotent;
    plan->one_way = r->route != NULL && r->route->oneway;
    plan->reply = &r->reply;
    plan->argument = argument_text;
}

static void fill_attachments(struct req *r, struct call *c)
{
    struct request *q = &r->x->request;

    bind_attachments(r->route != NULL ? &r->m : NULL, r->policy, q, &r->x->arena, &c->attachments);
    if (r->traceparent[0] == '\0')
        return;
    bind_attach(STR("traceparent"), str_from(r->traceparent), &c->attachments);
    if (q->from_trusted_proxy)
        bind_attach(STR("tracestate"), request_header(q, STR("tracestate")), &c->attachments);
}

static bool bind_request(struct req *r)
{
    const struct request *q = &r->x->request;

    if (r->route != NULL)
        return bind_route(&r->m, q, &r->x->arena, &r->bound, &r->problem);
    return bind_direct(&r->d, q, &r->x->arena, &r->bound, &r->problem);
}

/* What consistenthash may ask for; nothing is computed of arguments before it does. */
static void fill_hash_key(struct req *r, struct call *c)
{
    c->plan.wish.args = r->bound.args;
    c->plan.wish.n_args = r->bound.n;
    if (r->policy->hash_policy_text.n == 0)
        return;
    c->plan.wish.hash_key = bind_hash_key(r->route != NULL ? &r->m : NULL, r->policy,
                                          &r->x->request, &r->x->arena);
    if (c->plan.wish.hash_key.p != NULL)
        c->plan.balancer = &balance_consistenthash;
}

/* What this worker has of the reference; NULL: no list yet, or nobody has asked for it. */
static struct ref *known_ref(const struct req *r)
{
    const struct service *s = r->route != NULL ? r->route->service : r->d.service;

    if (s != NULL && r->gen->service_refs[s->index] != NULL)
        return r->gen->service_refs[s->index];
    return r->route == NULL ? refs_known(r->home->refs, &r->key) : NULL;
}

static bool encode(struct req *r, struct call *c, struct ref *ref)
{
    struct definitions *d = ref != NULL ? ref->definitions : NULL;
    bool returns_float = false;

    if (typing_apply(d, r->method, &r->bound, &returns_float, &r->problem) == TYPING_REFUSED) {
        refs_describe_again(ref);
        return false;
    }
    r->reply = r->policy->reply_opts;
    r->reply.result_is_float = returns_float;
    buf_truncate(&c->middle, 0);
    return bind_encode(r->method, &r->bound, &r->policy->args_opts, &c->middle, &r->problem);
}

static bool on_known(struct call *c)
{
    struct req *r = c->user;

    if (c->plan.ref->definitions == NULL || encode(r, c, c->plan.ref))
        return true;
    c->problem = r->problem;
    return false;
}

bool req_prepare(struct req *r, struct call *c)
{
    struct ref *ref = known_ref(r);
    struct str query_timeout = r->route != NULL ? STR_NONE : r->d.timeout;

    plan_call(r, c);
    c->middle.limit = r->gen->settings->limits.request_body * 4 + 65536;
    if (!bind_content_type(&r->x->request, &r->problem) || !bind_request(r) || !encode(r, c, ref))
        return false;
    if ((ref == NULL || (ref->definitions == NULL && ref_is_awaited(ref, true))) &&
        typing_matters(&r->bound))
        c->on_known = on_known;
    fill_attachments(r, c);
    fill_hash_key(r, c);
    return bind_timeout(&r->x->request, query_timeout, c->plan.max_timeout_ms, &c->plan.timeout_ms,
                        &c->plan.timeout_of_client, &r->problem);
}

struct ref *req_ref(struct req *r)
{
    struct httpd *h = r->home;
    const struct service *s = r->route != NULL ? r->route->service : r->d.service;
    struct str registry = s != NULL ? s->registry : r->gen->settings->direct.registry;
    struct err e;

    if (s != NULL && r->gen->service_refs[s->index] != NULL)
        return r->gen->service_refs[s->index];
    if (s != NULL && !refkey_make(s->interface, s->version, s->group, &r->key, &e))
        return NULL; /* the configuration check has refused such a service */
    return refs_get(h->refs, &r->key, registry.n != 0 ? registry.p : NULL);
}
