#include "gateway/call_try.h"

#include "base/clock.h"
#include "registry/url.h"

void call_try_begin(struct call *c, struct endpoint *ep)
{
    c->endpoint = ep;
    if (c->tries < CALL_TRIES_MAX)
        c->tried[c->tries] = ep;
    c->tries++;
    balance_note(c->plan.wish.others, ep);
    endpoint_begin(ep);
    c->balance_slot = balance_begin(c->plan.ref, c->plan.balancer, c->plan.method, ep);
    c->trial = UNLIKELY(ep->outlier != NULL) && outlier_begin(ep, c->home->w->now_ms);
    c->try_start_us = clock_us();
    url_print_host_port(ep->provider->host, ep->provider->port, c->provider, sizeof(c->provider));
}

void call_try_withdraw(struct call *c)
{
    struct endpoint *ep = c->endpoint;
    uint64_t now_ms = c->home->w->now_ms;

    c->endpoint = NULL;
    if (--c->tries == 0)
        c->provider[0] = '\0';
    ep->calls--;
    balance_end(ep, c->balance_slot, now_ms, 0);
    outlier_end(c->plan.ref, ep, &c->plan.outlier, OUTLIER_CALLED_OFF, c->trial, now_ms);
    endpoint_end(ep);
}

static void add_latency(struct endpoint *ep, uint64_t us)
{
    uint32_t sample = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;

    ep->latency_us = ep->latency_us == 0 ? sample
                                         : ep->latency_us - ep->latency_us / 8 + sample / 8;
}

/* A client that gives a provider no time must not be able to have it ejected for all. */
static enum outlier_result result_of(const struct call *c, enum outcome o)
{
    if (o == OUTCOME_DRAINING || (o == OUTCOME_PROVIDER_TIMEOUT && c->plan.timeout_of_client))
        return OUTLIER_CALLED_OFF;
    return outcome_row(o)->provider_failure ? OUTLIER_FAILED : OUTLIER_ANSWERED;
}

void call_try_end(struct call *c, enum outcome o)
{
    struct endpoint *ep = c->endpoint;
    enum outlier_result result = result_of(c, o);
    uint64_t now_ms = c->home->w->now_ms;

    if (ep == NULL)
        return;
    c->endpoint = NULL;
    c->provider_us = clock_us() - c->try_start_us;
    if (outcome_row(o)->provider_failure) {
        ep->errors++;
        ep->last_failure = (uint8_t)o;
    }
    if (result == OUTLIER_ANSWERED)
        add_latency(ep, c->provider_us);
    balance_end(ep, c->balance_slot, now_ms, result == OUTLIER_ANSWERED ? c->provider_us + 1 : 0);
    outlier_end(c->plan.ref, ep, &c->plan.outlier, result, c->trial, now_ms);
    endpoint_end(ep); /* it may be gone now */
}
