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

bool call_route(const struct call *c, uint64_t *set)
{
    const struct directory *d = c->plan.ref->directory;
    void *ctx = (void *)(uintptr_t)c; /* NOLINT(performance-no-int-to-ptr): only read */
    struct str force = STR_NONE;
    struct routing_call rc = {
        .method = c->plan.method, .argument = argument, .attachment = attachment, .ctx = ctx};

    if (d == NULL || d->rules == NULL || d->rules->routing == NULL)
        return false;
    ASSERT(routing_words(d->n) <= ROUTING_WORDS_MAX);

    rc.random = wctx_random(c->home->w);
    (void)attachment(ctx, STR("dubbo.tag"), &rc.tag);
    (void)attachment(ctx, STR("dubbo.force.tag"), &force);
    rc.force_tag = str_eq_nocase(force, STR("true"));
    memset(set, 0xff, routing_words(d->n) * sizeof(*set));
    if (d->n % 64 != 0)
        set[d->n / 64] = (UINT64_C(1) << d->n % 64) - 1;
    routing_select(d->rules->routing, &rc, set);
    return true;
}
