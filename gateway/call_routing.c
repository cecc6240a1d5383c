#include "gateway/call_routing.h"

#include <string.h>

#include "base/fatal.h"
#include "codec/invoke.h"
#include "gateway/wctx.h"

static bool argument(void *ctx, unsigned index, struct str *out)
{
    const struct call *c = ctx;

    return c->plan.argument != NULL && c->plan.argument(c->user, index, out);
}

static bool attachment(void *ctx, struct str name, struct str *out)
{
    const struct call *c = ctx;

    return invoke_attachment_find(buf_str(&c->attachments), name, out);
}

/* What rules may ask of the call, and the set of all providers. */
static void describe(const struct call *c, struct routing_call *rc, uint64_t *set)
{
    const struct directory *d = c->plan.ref->directory;
    void *ctx = (void *)(uintptr_t)c; /* NOLINT(performance-no-int-to-ptr): only read */
    struct str force = STR_NONE;

    *rc = (struct routing_call){
        .method = c->plan.method, .argument = argument, .attachment = attachment, .ctx = ctx};
    (void)attachment(ctx, STR("dubbo.tag"), &rc->tag);
    (void)attachment(ctx, STR("dubbo.force.tag"), &force);
    rc->force_tag = str_eq_nocase(force, STR("true"));
    memset(set, 0xff, routing_words(d->n) * sizeof(*set));
    if (d->n % 64 != 0)
        set[d->n / 64] = (UINT64_C(1) << d->n % 64) - 1;
}

static const struct routing *routing_of(const struct call *c)
{
    const struct directory *d = c->plan.ref->directory;

    if (d == NULL || d->rules == NULL)
        return NULL;
    ASSERT(routing_words(d->n) <= ROUTING_WORDS_MAX);
    return d->rules->routing;
}

bool call_route(const struct call *c, uint64_t *set)
{
    const struct routing *r = routing_of(c);
    struct routing_call rc;

    if (r == NULL)
        return false;
    describe(c, &rc, set);
    rc.random = wctx_random(c->home->w);
    routing_select(r, &rc, set);
    return true;
}

void call_route_problem(struct call *c)
{
    UNFILLED uint64_t set[ROUTING_WORDS_MAX];
    const struct routing *r = routing_of(c);
    const struct ref *ref = c->plan.ref;
    struct routing_blame blame = {.nobody = false};
    struct routing_call rc;

    if (r != NULL) {
        describe(c, &rc, set);
        routing_explain(r, &rc, set, &blame);
    }
    if (!blame.nobody)
        problem_set(&c->problem, OUTCOME_NO_PROVIDER_AFTER_RULES,
                    "rules leave no usable provider for %s", ref->key_text);
    else if (blame.name != NULL)
        problem_set(&c->problem, OUTCOME_NO_PROVIDER_AFTER_RULES,
                    "rules leave no provider for %s: of %zu providers %zu were left before " STR_FMT
                    " and none after it",
                    ref->key_text, ref->directory->n, blame.n_before, STR_ARG(*blame.name));
    else
        problem_set(&c->problem, OUTCOME_NO_PROVIDER_AFTER_RULES,
                    "rules leave no provider for %s: none of %zu providers has the tag that is "
                    "asked for",
                    ref->key_text, ref->directory->n);
}

bool call_all_disabled(struct call *c)
{
    const struct directory *d = c->plan.ref->directory;

    if (d == NULL || d->n_usable != 0 || d->n_ignored[UNUSABLE_DISABLED] == 0)
        return false;
    problem_set(&c->problem, OUTCOME_NO_PROVIDER_AFTER_RULES,
                "rules leave no provider for %s: configurators disable %zu of %zu",
                c->plan.ref->key_text, d->n_ignored[UNUSABLE_DISABLED], d->n);
    return true;
}
