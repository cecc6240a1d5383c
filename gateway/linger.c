#include "gateway/linger.h"

#include "base/fatal.h"

bool linger_begin(struct lingering *l, unsigned in_flight)
{
    if (in_flight < LINGER_MIN || l->n >= LINGER_MAX)
        return false;
    if (l->credit == 0 && ++l->since_probe < LINGER_PROBE)
        return false;
    l->since_probe = 0;
    l->n++;
    return true;
}

void linger_cancel(struct lingering *l)
{
    ASSERT(l->n > 0);

    l->n--;
}

void linger_answered(struct lingering *l)
{
    linger_cancel(l);
    if (l->credit < LINGER_CREDIT)
        l->credit++;
}

void linger_in_vain(struct lingering *l)
{
    linger_cancel(l);
    l->credit -= l->credit < LINGER_LOSS ? l->credit : LINGER_LOSS;
}
