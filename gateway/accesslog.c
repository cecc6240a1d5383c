#include "gateway/accesslog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "codec/json_write.h"
#include "codec/utf.h"

enum { PATH_MAX_LOGGED = 512, METHOD_MAX_LOGGED = 64, SECONDS_TEXT = 19, FIXED_PARTS = 640 };

static int open_target(const char *target)
{
    return open(target, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
}

bool accesslog_open(struct accesslog *l, const struct accesslog_opts *opts, struct err *e)
{
    *l = (struct accesslog){.opts = *opts, .fd = -1, .random = wall_ms() | 1U};
    buf_init(&l->buf, opts->buffer + 65536);
    if (strcmp(opts->target, "none") == 0)
        return true;
    l->fd = strcmp(opts->target, "stdout") == 0 ? STDOUT_FILENO : open_target(opts->target);
    if (l->fd < 0)
        err_set(e, "cannot open %s: %s", opts->target, strerror(errno));
    return l->fd >= 0;
}

void accesslog_flush(struct accesslog *l)
{
    if (l->buf.len == 0)
        return;
    if (write(l->fd, l->buf.data, l->buf.len) != (ssize_t)l->buf.len)
        counter_add(&l->dropped, 1);
    buf_truncate(&l->buf, 0);
    l->first_ms = 0;
}

void accesslog_close(struct accesslog *l)
{
    accesslog_flush(l);
    if (l->fd > STDERR_FILENO)
        close(l->fd);
    l->fd = -1;
    buf_free(&l->buf);
}

void accesslog_reopen(struct accesslog *l)
{
    int fd = -1;

    if (l->fd <= STDERR_FILENO)
        return;
    accesslog_flush(l);
    fd = open_target(l->opts.target);
    if (fd < 0)
        return; /* the old file goes on taking lines */
    close(l->fd);
    l->fd = fd;
}

void accesslog_tick(struct accesslog *l, uint64_t now_ms)
{
    if (l->first_ms != 0 && now_ms - l->first_ms >= l->opts.flush_ms)
        accesslog_flush(l);
}

/* ---------------------------------------------------------------- lines */

/* A line is written into room that was reserved for the longest it can be: nothing is checked on the way. */
struct line {
    uint8_t *p;
    uint8_t *end;
};

static void put(struct line *l, const char *p, size_t n)
{
    memcpy(l->p, p, n);
    l->p += n;
}
#define PUT(l, literal) put((l), literal, sizeof(literal) - 1)

static void put_u64(struct line *l, uint64_t v)
{
    char digits[20];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    put(l, digits + n, sizeof(digits) - n);
}

/* Milliseconds with three decimals. */
static void put_ms(struct line *l, uint64_t us)
{
    const char fraction[4] = {'.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10),
                              (char)('0' + us % 10)};

    put_u64(l, us / 1000);
    put(l, fraction, sizeof(fraction));
}

static void put_escaped(struct line *l, struct str value)
{
    struct buf b = {.data = l->p, .cap = (size_t)(l->end - l->p), .limit = (size_t)(l->end - l->p)};

    json_add_string(&b, value);
    ASSERT(b.data == l->p && !b.failed);
    l->p += b.len;
}

static void put_text(struct line *l, const char *key, size_t key_n, struct str value)
{
    if (value.n == 0)
        return;
    put(l, key, key_n);
    if (utf_plain_run((const uint8_t *)value.p, value.n) != value.n) {
        put_escaped(l, value);
        return;
    }
    *l->p++ = '"';
    put(l, value.p, value.n);
    *l->p++ = '"';
}
#define PUT_TEXT(l, key, value) put_text((l), ",\"" key "\":", sizeof(",\"" key "\":") - 1, (value))

/* The text of the second is made once a second, only the milliseconds per line. */
static void put_stamp(struct accesslog *log, struct line *l, uint64_t wall)
{
    const char ms[5] = {'.', (char)('0' + wall / 100 % 10), (char)('0' + wall / 10 % 10),
                        (char)('0' + wall % 10), 'Z'};

    if (wall / 1000 != log->second) {
        char text[TIME_TEXT_LEN + 1];

        time_text(wall, text);
        memcpy(log->stamp, text, SECONDS_TEXT);
        log->second = wall / 1000;
    }
    put(l, log->stamp, SECONDS_TEXT);
    put(l, ms, sizeof(ms));
}

static void put_rpc(struct line *l, const struct access *a)
{
    if (a->interface.n == 0)
        return;
    PUT(l, ",\"rpc\":\"");
    put(l, a->interface.p, a->interface.n); /* checked names: nothing to escape */
    PUT(l, "/");
    put(l, a->rpc_method.p, a->rpc_method.n);
    PUT(l, "\"");
    PUT_TEXT(l, "rpc_version", a->rpc_version);
    PUT_TEXT(l, "rpc_group", a->rpc_group);
    if (a->provider.n == 0)
        return;
    PUT_TEXT(l, "provider", a->provider);
    PUT(l, ",\"provider_ms\":");
    put_ms(l, a->provider_us);
    PUT(l, ",\"tries\":");
    put_u64(l, a->tries);
}

/* Names, quotes and numbers of a line, and six bytes for each byte of a text.  What a client chooses freely is cut, so
 * that no request is too large to be logged. */
static size_t longest_line(const struct access *a)
{
    size_t n = a->client_ip.n + METHOD_MAX_LOGGED + PATH_MAX_LOGGED + a->route.n + a->request_id.n +
               a->trace_id.n + a->interface.n + a->rpc_method.n + a->rpc_version.n +
               a->rpc_group.n + a->provider.n + a->code.n + a->exception.n + a->reason.n;

    return FIXED_PARTS + 6 * n;
}

static void write_json(struct accesslog *log, const struct access *a, bool sampled)
{
    size_t room = longest_line(a);
    uint8_t *begin = buf_reserve(&log->buf, room);
    struct line line = {begin, begin + room};
    struct line *l = &line;

    if (begin == NULL)
        return;
    PUT(l, "{\"ts\":\"");
    put_stamp(log, l, a->wall_ms);
    PUT(l, "\"");
    PUT_TEXT(l, "client_ip", a->client_ip);
    PUT_TEXT(l, "method", str_sub(a->method, 0, METHOD_MAX_LOGGED));
    PUT_TEXT(l, "path", str_sub(a->path, 0, PATH_MAX_LOGGED));
    PUT_TEXT(l, "route", a->route);
    PUT(l, ",\"status\":");
    put_u64(l, a->status);
    PUT(l, ",\"duration_ms\":");
    put_ms(l, a->duration_us);
    PUT(l, ",\"bytes_in\":");
    put_u64(l, a->bytes_in);
    PUT(l, ",\"bytes_out\":");
    put_u64(l, a->bytes_out);
    PUT_TEXT(l, "request_id", a->request_id);
    PUT_TEXT(l, "trace_id", a->trace_id);
    put_rpc(l, a);
    PUT_TEXT(l, "code", a->code);
    PUT_TEXT(l, "exception", a->exception);
    PUT_TEXT(l, "reason", a->reason);
    if (sampled)
        l->p += snprintf((char *)l->p, 32, ",\"sample\":%g", log->opts.sample);
    PUT(l, "}\n");
    buf_commit(&log->buf, (size_t)(l->p - begin));
}

/* Inside quotes of the combined form: what could end the quote or the line becomes '?'. */
static void add_quoted(struct buf *b, struct str s)
{
    buf_add_u8(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        buf_add_u8(b, c < 0x20 || c == '"' || c == '\\' || c == 0x7f ? (uint8_t)'?' : c);
    }
    buf_add_u8(b, '"');
}

#define MS_FMT     "%llu.%03u"
#define MS_ARG(us) (unsigned long long)(us) / 1000, (unsigned)((us) % 1000)

static void write_combined(struct accesslog *l, const struct access *a)
{
    struct buf *b = &l->buf;
    time_t seconds = (time_t)(a->wall_ms / 1000);
    struct tm t = {0};
    char stamp[40];
    char line[PATH_MAX_LOGGED + 64];

    gmtime_r(&seconds, &t);
    strftime(stamp, sizeof(stamp), "%d/%b/%Y:%H:%M:%S +0000", &t);
    snprintf(line, sizeof(line), STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(a->method),
             STR_ARG(str_sub(a->path, 0, PATH_MAX_LOGGED)), STR_ARG(a->version));
    buf_add_str(b, a->client_ip);
    buf_printf(b, " - - [%s] ", stamp);
    add_quoted(b, str_from(line));
    buf_printf(b, " %u %llu \"-\" ", (unsigned)a->status, (unsigned long long)a->bytes_out);
    add_quoted(b, a->user_agent.n != 0 ? a->user_agent : STR("-"));
    buf_printf(b, " rt=" MS_FMT, MS_ARG(a->duration_us));
    if (a->provider.n != 0)
        buf_printf(b, " up=" STR_FMT " ut=" MS_FMT, STR_ARG(a->provider), MS_ARG(a->provider_us));
    buf_printf(b, " id=" STR_FMT, STR_ARG(a->request_id));
    if (a->code.n != 0)
        buf_printf(b, " code=" STR_FMT, STR_ARG(a->code));
    buf_add_u8(b, '\n');
}

static uint64_t next_random(struct accesslog *l)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return l->random;
}

/* Errors and slow requests always, of the rest a share. */
static bool is_wanted(struct accesslog *l, const struct access *a, bool *sampled)
{
    bool always = a->status >= 400 || a->status == 0 ||
                  (l->opts.slow_ms != 0 && a->duration_us >= (uint64_t)l->opts.slow_ms * 1000);

    *sampled = !always && l->opts.sample < 1.;
    return !*sampled || (double)(next_random(l) >> 11) / 9007199254740992. < l->opts.sample;
}

void accesslog_write(struct accesslog *l, const struct access *a)
{
    size_t before = l->buf.len;
    bool sampled = false;

    if (l->fd < 0 || !is_wanted(l, a, &sampled))
        return;
    if (l->opts.format == ACCESSLOG_JSON)
        write_json(l, a, sampled);
    else
        write_combined(l, a);
    if (l->buf.failed) {
        buf_truncate(&l->buf, before);
        counter_add(&l->dropped, 1);
        return;
    }
    counter_add(&l->lines, 1);
    if (l->first_ms == 0)
        l->first_ms = clock_ms();
    if (l->buf.len >= l->opts.buffer)
        accesslog_flush(l);
}
