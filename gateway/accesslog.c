#include "gateway/accesslog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/json_write.h"

enum { PATH_MAX_LOGGED = 512, SECONDS_TEXT = 19 };

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

static void add_u64(struct buf *b, uint64_t v)
{
    char digits[20];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    buf_add(b, digits + n, sizeof(digits) - n);
}

/* Milliseconds with three decimals. */
static void add_ms(struct buf *b, uint64_t us)
{
    char fraction[4] = {'.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10),
                        (char)('0' + us % 10)};

    add_u64(b, us / 1000);
    buf_add(b, fraction, sizeof(fraction));
}

static void add_text(struct buf *b, const char *key, size_t key_n, struct str value)
{
    if (value.n == 0)
        return;
    buf_add(b, key, key_n);
    json_add_string(b, value);
}
#define ADD_TEXT(b, key, value) add_text((b), ",\"" key "\":", sizeof(",\"" key "\":") - 1, (value))
#define ADD(b, literal)         buf_add((b), literal, sizeof(literal) - 1)

/* The text of the second is made once a second, only the milliseconds per line. */
static void add_stamp(struct accesslog *l, uint64_t wall)
{
    char ms[5] = {'.', (char)('0' + wall / 100 % 10), (char)('0' + wall / 10 % 10),
                  (char)('0' + wall % 10), 'Z'};

    if (wall / 1000 != l->second) {
        char text[TIME_TEXT_LEN + 1];

        time_text(wall, text);
        memcpy(l->stamp, text, SECONDS_TEXT);
        l->second = wall / 1000;
    }
    buf_add(&l->buf, l->stamp, SECONDS_TEXT);
    buf_add(&l->buf, ms, sizeof(ms));
}

static void add_rpc(struct buf *b, const struct access *a)
{
    if (a->interface.n == 0)
        return;
    ADD(b, ",\"rpc\":\"");
    buf_add_str(b, a->interface); /* checked names: nothing to escape */
    ADD(b, "/");
    buf_add_str(b, a->rpc_method);
    ADD(b, "\"");
    ADD_TEXT(b, "rpc_version", a->rpc_version);
    ADD_TEXT(b, "rpc_group", a->rpc_group);
    if (a->provider.n == 0)
        return;
    ADD_TEXT(b, "provider", a->provider);
    ADD(b, ",\"provider_ms\":");
    add_ms(b, a->provider_us);
    ADD(b, ",\"tries\":");
    add_u64(b, a->tries);
}

static void write_json(struct accesslog *l, const struct access *a, bool sampled)
{
    struct buf *b = &l->buf;

    ADD(b, "{\"ts\":\"");
    add_stamp(l, a->wall_ms);
    ADD(b, "\"");
    ADD_TEXT(b, "client_ip", a->client_ip);
    ADD_TEXT(b, "method", a->method);
    ADD_TEXT(b, "path", str_sub(a->path, 0, PATH_MAX_LOGGED));
    ADD_TEXT(b, "route", a->route);
    ADD(b, ",\"status\":");
    add_u64(b, a->status);
    ADD(b, ",\"duration_ms\":");
    add_ms(b, a->duration_us);
    ADD(b, ",\"bytes_in\":");
    add_u64(b, a->bytes_in);
    ADD(b, ",\"bytes_out\":");
    add_u64(b, a->bytes_out);
    ADD_TEXT(b, "request_id", a->request_id);
    ADD_TEXT(b, "trace_id", a->trace_id);
    add_rpc(b, a);
    ADD_TEXT(b, "code", a->code);
    ADD_TEXT(b, "exception", a->exception);
    ADD_TEXT(b, "reason", a->reason);
    if (sampled)
        buf_printf(b, ",\"sample\":%g", l->opts.sample);
    ADD(b, "}\n");
}

/* Inside quotes of the combined form: what could end the quote or the line becomes '?'. */
static void add_quoted(struct buf *b, struct str s)
{
    ADD(b, "\"");
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        buf_add_u8(b, c < 0x20 || c == '"' || c == '\\' || c == 0x7f ? (uint8_t)'?' : c);
    }
    ADD(b, "\"");
}

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
    ADD(b, " rt=");
    add_ms(b, a->duration_us);
    if (a->provider.n != 0) {
        buf_printf(b, " up=" STR_FMT " ut=", STR_ARG(a->provider));
        add_ms(b, a->provider_us);
    }
    buf_printf(b, " id=" STR_FMT, STR_ARG(a->request_id));
    if (a->code.n != 0)
        buf_printf(b, " code=" STR_FMT, STR_ARG(a->code));
    ADD(b, "\n");
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
