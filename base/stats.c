#include "base/stats.h"

#include <stddef.h>

const uint64_t hist_bounds_us[HIST_BUCKETS - 1] = {
    500,    1000,   2500,   5000,    10000,   25000,   50000,
    100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};

void hist_add(struct hist *h, uint64_t us)
{
    size_t i = 0;

    while (i < HIST_BUCKETS - 1 && us > hist_bounds_us[i])
        i++;
    counter_add(&h->bucket[i], 1);
    counter_add(&h->sum_us, us);
}

void hist_merge(struct hist *to, const struct hist *from)
{
    for (size_t i = 0; i < HIST_BUCKETS; i++)
        counter_add(&to->bucket[i], counter_get(&from->bucket[i]));
    counter_add(&to->sum_us, counter_get(&from->sum_us));
}

uint64_t hist_count(const struct hist *h)
{
    uint64_t n = 0;

    for (size_t i = 0; i < HIST_BUCKETS; i++)
        n += counter_get(&h->bucket[i]);
    return n;
}
