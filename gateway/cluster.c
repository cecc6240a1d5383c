#include "gateway/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "gateway/cluster_run.h"

enum { KEEP_JSON = 16 * 1024, ATTACHMENTS_MAX = 256 * 1024 };

static const struct cluster *const modes[] = {
    &cluster_failover, &cluster_failfast,  &cluster_failsafe,
    &cluster_forking,  &cluster_broadcast, &cluster_mergeable,
};

const char *const cluster_names[] = {"failover",  "failfast",  "failsafe", "forking",
                                     "broadcast", "mergeable", NULL};

_Static_assert(ARRAY_LEN(cluster_names) == ARRAY_LEN(modes) + 1, "a name for each row");

const struct cluster *cluster_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (str_is(name, modes[i]->name))
            return modes[i];
    }
    return NULL;
}

/* ---------------------------------------------------------------- runs */

static void init_child(struct cluster_run *r, struct cluster_child *c)
{
    c->run = r;
    buf_init(&c->json, 0);
    buf_init(&c->attachments, ATTACHMENTS_MAX);
}

static struct cluster_run *run_alloc(void)
{
    struct cluster_run *r = xcalloc(1, sizeof(*r));

    for (size_t i = 0; i < CLUSTER_CALLS_MAX; i++)
        init_child(r, &r->children[i]);
    init_child(r, &r->merged);
    arena_init(&r->arena);
    return r;
}

static void on_list(struct ref_waiter *w);
static void on_timer(struct ev_loop *loop, ev_timer *t, int events);

static struct cluster_run *run_new(struct clusters *cs, struct call *front,
                                   const struct cluster *mode, unsigned forks)
{
    struct list *l = list_take(&cs->pool);
    struct cluster_run *r = l != NULL ? container_of(l, struct cluster_run, link) : run_alloc();

    list_init(&r->link);
    list_init(&r->waiter.link);
    r->waiter.on_list = on_list;
    ev_timer_init(&r->timer, on_timer, 0., 0.);
    r->home = cs;
    r->mode = mode;
    r->front = front;
    r->forks = forks;
    r->n_planned = r->n_begun = r->n_open = r->n_failed = r->n_ruled_out = 0;
    r->answer = NULL;
    r->over = r->in_loop = false;
    r->depth = r->tries = 0;
    r->provider_us = r->deadline_ms = 0;
    r->others.n = 0;
    r->n_targets = r->at = 0;
    r->failed_provider[0] = '\0';
    problem_clear(&r->problem);
    return r;
}

static void clean_child(struct cluster_child *c)
{
    buf_truncate(&c->json, 0);
    buf_shrink(&c->json, KEEP_JSON);
    buf_truncate(&c->attachments, 0);
}

/* Back into the pool; no call of it is left. */
static void run_put(struct cluster_run *r)
{
    ASSERT(r->n_open == 0 && r->depth == 0);

    refs_unpark(&r->waiter);
    ev_timer_stop(r->home->calls->w->loop, &r->timer);
    for (size_t i = 0; i < r->n_targets; i++)
        endpoint_release(r->targets[i]);
    r->n_targets = 0;
    for (size_t i = 0; i < CLUSTER_CALLS_MAX; i++)
        clean_child(&r->children[i]);
    clean_child(&r->merged);
    arena_reset(&r->arena);
    r->front->run = NULL;
    r->front->cancel = NULL;
    r->front = NULL;
    list_add(&r->home->pool, &r->link);
}

static void run_free(struct cluster_run *r)
{
    for (size_t i = 0; i < CLUSTER_CALLS_MAX; i++) {
        buf_free(&r->children[i].json);
        buf_free(&r->children[i].attachments);
    }
    buf_free(&r->merged.json);
    buf_free(&r->merged.attachments);
    arena_free(&r->arena);
    free(r->targets);
    free(r);
}

void clusters_init(struct clusters *cs, struct calls *calls)
{
    cs->calls = calls;
    list_init(&cs->pool);
}

void clusters_free(struct clusters *cs)
{
    struct list *l = NULL;

    while ((l = list_take(&cs->pool)) != NULL)
        run_free(container_of(l, struct cluster_run, link));
}

/* ---------------------------------------------------------------- the end */

static void end_calls(struct cluster_run *r)
{
    r->over = true;
    for (size_t i = 0; i < CLUSTER_CALLS_MAX; i++) {
        struct call *c = r->children[i].call;

        if (c == NULL)
            continue;
        r->children[i].call = NULL;
        r->n_open--;
        c->on_end = call_free;
        call_abort(c, OUTCOME_DRAINING);
    }
}

void cluster_answer(struct cluster_run *r, struct cluster_child *c)
{
    r->answer = c;
    end_calls(r);
}

void cluster_fail(struct cluster_run *r)
{
    r->answer = NULL;
    end_calls(r);
}

/* They came while it was not known yet whose answer counts. */
static void tell_attachments(struct call *front, const struct cluster_child *c)
{
    struct str rest = buf_str(&c->attachments);

    while (front->on_attachment != NULL && rest.n != 0) {
        struct str name = str_cut(rest, '\0', &rest);
        struct str value = str_cut(rest, '\0', &rest);

        front->on_attachment(front, name, value);
    }
}

static void give_answer(struct cluster_run *r, struct cluster_child *c)
{
    struct call *front = r->front;
    struct buf json = *front->json;

    front->kind = c->kind;
    front->cycles = c->cycles;
    *front->json = c->json;
    c->json = json;
    memcpy(front->provider, c->provider, sizeof(front->provider));
    tell_attachments(front, c);
    front->outcome = front->problem.outcome = OUTCOME_OK;
}

static void give_problem(struct cluster_run *r)
{
    struct call *front = r->front;

    ASSERT(r->problem.outcome != OUTCOME_OK);

    front->problem = r->problem;
    front->outcome = r->problem.outcome;
    memcpy(front->provider, r->failed_provider, sizeof(front->provider));
}

/* Ends the front when the run is over and nobody stands in the middle of it. */
static void settle(struct cluster_run *r)
{
    struct call *front = r->front;

    if (!r->over || r->depth != 0)
        return;
    front->tries = r->tries;
    front->provider_us = r->provider_us;
    if (r->answer != NULL)
        give_answer(r, r->answer);
    else
        give_problem(r);
    run_put(r);
    front->on_end(front);
}

/* The front is ended by somebody else. */
static void cancel(struct call *front)
{
    struct cluster_run *r = front->run;

    ASSERT(r->depth == 0);

    end_calls(r);
    run_put(r);
}

/* ---------------------------------------------------------------- calls */

/* A call that found nobody left to ask says less than one that was answered. */
static unsigned weight(enum outcome o)
{
    if (o == OUTCOME_PROVIDER_EXCEPTION || o == OUTCOME_VALIDATION_FAILED)
        return 3;
    if (o == OUTCOME_NO_PROVIDER || o == OUTCOME_NO_PROVIDER_AFTER_RULES)
        return 1;
    return o == OUTCOME_OK ? 0 : 2;
}

static void note_failure(struct cluster_run *r, const struct call *c)
{
    r->n_failed++;
    if (weight(c->outcome) <= weight(r->problem.outcome))
        return;
    r->problem = c->problem;
    memcpy(r->failed_provider, c->provider, sizeof(r->failed_provider));
}

static void on_attachment(void *ctx, struct str name, struct str value)
{
    struct cluster_child *c = ((struct call *)ctx)->user;

    if (str_find(name, '\0') != name.n || str_find(value, '\0') != value.n)
        return;
    buf_add_str(&c->attachments, name);
    buf_add_u8(&c->attachments, '\0');
    buf_add_str(&c->attachments, value);
    buf_add_u8(&c->attachments, '\0');
}

static void on_call_end(struct call *c)
{
    struct cluster_child *child = c->user;
    struct cluster_run *r = child->run;
    bool stopping = c->outcome == OUTCOME_DRAINING;

    child->call = NULL;
    child->outcome = c->outcome;
    child->kind = c->kind;
    child->cycles = c->cycles;
    memcpy(child->provider, c->provider, sizeof(child->provider));
    r->tries += c->tries;
    r->provider_us = c->provider_us > r->provider_us ? c->provider_us : r->provider_us;
    r->deadline_ms = c->deadline_ms;
    r->n_open--;
    if (c->outcome != OUTCOME_OK)
        note_failure(r, c);
    if (stopping)
        r->problem = c->problem;
    call_free(c);
    r->depth++;
    if (stopping)
        cluster_fail(r);
    else
        r->mode->ended(r, child);
    r->depth--;
    settle(r);
}

/* Rules may ask for arguments; the front's owner has them. */
static bool front_argument(void *user, unsigned index, struct str *out)
{
    const struct cluster_child *c = user;
    const struct call *front = c->run->front;

    return front->plan.argument(front->user, index, out);
}

void cluster_call(struct cluster_run *r, unsigned slot, const struct call_plan *p)
{
    struct cluster_child *child = &r->children[slot];
    struct call *front = r->front;
    struct call *c = call_new(r->home->calls);

    ASSERT(slot < CLUSTER_CALLS_MAX && child->call == NULL && !r->over && r->depth != 0);

    clean_child(child);
    child->json.limit = front->json->limit;
    child->call = c;
    c->plan = *p;
    if (p->argument != NULL)
        c->plan.argument = front_argument;
    c->middle.limit = front->middle.limit;
    buf_add_str(&c->middle, buf_str(&front->middle));
    buf_add_str(&c->attachments, buf_str(&front->attachments));
    c->json = &child->json;
    c->start_us = front->start_us; /* one deadline for all */
    c->on_end = on_call_end;
    c->on_attachment = on_attachment;
    c->user = child;
    r->n_begun++;
    r->n_open++;
    call_start(c);
}

/* ---------------------------------------------------------------- the beginning */

static void begin(struct cluster_run *r)
{
    struct call *front = r->front;

    r->depth++;
    if (front->on_known == NULL || front->on_known(front)) {
        r->mode->begin(r);
    } else {
        r->problem = front->problem;
        cluster_fail(r);
    }
    r->depth--;
    settle(r);
}

static bool is_awaited(const struct cluster_run *r)
{
    return ref_is_awaited(r->front->plan.ref, r->front->on_known != NULL);
}

static void on_list(struct ref_waiter *w)
{
    struct cluster_run *r = container_of(w, struct cluster_run, waiter);

    refs_unpark(w);
    if (is_awaited(r)) {
        refs_park(r->front->plan.ref, w); /* what woke it is one of the two */
        return;
    }
    ev_timer_stop(r->home->calls->w->loop, &r->timer);
    begin(r);
}

static void on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
    struct cluster_run *r = container_of(t, struct cluster_run, timer);

    problem_set(&r->problem, OUTCOME_STARTING, "no list of providers yet");
    cluster_fail(r);
    settle(r);
}

/* As a call waits. */
static void wait_for_list(struct cluster_run *r)
{
    struct ref *ref = r->front->plan.ref;
    struct ev_loop *loop = r->home->calls->w->loop;
    uint32_t ms = r->front->plan.timeout_ms;

    refs_touch(ref, r->home->calls->w->now_ms);
    refs_park(ref, &r->waiter);
    ms = ms < CALL_WAIT_LIST_MS ? ms : CALL_WAIT_LIST_MS;
    ev_timer_set(&r->timer, ms / 1000. + (ev_time() - ev_now(loop)), 0.);
    ev_timer_start(loop, &r->timer);
}

void cluster_start(struct clusters *cs, struct call *front, const struct cluster *mode,
                   unsigned forks)
{
    struct cluster_run *r = NULL;

    if (mode->plan != NULL)
        mode->plan(&front->plan);
    if (mode->begin == NULL) {
        call_start(front);
        return;
    }
    r = run_new(cs, front, mode, forks);
    front->run = r;
    front->cancel = cancel;
    if (is_awaited(r))
        wait_for_list(r);
    else
        begin(r);
}
