#include "codec/date.h"

#include "codec/number.h"

enum { MS_PER_DAY = 86400000 };

/* Howard Hinnant's civil calendar: years begin in March, so that the leap day is the last of its year. */
struct civil date_civil(int64_t days)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    struct civil c = {.day = (int)(doy - (153 * mp + 2) / 5 + 1),
                      .month = (int)(mp < 10 ? mp + 3 : mp - 9)};

    c.year = yoe + era * 400 + (c.month <= 2 ? 1 : 0);
    return c;
}

int64_t date_days(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2 ? 1 : 0);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + doe - 719468;
}

bool date_is_valid(int64_t year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static void digits(char *at, int value, int width)
{
    while (width-- > 0) {
        at[width] = (char)('0' + value % 10);
        value /= 10;
    }
}

bool date_add_rfc3339(struct buf *out, int64_t ms)
{
    char text[] = "0000-00-00T00:00:00.000Z";
    int64_t days = ms / MS_PER_DAY;
    int64_t rest = ms % MS_PER_DAY;
    struct civil c;

    if (rest < 0) {
        rest += MS_PER_DAY;
        days--;
    }
    c = date_civil(days);
    if (c.year < 0 || c.year > 9999) {
        number_add_i64(out, ms);
        return false;
    }
    digits(text, (int)c.year, 4);
    digits(text + 5, c.month, 2);
    digits(text + 8, c.day, 2);
    digits(text + 11, (int)(rest / 3600000), 2);
    digits(text + 14, (int)(rest / 60000 % 60), 2);
    digits(text + 17, (int)(rest / 1000 % 60), 2);
    digits(text + 20, (int)(rest % 1000), 3);
    buf_add(out, text, sizeof(text) - 1);
    return true;
}

void date_add_iso_date(struct buf *out, int64_t year, int month, int day)
{
    if (year > 9999)
        buf_printf(out, "+%lld", (long long)year);
    else if (year < 0)
        buf_printf(out, "-%04lld", -(long long)year);
    else
        buf_printf(out, "%04lld", (long long)year);
    buf_printf(out, "-%02d-%02d", month, day);
}

void date_add_iso_time(struct buf *out, int hour, int minute, int second, int nano)
{
    buf_printf(out, "%02d:%02d", hour, minute);
    if (second == 0 && nano == 0)
        return;
    buf_printf(out, ":%02d", second);
    if (nano == 0)
        return;
    if (nano % 1000000 == 0)
        buf_printf(out, ".%03d", nano / 1000000);
    else if (nano % 1000 == 0)
        buf_printf(out, ".%06d", nano / 1000);
    else
        buf_printf(out, ".%09d", nano);
}
