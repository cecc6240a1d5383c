#include "gateway/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "codec/invoke.h"
#include "gateway/call_routing.h"
#include "gateway/call_try.h"

enum {
    KEEP_MIDDLE = 16 * 1024, /* larger request buffers go back to malloc */
    MIN_TRY_MS = 5,          /* no try starts with less time left */
    PROBLEM_LINE = 512,
};

enum step { STEP_MORE, STEP_WAIT };

static enum step step_start(struct call *c);
static enum step step_wait_providers(struct call *c);
static enum step step_pick(struct call *c);
static enum step step_wait(struct call *c);

#define S(state) (1U << (state))

/* One row per state: its step, and the only states that may follow it. */
static const struct {
    enum step (*step)(struct call *c);
    unsigned next;
} states[CALL_STATES] = {
    [CALL_START] = {step_start, S(CALL_WAIT_PROVIDERS) | S(CALL_PICK) | S(CALL_END)},
    [CALL_WAIT_PROVIDERS] = {step_wait_providers, S(CALL_PICK) | S(CALL_END)},
    /* to itself: no socket, or no way to the address; the next provider */
    [CALL_PICK] = {step_pick, S(CALL_PICK) | S(CALL_WAIT_CONN) | S(CALL_SENT) | S(CALL_END)},
    [CALL_WAIT_CONN] = {step_wait, S(CALL_PICK) | S(CALL_SENT) | S(CALL_END)},
    [CALL_SENT] = {step_wait, S(CALL_PICK) | S(CALL_END)},
    [CALL_END] = {step_wait, 0},
};

/* The only place where a state changes: gauges cannot get out of step. */
static enum step enter(struct call *c, enum call_state to)
{
    ASSERT(states[c->state].next & S(to));

    c->home->in_state[c->state]--;
    c->home->in_state[to]++;
    c->state = to;
    return STEP_MORE;
}

static void run(struct call *c)
{
    while (states[c->state].step(c) == STEP_MORE)
        continue;
}

/* ---------------------------------------------------------------- ends */

static void finish(struct call *c, enum outcome o)
{
    struct calls *cs = c->home;

    if (c->state == CALL_END)
        return; /* the first end wins */
    /* first: an endpoint that left the list takes its connection along */
    if (c->flight.conn != NULL)
        conn_cancel(&c->flight, o == OUTCOME_PROVIDER_TIMEOUT);
    call_try_end(c, o);
    refs_unpark(&c->waiter);
    ev_timer_stop(cs->w->loop, &c->timer);
    if (c->retrying)
        cs->retries_in_flight--;
    c->retrying = false;
    if (c->counted) {
        c->plan.ref->in_flight--;
        c->plan.ref->errors += o != OUTCOME_OK ? 1U : 0U;
        cs->in_flight--;
    }
    c->counted = false;
    c->outcome = c->problem.outcome = o;
    counter_add(&cs->ended[o], 1);
    enter(c, CALL_END);
    c->on_end(c);
}

static void fail(struct call *c, enum outcome o, const char *detail)
{
    if (c->state == CALL_END)
        return;
    problem_set(&c->problem, o, "%s", detail);
    finish(c, o);
}

/* The budget protects providers from more load.  A try that never reached one was no load: when a provider
 * dies, all calls that were on their way to it move on. */
static bool budget_allows(struct call *c, enum retry_condition why)
{
    const struct calls *cs = c->home;
    unsigned share = cs->in_flight * c->plan.budget_percent / 100;
    unsigned allowed = share > c->plan.budget_min ? share : c->plan.budget_min;

    if (why == RETRY_CONNECT_FAILURE || c->retrying || cs->retries_in_flight < allowed)
        return true;
    counter_add(&c->home->budget_exhausted, 1);
    return false;
}

static bool condition_listed(const struct call_plan *p, enum retry_condition why)
{
    if (why == RETRY_NEVER)
        return false;
    if (why == RETRY_CONNECTION_LOST || why == RETRY_TIMEOUT)
        return p->idempotent && (p->idempotent_conditions & (1U << why)) != 0;
    return (p->conditions & (1U << why)) != 0;
}

/* May another provider be asked?  docs/OPERATIONS.md section 2.6 */
static bool may_retry(struct call *c, enum outcome o)
{
    return c->plan.attempts != 0 && c->tries - c->unreached <= c->plan.attempts &&
           c->tries < CALL_TRIES_MAX && condition_listed(&c->plan, outcome_row(o)->retry) &&
           c->deadline_ms > c->home->w->now_ms + MIN_TRY_MS &&
           budget_allows(c, outcome_row(o)->retry);
}

/* docs/PROTOCOL.md section 17: from 3.x on a rejection is how a provider says that it has no such service. */
static enum outcome told_outcome(const struct call *c, enum outcome o)
{
    struct str release = c->endpoint->provider->release;
    bool is_3x = release.n != 0 && release.p[0] >= '3';

    return o == OUTCOME_PROVIDER_REJECTED_REQUEST && is_3x ? OUTCOME_PROVIDER_NOT_FOUND : o;
}

/* A try ended badly: the next one, or the end.  The problem's detail is set by the caller. */
static void try_failed(struct call *c, enum outcome o)
{
    if (c->state == CALL_END)
        return;
    c->failed = told_outcome(c, o);
    c->failed_why = outcome_row(o)->retry;
    if (c->failed_why == RETRY_CONNECT_FAILURE)
        c->unreached++; /* no provider saw this try: it is none of the plan's attempts */
    if (!may_retry(c, o)) {
        finish(c, c->failed);
        return;
    }
    call_try_end(c, o);
    enter(c, CALL_PICK);
    run(c);
}

static void count_retry(struct call *c)
{
    counter_add(&c->home->retries[c->failed_why], 1);
    if (!c->retrying)
        c->home->retries_in_flight++;
    c->retrying = true;
}

/* ---------------------------------------------------------------- flight */

static void set_timer(struct call *c, uint64_t at_ms);

/* First line, cut: provider texts may hold addresses and stack traces in what follows. */
static void keep_text(struct call *c, struct str text)
{
    size_t n = str_find(text, '\n');

    if (n >= PROBLEM_LINE)
        n = PROBLEM_LINE - 1;
    while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--; /* not inside a character */
    snprintf(c->problem.detail, sizeof(c->problem.detail), STR_FMT, STR_ARG(str_sub(text, 0, n)));
}

static void keep_exception(struct call *c, const struct reply *r)
{
    struct problem *p = &c->problem;

    snprintf(p->exception_class, sizeof(p->exception_class), STR_FMT, STR_ARG(r->exception_class));
    keep_text(c, r->exception_message);
    snprintf(p->exception_message, sizeof(p->exception_message), "%s", p->detail);
}

static void on_reply(struct flight *f, const struct frame *head, const uint8_t *body)
{
    struct call *c = container_of(f, struct call, flight);
    size_t json_before = c->json->len;
    struct reply r = {0};
    enum reply_result result = REPLY_TOO_LARGE;
    enum outcome o = OUTCOME_OK;

    if (body != NULL)
        result = reply_decode(c->home->decoder, head, body, c->plan.reply, c->json, &r,
                              c->on_attachment, c);
    o = outcome_of_reply(&r, result, c->plan.ref->key.interface, c->plan.method);
    c->kind = r.kind;
    c->cycles = r.cycles;
    if (o == OUTCOME_OK) {
        finish(c, OUTCOME_OK);
        return;
    }
    buf_truncate(c->json, json_before);
    /* other texts of providers hold addresses and stack traces: the outcome's own sentence serves */
    c->problem.detail[0] = '\0';
    if (result == REPLY_OK && r.kind == REPLY_EXCEPTION)
        keep_exception(c, &r);
    else if (r.text.n != 0)
        log_notice("call", "%s: status %u: " STR_FMT, c->provider, r.status,
                   STR_ARG(str_sub(r.text, 0, PROBLEM_LINE)));
    try_failed(c, o);
}

static void on_fail(struct flight *f, enum flight_failure why)
{
    struct call *c = container_of(f, struct call, flight);

    c->problem.detail[0] = '\0';
    try_failed(c,
               why == FLIGHT_UNREACHABLE ? OUTCOME_PROVIDER_UNREACHABLE : OUTCOME_CONNECTION_LOST);
}

static void on_written(struct flight *f)
{
    struct call *c = container_of(f, struct call, flight);

    if (c->state == CALL_WAIT_CONN)
        enter(c, CALL_SENT);
    if (c->plan.one_way) {
        c->kind = REPLY_NULL;
        finish(c, OUTCOME_OK);
    }
}

static void on_list(struct ref_waiter *w)
{
    run(container_of(w, struct call, waiter));
}

/* ---------------------------------------------------------------- deadline */

static void on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
    struct call *c = container_of(t, struct call, timer);

    if (c->state == CALL_WAIT_PROVIDERS) {
        fail(c, OUTCOME_STARTING, "no list of providers yet");
        return;
    }
    if (c->state == CALL_WAIT_CONN && clock_ms() >= c->deadline_ms) {
        fail(c, OUTCOME_PROVIDER_UNREACHABLE, "no connection to a provider in time");
        return;
    }
    if (clock_ms() + MIN_TRY_MS < c->deadline_ms) { /* only this try's time is up */
        if (c->flight.conn != NULL)
            conn_cancel(&c->flight, true);
        c->problem.detail[0] = '\0';
        set_timer(c, c->deadline_ms);
        try_failed(c, OUTCOME_PROVIDER_TIMEOUT);
        return;
    }
    fail(c, OUTCOME_PROVIDER_TIMEOUT, "no answer from the provider in time");
}

static void set_timer(struct call *c, uint64_t at_ms)
{
    struct ev_loop *loop = c->home->w->loop;
    uint64_t now = clock_ms();
    double in_s = at_ms > now ? (double)(at_ms - now) / 1000. : 0.;

    ev_timer_stop(loop, &c->timer);
    /* relative to now, not to the start of the turn: libev adds its own idea of the time */
    ev_timer_set(&c->timer, in_s + (ev_time() - ev_now(loop)), 0.);
    ev_timer_start(loop, &c->timer);
}

/* The provider's own timeout counts where the operator set none, a configurator's in any case (docs/REGISTRY.md
 * section 2.5). */
static void adopt_timeout(struct call *c, const struct provider *p)
{
    bool written = false;
    uint32_t own = provider_timeout_ms(p, c->plan.method, &written);

    if (own == 0 || c->tries != 0 || c->plan.timeout_of_client ||
        (c->plan.timeout_explicit && !written))
        return;
    if (own > c->plan.max_timeout_ms)
        own = c->plan.max_timeout_ms;
    c->deadline_ms = c->start_us / 1000 + own;
}

/* ---------------------------------------------------------------- steps */

static enum step step_start(struct call *c)
{
    struct calls *cs = c->home;
    struct ref *ref = c->plan.ref;

    if (ref->in_flight >= c->plan.max_requests) {
        fail(c, OUTCOME_GATEWAY_BUSY, "too many calls of this service in flight");
        return STEP_WAIT;
    }
    ref->in_flight++;
    ref->calls++;
    cs->in_flight++;
    c->counted = true;
    refs_touch(ref, cs->w->now_ms);
    if (!ref_is_awaited(ref, c->on_known != NULL))
        return enter(c, CALL_PICK);
    refs_park(ref, &c->waiter);
    uint64_t latest = c->start_us / 1000 + CALL_WAIT_LIST_MS;

    set_timer(c, latest < c->deadline_ms ? latest : c->deadline_ms);
    return enter(c, CALL_WAIT_PROVIDERS);
}

static enum step step_wait_providers(struct call *c)
{
    refs_unpark(&c->waiter);
    if (!ref_is_awaited(c->plan.ref, c->on_known != NULL))
        return enter(c, CALL_PICK);
    refs_park(c->plan.ref, &c->waiter); /* what woke it is one of the two */
    return STEP_WAIT;
}

static size_t frame_length(const struct call *c)
{
    return c->plan.ref->n_prefix + c->middle.len + c->attachments.len;
}

/* NULL when there is nobody to ask; the call has ended then. */
static struct endpoint *pick(struct call *c)
{
    UNFILLED uint64_t allowed[ROUTING_WORDS_MAX];
    struct ref *ref = c->plan.ref;
    struct endpoint *ep = NULL;
    unsigned n_tried = c->tries < CALL_TRIES_MAX ? c->tries : CALL_TRIES_MAX;
    const struct balance_call bc = {
        .method = c->plan.method,
        .tried = c->tried,
        .n_tried = n_tried,
        /* a new connection may stand; an answer would be the same again */
        .tried_too = c->tries <= c->plan.attempts && (c->failed_why == RETRY_CONNECT_FAILURE ||
                                                      c->failed_why == RETRY_CONNECTION_LOST),
        /* of thousands that are down the last one that is not must be found */
        .connected_first = c->unreached != 0,
        .body_len = frame_length(c),
        .wish = &c->plan.wish,
        .allowed = call_route(c, allowed) ? allowed : NULL,
        .outlier = &c->plan.outlier,
    };

    if (ref->state == REF_REFUSED) {
        enum outcome o = outcome_of_refusal(ref->refusal);

        problem_set(&c->problem, o, "no provider for %s", ref->key_text);
        finish(c, o);
        return NULL;
    }
    enum balance_result result = balance_pick(c->home->w, ref, c->plan.balancer, &bc, &ep);

    if (result == BALANCE_OK)
        return ep;
    if (c->tries != 0) {
        finish(c, c->failed);
        return NULL;
    }
    switch (result) {
    case BALANCE_OK:
    case BALANCE_NONE:
        if (call_all_disabled(c)) {
            finish(c, OUTCOME_NO_PROVIDER_AFTER_RULES);
            return NULL;
        }
        problem_set(&c->problem, OUTCOME_NO_PROVIDER, "no provider for %s", ref->key_text);
        finish(c, OUTCOME_NO_PROVIDER);
        return NULL;
    case BALANCE_TOO_LARGE:
        fail(c, OUTCOME_REQUEST_TOO_LARGE, "the encoded request is larger than the provider takes");
        return NULL;
    case BALANCE_RULED_OUT:
        call_route_problem(c);
        finish(c, OUTCOME_NO_PROVIDER_AFTER_RULES);
        return NULL;
    case BALANCE_EJECTED:
        fail(c, OUTCOME_PROVIDER_UNREACHABLE,
             "all providers are ejected, they failed again and again");
        return NULL;
    case BALANCE_DOWN:
        fail(c, OUTCOME_PROVIDER_UNREACHABLE, "no provider can be reached");
        return NULL;
    }
    return NULL;
}

static enum conn_result send_frame(struct call *c, struct conn *k, struct endpoint *ep)
{
    const struct frame_parts parts = {{
        envelope_prefix(ep->envelope),
        buf_str(&c->middle),
        envelope_attachments(ep->envelope),
        buf_str(&c->attachments),
    }};

    c->flight.one_way = c->plan.one_way;
    c->flight.on_reply = on_reply;
    c->flight.on_fail = on_fail;
    c->flight.on_written = c->plan.one_way || conn_state(k) == CONN_CONNECTING ? on_written : NULL;
    return conn_send(k, &c->flight, &parts);
}

static void arm_for_try(struct call *c)
{
    uint64_t at = c->deadline_ms;
    uint64_t try_end = clock_ms() + c->plan.per_try_timeout_ms;

    if (c->plan.per_try_timeout_ms != 0 && try_end < at)
        at = try_end;
    set_timer(c, at);
}

static enum step step_pick(struct call *c)
{
    struct endpoint *ep = NULL;
    struct conn *k = NULL;

    if (c->tries == 0 && c->on_known != NULL && !c->on_known(c))
        finish(c, c->problem.outcome);
    else
        ep = pick(c);
    if (ep == NULL)
        return STEP_WAIT;
    if (c->tries != 0)
        count_retry(c);
    if (ep->in_flight >= c->plan.max_requests_per_provider) {
        fail(c, OUTCOME_GATEWAY_BUSY, "too many calls at the provider in flight");
        return STEP_WAIT;
    }
    adopt_timeout(c, ep->provider);
    k = peer_conn(ep->peer);
    call_try_begin(c, ep);
    if (k == NULL) {
        c->problem.detail[0] = '\0';
        try_failed(c, OUTCOME_PROVIDER_UNREACHABLE);
        return STEP_WAIT;
    }
    bool connecting = conn_state(k) == CONN_CONNECTING;

    switch (send_frame(c, k, ep)) {
    case CONN_OK:
        arm_for_try(c);
        enter(c, connecting ? CALL_WAIT_CONN : CALL_SENT);
        return STEP_WAIT;
    case CONN_BUSY:
        call_try_withdraw(c);
        fail(c, OUTCOME_GATEWAY_BUSY, "too much waits to be sent to the provider");
        return STEP_WAIT;
    case CONN_UNUSABLE:
        c->problem.detail[0] = '\0';
        try_failed(c, OUTCOME_PROVIDER_UNREACHABLE);
        return STEP_WAIT;
    }
    return STEP_WAIT;
}

static enum step step_wait(struct call *c)
{
    return STEP_WAIT;
}

/* ---------------------------------------------------------------- public */

void calls_init(struct calls *cs, struct wctx *w)
{
    *cs = (struct calls){.w = w, .decoder = reply_decoder_new()};
    list_init(&cs->live);
    list_init(&cs->pool);
}

void calls_free(struct calls *cs)
{
    struct list *l = NULL;

    ASSERT(list_empty(&cs->live));

    while ((l = list_take(&cs->pool)) != NULL) {
        struct call *c = container_of(l, struct call, link);

        buf_free(&c->middle);
        buf_free(&c->attachments);
        free(c);
    }
    reply_decoder_free(cs->decoder);
}

struct call *call_new(struct calls *cs)
{
    struct list *l = list_take(&cs->pool);
    struct call *c = l != NULL ? container_of(l, struct call, link) : NULL;

    if (c == NULL) {
        c = xcalloc(1, sizeof(*c));
        buf_init(&c->middle, 0);
        buf_init(&c->attachments, 64 * 1024);
    }
    struct buf middle = c->middle;
    struct buf attachments = c->attachments;

    *c = (struct call){.home = cs, .middle = middle, .attachments = attachments};
    list_init(&c->waiter.link);
    list_init(&c->flight.link);
    list_init(&c->link);
    list_add(&cs->live, &c->link);
    ev_timer_init(&c->timer, on_timer, 0., 0.);
    c->waiter.on_list = on_list;
    c->start_us = clock_us();
    cs->in_state[CALL_START]++;
    return c;
}

void call_start(struct call *c)
{
    ASSERT(c->state == CALL_START && c->on_end != NULL && c->json != NULL);

    counter_add(&c->home->started, 1);
    c->deadline_ms = c->start_us / 1000 + c->plan.timeout_ms;
    run(c);
}

void call_abort(struct call *c, enum outcome why)
{
    if (c->cancel != NULL)
        c->cancel(c);
    fail(c, why, "the gateway is stopping");
}

void call_free(struct call *c)
{
    struct calls *cs = c->home;

    ASSERT(c->state == CALL_END || c->state == CALL_START);

    cs->in_state[c->state]--;
    list_remove(&c->link);
    buf_truncate(&c->middle, 0);
    buf_shrink(&c->middle, KEEP_MIDDLE);
    buf_truncate(&c->attachments, 0);
    list_add(&cs->pool, &c->link);
}
