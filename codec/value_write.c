/*
 * Declared types that need a form of their own: dates, java.time, UUID and the like (docs/JSON.md part A1,
 * docs/HESSIAN2.md section 8).  One row per class.
 */
#include <stdio.h>
#include <string.h>

#include "codec/args_state.h"
#include "codec/date_parse.h"
#include "codec/hs2_write.h"

#define IO "com.alibaba.com.caucho.hessian.io."
#define J8 IO "java8."

/* ---------------------------------------------------------------- dates */

/* A text or whole milliseconds. */
static bool read_millis(struct args_state *s, const struct json_token *t, int64_t *ms)
{
    struct date_fields d;

    if (args_integer(t, INT64_MIN, INT64_MAX, ms))
        return true;
    if (t->kind != JSON_TOKEN_STRING || !date_parse(args_text(s, t), &d) ||
        (d.parts & DATE_HAS_DATE) == 0)
        return false;
    *ms = date_millis(&d, s->opts->utc_offset_s);
    return true;
}

static bool put_date(struct args_state *s, const struct json_token *t, const char *class)
{
    int64_t ms = 0;

    if (!read_millis(s, t, &ms))
        return false;
    hs2_put_date(s->out, ms);
    return true;
}

static bool put_sql_date(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"value"};
    int64_t ms = 0;

    if (!read_millis(s, t, &ms))
        return false;
    args_object(s, class, fields, 1);
    hs2_put_date(s->out, ms);
    return true;
}

static bool put_calendar(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"type", "date"};
    int64_t ms = 0;

    if (!read_millis(s, t, &ms))
        return false;
    args_object(s, class, fields, 2);
    hs2_put_null(s->out);
    hs2_put_date(s->out, ms);
    return true;
}

/* ---------------------------------------------------------------- java.time */

/* A text with exactly these parts; a zone is refused unless asked for. */
static bool read_fields(struct args_state *s, const struct json_token *t, unsigned parts,
                        struct date_fields *d)
{
    return t->kind == JSON_TOKEN_STRING && date_parse(args_text(s, t), d) && d->parts == parts;
}

static void put_date_part(struct args_state *s, const struct date_fields *d)
{
    static const char *const fields[] = {"year", "month", "day"};

    args_object(s, J8 "LocalDateHandle", fields, 3);
    hs2_put_int(s->out, (int32_t)d->year);
    hs2_put_int(s->out, d->month);
    hs2_put_int(s->out, d->day);
}

static void put_time_part(struct args_state *s, const struct date_fields *d)
{
    static const char *const fields[] = {"hour", "minute", "second", "nano"};

    args_object(s, J8 "LocalTimeHandle", fields, 4);
    hs2_put_int(s->out, d->hour);
    hs2_put_int(s->out, d->minute);
    hs2_put_int(s->out, d->second);
    hs2_put_int(s->out, d->nano);
}

static void put_date_time_part(struct args_state *s, const struct date_fields *d)
{
    static const char *const fields[] = {"date", "time"};

    args_object(s, J8 "LocalDateTimeHandle", fields, 2);
    put_date_part(s, d);
    put_time_part(s, d);
}

static void put_offset_part(struct args_state *s, int32_t seconds)
{
    static const char *const fields[] = {"seconds"};

    args_object(s, J8 "ZoneOffsetHandle", fields, 1);
    hs2_put_int(s->out, seconds);
}

static bool put_local_date(struct args_state *s, const struct json_token *t, const char *class)
{
    struct date_fields d;

    if (!read_fields(s, t, DATE_HAS_DATE, &d))
        return false;
    put_date_part(s, &d);
    return true;
}

static bool put_local_time(struct args_state *s, const struct json_token *t, const char *class)
{
    struct date_fields d;

    if (!read_fields(s, t, DATE_HAS_TIME, &d))
        return false;
    put_time_part(s, &d);
    return true;
}

static bool put_local_date_time(struct args_state *s, const struct json_token *t, const char *class)
{
    struct date_fields d;

    if (!read_fields(s, t, DATE_HAS_DATE | DATE_HAS_TIME, &d))
        return false;
    put_date_time_part(s, &d);
    return true;
}

static bool put_offset_date_time(struct args_state *s, const struct json_token *t,
                                 const char *class)
{
    static const char *const fields[] = {"dateTime", "offset"};
    struct date_fields d;

    if (!read_fields(s, t, DATE_HAS_DATE | DATE_HAS_TIME | DATE_HAS_ZONE, &d))
        return false;
    args_object(s, class, fields, 2);
    put_date_time_part(s, &d);
    put_offset_part(s, d.offset_s);
    return true;
}

static bool put_offset_time(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"localTime", "zoneOffset"};
    struct date_fields d;

    if (!read_fields(s, t, DATE_HAS_TIME | DATE_HAS_ZONE, &d))
        return false;
    args_object(s, class, fields, 2);
    put_time_part(s, &d);
    put_offset_part(s, d.offset_s);
    return true;
}

/* The zone's name, or the offset written as Java's ZoneId has it. */
static void put_zone_name(struct args_state *s, const struct date_fields *d)
{
    char text[24] = "Z";
    int a = d->offset_s < 0 ? -d->offset_s : d->offset_s;

    if (d->zone.n != 0) {
        hs2_put_string(s->out, d->zone);
        return;
    }
    if (a != 0 && a % 60 == 0)
        snprintf(text, sizeof(text), "%c%02d:%02d", d->offset_s < 0 ? '-' : '+', a / 3600,
                 a / 60 % 60);
    else if (a != 0)
        snprintf(text, sizeof(text), "%c%02d:%02d:%02d", d->offset_s < 0 ? '-' : '+', a / 3600,
                 a / 60 % 60, a % 60);
    hs2_put_ascii(s->out, str_from(text));
}

/* Made of what zone names and offsets are made of. */
static bool is_zone_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (!word && (c == '\0' || strchr("/_+-:.~", c) == NULL))
            return false;
    }
    return s.n != 0;
}

static bool put_zoned(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"dateTime", "offset", "zoneId"};
    struct date_fields d;

    if (!read_fields(s, t, DATE_HAS_DATE | DATE_HAS_TIME | DATE_HAS_ZONE, &d) ||
        (d.zone.n != 0 && !is_zone_name(d.zone)))
        return false;
    args_object(s, class, fields, 3);
    put_date_time_part(s, &d);
    put_offset_part(s, d.offset_s);
    put_zone_name(s, &d);
    return true;
}

static bool put_instant(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"seconds", "nanos"};
    struct date_fields d = {0};
    int64_t ms = 0;
    int64_t nanos = 0;

    if (!read_millis(s, t, &ms))
        return false;
    nanos = (ms % 1000 + 1000) % 1000 * 1000000;
    if (t->kind == JSON_TOKEN_STRING && date_parse(args_text(s, t), &d))
        nanos = d.nano; /* the text may tell more than milliseconds */
    args_object(s, class, fields, 2);
    hs2_put_long(s->out, ms / 1000 - (ms % 1000 < 0 ? 1 : 0));
    hs2_put_int(s->out, (int32_t)nanos);
    return true;
}

static bool put_duration(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"seconds", "nanos"};
    int64_t seconds = 0;
    int32_t nanos = 0;

    if (t->kind != JSON_TOKEN_STRING || !date_parse_duration(args_text(s, t), &seconds, &nanos))
        return false;
    args_object(s, class, fields, 2);
    hs2_put_long(s->out, seconds);
    hs2_put_int(s->out, nanos);
    return true;
}

static bool put_period(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"years", "months", "days"};
    int32_t v[3];

    if (t->kind != JSON_TOKEN_STRING || !date_parse_period(args_text(s, t), v))
        return false;
    args_object(s, class, fields, 3);
    for (int i = 0; i < 3; i++)
        hs2_put_int(s->out, v[i]);
    return true;
}

static bool put_year(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"year"};
    int64_t v = 0;

    if (!args_integer(t, -999999999, 999999999, &v))
        return false;
    args_object(s, class, fields, 1);
    hs2_put_int(s->out, (int32_t)v);
    return true;
}

/* A text of `n` bytes that is part of a date: the rest is given. */
static bool read_part_of_date(struct str text, size_t n, const char *before, const char *after,
                              struct date_fields *d)
{
    char whole[16];

    return text.n == n &&
           snprintf(whole, sizeof(whole), "%s" STR_FMT "%s", before, STR_ARG(text), after) > 0 &&
           date_parse(str_from(whole), d) && d->parts == DATE_HAS_DATE;
}

/* 2024-05 */
static bool put_year_month(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"year", "month"};
    struct date_fields d;

    if (t->kind != JSON_TOKEN_STRING || !read_part_of_date(args_text(s, t), 7, "", "-01", &d))
        return false;
    args_object(s, class, fields, 2);
    hs2_put_int(s->out, (int32_t)d.year);
    hs2_put_int(s->out, d.month);
    return true;
}

/* --05-04; 2000 had a 29 February */
static bool put_month_day(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"month", "day"};
    struct date_fields d;

    if (t->kind != JSON_TOKEN_STRING || !str_starts(args_text(s, t), STR("--")) ||
        !read_part_of_date(str_sub(args_text(s, t), 1, 8), 6, "2000", "", &d))
        return false;
    args_object(s, class, fields, 2);
    hs2_put_int(s->out, d.month);
    hs2_put_int(s->out, d.day);
    return true;
}

static bool put_zone_offset(struct args_state *s, const struct json_token *t, const char *class)
{
    int32_t v = 0;

    if (t->kind != JSON_TOKEN_STRING || !date_parse_offset(args_text(s, t), &v))
        return false;
    put_offset_part(s, v);
    return true;
}

/* ---------------------------------------------------------------- texts and numbers */

static bool put_text_field(struct args_state *s, const struct json_token *t, const char *class,
                           const char *field)
{
    if (t->kind != JSON_TOKEN_STRING)
        return false;
    args_object(s, class, &field, 1);
    hs2_put_string(s->out, args_text(s, t));
    return true;
}

static bool put_zone_id(struct args_state *s, const struct json_token *t, const char *class)
{
    return t->kind == JSON_TOKEN_STRING && is_zone_name(args_text(s, t)) &&
           put_text_field(s, t, class, "zoneId");
}

static bool is_uuid(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');

        if (dash ? c != '-' : !hex)
            return false;
    }
    return s.n == 36;
}

static bool put_uuid(struct args_state *s, const struct json_token *t, const char *class)
{
    return t->kind == JSON_TOKEN_STRING && is_uuid(args_text(s, t)) &&
           put_text_field(s, t, class, "value");
}

/* zh-CN and zh_CN */
static bool put_locale(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"value"};
    struct str text = t->kind == JSON_TOKEN_STRING ? args_text(s, t) : STR_NONE;
    char name[64];

    if (t->kind != JSON_TOKEN_STRING || text.n >= sizeof(name))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool word = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (!word && c != '_' && c != '-' && c != '#')
            return false;
        name[i] = c;
        if (c == '-')
            name[i] = '_';
    }
    args_object(s, class, fields, 1);
    hs2_put_string(s->out, (struct str){name, text.n});
    return true;
}

static bool put_atomic_long(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"value"};
    int64_t v = 0;

    if (!args_integer(t, INT64_MIN, INT64_MAX, &v))
        return false;
    args_object(s, class, fields, 1);
    hs2_put_long(s->out, v);
    return true;
}

static bool put_atomic_int(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"value"};
    int64_t v = 0;

    if (!args_integer(t, INT32_MIN, INT32_MAX, &v))
        return false;
    args_object(s, class, fields, 1);
    hs2_put_int(s->out, (int32_t)v);
    return true;
}

static bool put_atomic_boolean(struct args_state *s, const struct json_token *t, const char *class)
{
    static const char *const fields[] = {"value"};

    bool yes = t->kind == JSON_TOKEN_TRUE ||
               (t->kind == JSON_TOKEN_STRING && str_is(t->text, "true"));
    bool no = t->kind == JSON_TOKEN_FALSE ||
              (t->kind == JSON_TOKEN_STRING && str_is(t->text, "false"));

    if (!yes && !no)
        return false;
    args_object(s, class, fields, 1);
    hs2_put_int(s->out, yes ? 1 : 0);
    return true;
}

/* ---------------------------------------------------------------- the table */

static const struct {
    struct str declared;
    const char *class; /* on the wire */
    bool (*put)(struct args_state *s, const struct json_token *t, const char *class);
} rows[] = {
    {STR_INIT("java.util.Date"), "", put_date},
    {STR_INIT("java.sql.Date"), "java.sql.Date", put_sql_date},
    {STR_INIT("java.sql.Time"), "java.sql.Time", put_sql_date},
    {STR_INIT("java.sql.Timestamp"), "java.sql.Timestamp", put_sql_date},
    {STR_INIT("java.util.Calendar"), IO "CalendarHandle", put_calendar},
    {STR_INIT("java.util.UUID"), "java.util.UUID", put_uuid},
    {STR_INIT("java.util.Locale"), IO "LocaleHandle", put_locale},
    {STR_INIT("java.util.concurrent.atomic.AtomicLong"), "java.util.concurrent.atomic.AtomicLong",
     put_atomic_long},
    {STR_INIT("java.util.concurrent.atomic.AtomicInteger"),
     "java.util.concurrent.atomic.AtomicInteger", put_atomic_int},
    {STR_INIT("java.util.concurrent.atomic.AtomicBoolean"),
     "java.util.concurrent.atomic.AtomicBoolean", put_atomic_boolean},
    {STR_INIT("java.time.LocalDate"), "", put_local_date},
    {STR_INIT("java.time.LocalTime"), "", put_local_time},
    {STR_INIT("java.time.LocalDateTime"), "", put_local_date_time},
    {STR_INIT("java.time.Instant"), J8 "InstantHandle", put_instant},
    {STR_INIT("java.time.Duration"), J8 "DurationHandle", put_duration},
    {STR_INIT("java.time.Period"), J8 "PeriodHandle", put_period},
    {STR_INIT("java.time.Year"), J8 "YearHandle", put_year},
    {STR_INIT("java.time.YearMonth"), J8 "YearMonthHandle", put_year_month},
    {STR_INIT("java.time.MonthDay"), J8 "MonthDayHandle", put_month_day},
    {STR_INIT("java.time.ZoneId"), J8 "ZoneIdHandle", put_zone_id},
    {STR_INIT("java.time.ZoneOffset"), "", put_zone_offset},
    {STR_INIT("java.time.OffsetDateTime"), J8 "OffsetDateTimeHandle", put_offset_date_time},
    {STR_INIT("java.time.OffsetTime"), J8 "OffsetTimeHandle", put_offset_time},
    {STR_INIT("java.time.ZonedDateTime"), J8 "ZonedDateTimeHandle", put_zoned},
};

bool args_value(struct args_state *s, struct json_token t, const struct jtype *type)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!str_eq(type->name, rows[i].declared))
            continue;
        return rows[i].put(s, &t, rows[i].class) || args_mismatch(s, &t, type->name);
    }
    return args_mismatch(s, &t, type->name);
}
