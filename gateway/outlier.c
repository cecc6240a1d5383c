#include "gateway/outlier.h"

#include "base/fatal.h"
#include "base/log.h"
#include "registry/url.h"
#include "gateway/refs.h"

enum { PAUSE_MS = 1000 };

/* Kept from the first ejection on: nearly all endpoints never need it. */
struct outlier {
    uint64_t until_ms; /* 0 = not ejected */
    uint64_t since_ms;
    uint64_t back_ms; /* when it last came back */
    uint32_t times;   /* ejections that still count */
    bool trial;       /* one call is on its way */
};

bool outlier_is_ejected(const struct endpoint *ep)
{
    return ep->outlier != NULL && ep->outlier->until_ms != 0;
}

uint64_t outlier_left_ms(const struct endpoint *ep, uint64_t now_ms)
{
    return outlier_is_ejected(ep) && ep->outlier->until_ms > now_ms ? ep->outlier->until_ms - now_ms
                                                                    : 0;
}

void outlier_recount(struct ref *r)
{
    r->n_ejected = 0;
    for (size_t i = 0; i < r->n_usable; i++)
        r->n_ejected += outlier_is_ejected(r->usable[i]) ? 1U : 0U;
}

bool outlier_panic(const struct ref *r, const struct outlier_policy *p)
{
    return r->n_ejected * 100 > r->n_usable * (size_t)p->max_percent;
}

/* A connection that was made, and proven by a first answer, after the ejection says more than the clock: the process is
 * another one, or goes on after a halt.  One that connects well and then fails is not asked at every new connection. */
static bool connected_anew(const struct endpoint *ep, const struct outlier *o, uint64_t now_ms)
{
    return peer_ready_since(ep->peer) > o->since_ms &&
           now_ms - o->since_ms >= (uint64_t)(o->times - 1) * PAUSE_MS;
}

enum outlier_use outlier_judge(struct endpoint *ep, uint64_t now_ms)
{
    const struct outlier *o = ep->outlier;

    if (o->until_ms == 0)
        return OUTLIER_IN;
    if (!peer_dial(ep->peer) || o->trial)
        return OUTLIER_OUT;
    return now_ms >= o->until_ms || connected_anew(ep, o, now_ms) ? OUTLIER_TRIAL : OUTLIER_OUT;
}

bool outlier_begin(struct endpoint *ep, uint64_t now_ms)
{
    if (!outlier_is_ejected(ep) || outlier_judge(ep, now_ms) != OUTLIER_TRIAL)
        return false;
    ep->outlier->trial = true;
    return true;
}

static const char *address_of(const struct endpoint *ep, char *out, size_t cap)
{
    url_print_host_port(ep->provider->host, ep->provider->port, out, cap);
    return out;
}

/* Each time it was well for as long as a first ejection takes, one ejection is forgotten. */
static void forgive(struct outlier *o, uint64_t base_ms, uint64_t now_ms)
{
    uint64_t good = base_ms != 0 ? (now_ms - o->back_ms) / base_ms : 0;

    o->times -= good < o->times ? (uint32_t)good : o->times;
}

static void eject(struct ref *r, struct endpoint *ep, const struct outlier_policy *p,
                  uint64_t now_ms)
{
    char address[URL_HOST_PORT_CAP];
    uint64_t ms = 0;

    if (ep->outlier == NULL)
        ep->outlier = xcalloc(1, sizeof(*ep->outlier));
    if (ep->outlier->until_ms == 0)
        forgive(ep->outlier, p->base_ms, now_ms);
    ms = (uint64_t)p->base_ms * ++ep->outlier->times;
    if (ms > p->max_ms)
        ms = p->max_ms;
    ep->outlier->since_ms = now_ms;
    ep->outlier->until_ms = now_ms + ms;
    r->ejections++;
    outlier_recount(r);
    peer_probe(ep->peer);
    log_warn("provider", "%s: %s ejected for %llu ms after %u failures in a row", r->key_text,
             address_of(ep, address, sizeof(address)), (unsigned long long)ms,
             ep->failures_in_a_row);
}

static void restore(struct ref *r, struct endpoint *ep, uint64_t now_ms)
{
    char address[URL_HOST_PORT_CAP];

    ep->outlier->until_ms = 0;
    ep->outlier->back_ms = now_ms;
    outlier_recount(r);
    log_notice("provider", "%s: %s answers again", r->key_text,
               address_of(ep, address, sizeof(address)));
}

void outlier_end(struct ref *r, struct endpoint *ep, const struct outlier_policy *p,
                 enum outlier_result result, bool trial, uint64_t now_ms)
{
    if (UNLIKELY(trial))
        ep->outlier->trial = false;
    switch (result) {
    case OUTLIER_ANSWERED:
        ep->failures_in_a_row = 0;
        if (UNLIKELY(outlier_is_ejected(ep)))
            restore(r, ep, now_ms);
        return;
    case OUTLIER_CALLED_OFF:
        return;
    case OUTLIER_FAILED:
        if (ep->failures_in_a_row < ENDPOINT_FAILURES_MAX)
            ep->failures_in_a_row++;
        /* calls that were on their way when it was ejected do not lengthen its time */
        if (ep->peer != NULL && p->failures != 0 && ep->failures_in_a_row >= p->failures &&
            (trial || !outlier_is_ejected(ep)))
            eject(r, ep, p, now_ms);
        return;
    }
}
