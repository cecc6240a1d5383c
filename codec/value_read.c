#include "codec/value_read.h"

#include <stdio.h>
#include <string.h>

#include "codec/date.h"
#include "codec/hs2_json.h"
#include "codec/number.h"

enum { BIG_WORDS = 4096, NANOS = 1000000000 };

static void quote(struct hs2_json *j)
{
    buf_add_u8(j->out, '"');
}

/* ---------------------------------------------------------------- numbers */

static bool print_number_text(struct hs2_json *j, struct str text)
{
    if (!j->opts->decimal_as_string && number_is_json(text)) {
        buf_add_str(j->out, text);
        return true;
    }
    quote(j);
    buf_add_str(j->out, text);
    quote(j);
    return true;
}

static bool print_decimal(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->scratch.len;
    bool ok = slot_text(j, s, 0, &j->scratch);

    if (ok)
        ok = print_number_text(
            j, (struct str){(const char *)j->scratch.data + before, j->scratch.len - before});
    buf_truncate(&j->scratch, before);
    return ok;
}

/* mag: a list of ints, most significant first. */
static bool read_words(struct hs2_json *j, struct hs2_mark at, uint32_t *words, size_t *n)
{
    struct hs2_reader *r = j->r;
    struct hs2_mark back = hs2_mark(r);
    struct hs2_token t;
    bool ok = false;

    hs2_jump(r, at);
    t = hs2_next(r);
    ok = t.kind == HS2_LIST && t.count >= 0 && t.count <= BIG_WORDS;
    *n = ok ? (size_t)t.count : 0;
    for (size_t i = 0; ok && i < *n; i++) {
        struct hs2_token w = hs2_next(r);

        ok = w.kind == HS2_INT;
        words[i] = (uint32_t)w.number;
    }
    hs2_jump(r, back);
    return ok;
}

static bool print_big_integer(struct hs2_json *j, const struct value_slots *s)
{
    static _Thread_local uint32_t words[BIG_WORDS];
    size_t before = j->scratch.len;
    int64_t sign = 0;
    size_t n = 0;
    bool ok = s->present[0] && slot_int(j, s, 1, &sign) && read_words(j, s->mark[0], words, &n) &&
              number_add_big(&j->scratch, words, n, sign < 0);

    if (ok)
        ok = print_number_text(
            j, (struct str){(const char *)j->scratch.data + before, j->scratch.len - before});
    buf_truncate(&j->scratch, before);
    return ok;
}

static bool print_atomic_number(struct hs2_json *j, const struct value_slots *s)
{
    int64_t v = 0;

    if (!slot_int(j, s, 0, &v))
        return false;
    number_add_i64(j->out, v);
    return true;
}

static bool print_atomic_boolean(struct hs2_json *j, const struct value_slots *s)
{
    int64_t v = 0;

    if (!slot_int(j, s, 0, &v))
        return false;
    buf_add_str(j->out, v != 0 ? STR("true") : STR("false"));
    return true;
}

/* ---------------------------------------------------------------- texts */

static bool print_text(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->out->len;

    quote(j);
    if (!slot_text(j, s, 0, j->out)) {
        buf_truncate(j->out, before);
        return false;
    }
    quote(j);
    return true;
}

static bool print_uuid(struct hs2_json *j, const struct value_slots *s)
{
    int64_t most = 0;
    int64_t least = 0;

    if (s->present[0])
        return print_text(j, s);
    if (!slot_int(j, s, 1, &most) || !slot_int(j, s, 2, &least))
        return false;
    uint64_t m = (uint64_t)most;
    uint64_t l = (uint64_t)least;

    buf_printf(j->out, "\"%08x-%04x-%04x-%04x-%012llx\"", (unsigned)(m >> 32),
               (unsigned)(m >> 16 & 0xffff), (unsigned)(m & 0xffff), (unsigned)(l >> 48),
               (unsigned long long)(l & UINT64_C(0xffffffffffff)));
    return true;
}

/* A date inside an object (java.sql.Timestamp, Calendar) prints as a date does. */
static bool print_inner(struct hs2_json *j, const struct value_slots *s)
{
    struct hs2_mark back = hs2_mark(j->r);
    bool ok = false;

    if (!slot_is_set(j, s, 0))
        return false;
    hs2_jump(j->r, s->mark[0]);
    ok = hs2_json(j) == HS2_JSON_OK;
    hs2_jump(j->r, back);
    return ok;
}

/* ---------------------------------------------------------------- java.time */

static bool in_range(int64_t v, int64_t lo, int64_t hi)
{
    return v >= lo && v <= hi;
}

static bool ints(struct hs2_json *j, const struct value_slots *s, int64_t *out, unsigned from,
                 unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!slot_int(j, s, from + i, &out[i]))
            return false;
    }
    return true;
}

static bool add_date(struct hs2_json *j, const int64_t v[3])
{
    if (!in_range(v[0], -999999999, 999999999) || !date_is_valid(v[0], (int)v[1], (int)v[2]) ||
        !in_range(v[1], 1, 12))
        return false;
    date_add_iso_date(j->out, v[0], (int)v[1], (int)v[2]);
    return true;
}

static bool add_time(struct hs2_json *j, const int64_t v[4])
{
    if (!in_range(v[0], 0, 23) || !in_range(v[1], 0, 59) || !in_range(v[2], 0, 59) ||
        !in_range(v[3], 0, NANOS - 1))
        return false;
    date_add_iso_time(j->out, (int)v[0], (int)v[1], (int)v[2], (int)v[3]);
    return true;
}

static bool quoted(struct hs2_json *j, size_t before, bool ok)
{
    if (!ok) {
        buf_truncate(j->out, before);
        return false;
    }
    quote(j);
    return true;
}

static bool print_local_date(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->out->len;
    int64_t v[3];

    quote(j);
    return quoted(j, before, ints(j, s, v, 0, 3) && in_range(v[1], 1, 12) && add_date(j, v));
}

static bool print_local_time(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->out->len;
    int64_t v[4];

    quote(j);
    return quoted(j, before, ints(j, s, v, 0, 4) && add_time(j, v));
}

/* The map of getters of 2.6: all seven numbers in one map. */
static bool print_local_date_time_map(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->out->len;
    int64_t v[7];
    bool ok = ints(j, s, v, 0, 7) && in_range(v[1], 1, 12);

    quote(j);
    ok = ok && add_date(j, v);
    buf_add_u8(j->out, 'T');
    return quoted(j, before, ok && add_time(j, v + 3));
}

/* Slots one after another with texts between them. */
static bool print_joined(struct hs2_json *j, const struct value_slots *s, const char *between)
{
    size_t before = j->out->len;
    bool ok = true;

    quote(j);
    ok = slot_text(j, s, 0, j->out);
    if (between[0] != '\0')
        buf_add_u8(j->out, (uint8_t)between[0]);
    return quoted(j, before, ok && slot_text(j, s, 1, j->out));
}

static bool print_local_date_time(struct hs2_json *j, const struct value_slots *s)
{
    return print_joined(j, s, "T");
}

static bool print_with_offset(struct hs2_json *j, const struct value_slots *s)
{
    return print_joined(j, s, "");
}

static bool print_zoned(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->out->len;
    bool ok = print_joined(j, s, "");
    size_t bracket = 0;

    if (!ok)
        return false;
    if (!slot_is_set(j, s, 2))
        return true;
    j->out->len--; /* the closing quote moves */
    bracket = j->out->len;
    buf_add_u8(j->out, '[');
    ok = slot_text(j, s, 2, j->out);
    if (!ok)
        return quoted(j, before, false);
    struct str zone = str_sub(buf_str(j->out), bracket + 1, j->out->len);
    /* a zone that is its own offset is not told twice, as in Java */
    if (zone.n != 0 && (zone.p[0] == 'Z' || zone.p[0] == '+' || zone.p[0] == '-') &&
        str_ends(str_sub(buf_str(j->out), before, bracket), zone))
        buf_truncate(j->out, bracket);
    else
        buf_add_u8(j->out, ']');
    return quoted(j, before, true);
}

static bool print_instant(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->out->len;
    int64_t v[2];
    struct civil c;
    int64_t days = 0;
    int64_t rest = 0;

    if (!ints(j, s, v, 0, 2) ||
        !in_range(v[0], INT64_C(-31557014167219200), INT64_C(31556889864403199)) ||
        !in_range(v[1], 0, NANOS - 1))
        return false;
    days = v[0] / 86400 - (v[0] % 86400 < 0 ? 1 : 0);
    rest = v[0] - days * 86400;
    c = date_civil(days);
    quote(j);
    date_add_iso_date(j->out, c.year, c.month, c.day);
    buf_add_u8(j->out, 'T');
    date_add_iso_time(j->out, (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60),
                      (int)v[1]);
    if (rest % 60 == 0 && v[1] == 0)
        buf_add_str(j->out, STR(":00")); /* an Instant always tells its seconds */
    buf_add_u8(j->out, 'Z');
    return quoted(j, before, true);
}

static void add_fraction(struct buf *out, int64_t nanos)
{
    char text[24];
    int n = snprintf(text, sizeof(text), ".%09lld", (long long)nanos);

    while (n > 1 && text[n - 1] == '0')
        n--;
    buf_add(out, text, (size_t)n);
}

/* java.time.Duration.toString */
static bool print_duration(struct hs2_json *j, const struct value_slots *s)
{
    size_t before = j->out->len;
    int64_t v[2];

    if (!ints(j, s, v, 0, 2) || !in_range(v[1], 0, NANOS - 1))
        return false;
    bool negative = v[0] < 0 && v[1] > 0;
    int64_t total = negative ? v[0] + 1 : v[0];
    int64_t seconds = total % 60;

    buf_add_str(j->out, STR("\"PT"));
    if (total / 3600 != 0)
        buf_printf(j->out, "%lldH", (long long)(total / 3600));
    if (total % 3600 / 60 != 0)
        buf_printf(j->out, "%lldM", (long long)(total % 3600 / 60));
    if (seconds != 0 || v[1] != 0 || total == 0) {
        if (negative && seconds == 0)
            buf_add_str(j->out, STR("-0"));
        else
            number_add_i64(j->out, seconds);
        if (v[1] != 0)
            add_fraction(j->out, negative ? NANOS - v[1] : v[1]);
        buf_add_u8(j->out, 'S');
    }
    return quoted(j, before, true);
}

static bool print_period(struct hs2_json *j, const struct value_slots *s)
{
    static const char units[] = "YMD";
    int64_t v[3];

    if (!ints(j, s, v, 0, 3))
        return false;
    buf_add_str(j->out, STR("\"P"));
    for (int i = 0; i < 3; i++) {
        if (v[i] != 0)
            buf_printf(j->out, "%lld%c", (long long)v[i], units[i]);
    }
    if (v[0] == 0 && v[1] == 0 && v[2] == 0)
        buf_add_str(j->out, STR("0D"));
    quote(j);
    return true;
}

static bool print_year(struct hs2_json *j, const struct value_slots *s)
{
    int64_t v = 0;

    if (!slot_int(j, s, 0, &v))
        return false;
    buf_printf(j->out, "\"%lld\"", (long long)v);
    return true;
}

static bool print_year_month(struct hs2_json *j, const struct value_slots *s)
{
    int64_t v[2];

    if (!ints(j, s, v, 0, 2))
        return false;
    buf_printf(j->out, "\"%04lld-%02lld\"", (long long)v[0], (long long)v[1]);
    return true;
}

static bool print_month_day(struct hs2_json *j, const struct value_slots *s)
{
    int64_t v[2];

    if (!ints(j, s, v, 0, 2))
        return false;
    buf_printf(j->out, "\"--%02lld-%02lld\"", (long long)v[0], (long long)v[1]);
    return true;
}

static bool print_zone_offset(struct hs2_json *j, const struct value_slots *s)
{
    int64_t v = 0;

    if (!slot_int(j, s, 0, &v) || !in_range(v, -64800, 64800))
        return false;
    int64_t a = v < 0 ? -v : v;

    if (v == 0) {
        buf_add_str(j->out, STR("\"Z\""));
        return true;
    }
    buf_printf(j->out, "\"%c%02d:%02d", v < 0 ? '-' : '+', (int)(a / 3600), (int)(a / 60 % 60));
    if (a % 60 != 0)
        buf_printf(j->out, ":%02d", (int)(a % 60));
    quote(j);
    return true;
}

/* ---------------------------------------------------------------- the tables */

#define IO "com.alibaba.com.caucho.hessian.io."
#define J8 IO "java8."

static const struct value_class classes[] = {
    {"java.math.BigDecimal", {"value"}, print_decimal},
    {"java.math.BigInteger", {"mag", "signum"}, print_big_integer},
    {"java.util.UUID", {"value", "mostSigBits", "leastSigBits"}, print_uuid},
    {"java.util.concurrent.atomic.AtomicLong", {"value"}, print_atomic_number},
    {"java.util.concurrent.atomic.AtomicInteger", {"value"}, print_atomic_number},
    {"java.util.concurrent.atomic.AtomicBoolean", {"value"}, print_atomic_boolean},
    {"java.lang.Class", {"name"}, print_text},
    {"java.io.File", {"value"}, print_text},
    {"java.net.URI", {"string"}, print_text},
    {"javax.management.ObjectName", {"value"}, print_text},
    {"java.sql.Date", {"value"}, print_inner},
    {"java.sql.Time", {"value"}, print_inner},
    {"java.sql.Timestamp", {"value"}, print_inner},
    {IO "LocaleHandle", {"value"}, print_text},
    {IO "CalendarHandle", {"date"}, print_inner},
    {J8 "LocalDateHandle", {"year", "month", "day"}, print_local_date},
    {J8 "LocalTimeHandle", {"hour", "minute", "second", "nano"}, print_local_time},
    {J8 "LocalDateTimeHandle", {"date", "time"}, print_local_date_time},
    {J8 "InstantHandle", {"seconds", "nanos"}, print_instant},
    {J8 "DurationHandle", {"seconds", "nanos"}, print_duration},
    {J8 "PeriodHandle", {"years", "months", "days"}, print_period},
    {J8 "YearHandle", {"year"}, print_year},
    {J8 "YearMonthHandle", {"year", "month"}, print_year_month},
    {J8 "MonthDayHandle", {"month", "day"}, print_month_day},
    {J8 "ZoneOffsetHandle", {"seconds"}, print_zone_offset},
    {J8 "ZoneIdHandle", {"zoneId"}, print_text},
    {J8 "OffsetDateTimeHandle", {"dateTime", "offset"}, print_with_offset},
    {J8 "OffsetTimeHandle", {"localTime", "zoneOffset"}, print_with_offset},
    {J8 "ZonedDateTimeHandle", {"dateTime", "offset", "zoneId"}, print_zoned},
};

static const struct value_class map_classes[] = {
    {"java.util.UUID", {"\x01", "mostSignificantBits", "leastSignificantBits"}, print_uuid},
    {"java.time.Instant", {"epochSecond", "nano"}, print_instant},
    {"java.time.Duration", {"seconds", "nano"}, print_duration},
    {"java.time.LocalDate", {"year", "monthValue", "dayOfMonth"}, print_local_date},
    {"java.time.LocalTime", {"hour", "minute", "second", "nano"}, print_local_time},
    {
        "java.time.LocalDateTime",
        {"year", "monthValue", "dayOfMonth", "hour", "minute", "second", "nano"},
        print_local_date_time_map,
    },
};

static const struct value_class *find(const struct value_class *rows, size_t n, struct str class)
{
    for (size_t i = 0; i < n; i++) {
        if (str_is(class, rows[i].name))
            return &rows[i];
    }
    return NULL;
}

const struct value_class *value_find(struct str class)
{
    bool may_be = str_starts(class, STR("java")) || str_starts(class, STR(IO));

    return may_be ? find(classes, ARRAY_LEN(classes), class) : NULL;
}

const struct value_class *value_find_map(struct str class)
{
    return str_starts(class, STR("java.")) ? find(map_classes, ARRAY_LEN(map_classes), class)
                                           : NULL;
}

int8_t value_slot(const struct value_class *v, struct str field)
{
    for (int8_t i = 0; i < VALUE_SLOTS && v->slots[i] != NULL; i++) {
        if (str_is(field, v->slots[i]))
            return i;
    }
    return -1;
}
