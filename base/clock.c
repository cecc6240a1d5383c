#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fatal.h"

static uint64_t now(clockid_t id, uint64_t per_second)
{
    struct timespec t = {0};

    if (clock_gettime(id, &t) != 0)
        fatal("clock_gettime");
    return (uint64_t)t.tv_sec * per_second +
           (uint64_t)t.tv_nsec / (UINT64_C(1000000000) / per_second);
}

uint64_t clock_us(void)
{
    return now(CLOCK_MONOTONIC, 1000000);
}

uint64_t clock_ms(void)
{
    return now(CLOCK_MONOTONIC, 1000);
}

uint64_t wall_ms(void)
{
    return now(CLOCK_REALTIME, 1000);
}

static void digits(char *at, int value, int width)
{
    while (width-- > 0) {
        at[width] = (char)('0' + value % 10);
        value /= 10;
    }
}

void time_text(uint64_t wall_millis, char out[TIME_TEXT_LEN + 1])
{
    time_t seconds = (time_t)(wall_millis / 1000);
    struct tm t = {0};

    gmtime_r(&seconds, &t);
    memcpy(out, "0000-00-00T00:00:00.000Z", TIME_TEXT_LEN + 1);
    digits(out, t.tm_year + 1900, 4);
    digits(out + 5, t.tm_mon + 1, 2);
    digits(out + 8, t.tm_mday, 2);
    digits(out + 11, t.tm_hour, 2);
    digits(out + 14, t.tm_min, 2);
    digits(out + 17, t.tm_sec, 2);
    digits(out + 20, (int)(wall_millis % 1000), 3);
}
