#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"

static const char *const names[LOG_LEVELS] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info",   [LOG_NOTICE] = "notice",
    [LOG_WARN] = "warn",   [LOG_ERROR] = "error",
};

struct ring_line {
    enum log_level level;
    char *text;
};

static struct {
    pthread_mutex_t lock;
    char *file;
    int fd;
    bool json;
    uint32_t repeat_ms;
    struct ring_line ring[LOG_RING_LINES];
    size_t next;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = STDERR_FILENO};

static atomic_int level_now = LOG_NOTICE;
static atomic_ullong dropped;

const char *log_level_name(enum log_level level)
{
    return level < LOG_LEVELS ? names[level] : "?";
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load_explicit(&level_now, memory_order_relaxed);
}

uint64_t log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

static int open_target(const char *file)
{
    return open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
}

/* With the lock held. */
static void use_fd(int fd)
{
    if (state.fd != STDERR_FILENO)
        close(state.fd);
    state.fd = fd;
}

bool log_open(const struct log_opts *opts, struct err *e)
{
    int fd = STDERR_FILENO;

    if (opts->file != NULL) {
        fd = open_target(opts->file);
        if (fd < 0) {
            err_set(e, "cannot open %s: %s", opts->file, strerror(errno));
            return false;
        }
    }

    pthread_mutex_lock(&state.lock);
    use_fd(fd);
    free(state.file);
    state.file = opts->file != NULL ? strdup(opts->file) : NULL;
    state.json = opts->json;
    state.repeat_ms = opts->repeat_ms;
    pthread_mutex_unlock(&state.lock);
    log_set_level(opts->level);
    return true;
}

void log_reopen(void)
{
    pthread_mutex_lock(&state.lock);
    if (state.file != NULL) {
        int fd = open_target(state.file);

        if (fd >= 0)
            use_fd(fd);
    }
    pthread_mutex_unlock(&state.lock);
}

static void keep_in_ring(enum log_level level, const char *line)
{
    struct ring_line *slot = &state.ring[state.next];

    free(slot->text);
    *slot = (struct ring_line){level, strdup(line)};
    state.next = (state.next + 1) % LOG_RING_LINES;
}

/* Control bytes would let a peer forge lines or drive the operator's terminal. */
static void make_printable(char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = ' ';
    }
}

/* The text inside JSON quotes; cut where `cap` ends. */
static void escape_json(const char *in, char *out, size_t cap)
{
    size_t n = 0;

    for (; *in != '\0' && n + 3 < cap; in++) {
        if (*in == '"' || *in == '\\')
            out[n++] = '\\';
        out[n++] = *in;
    }
    out[n] = '\0';
}

static int format_line(char *line, size_t cap, enum log_level level, const char *module,
                       const char *text, const char *more)
{
    char time[TIME_TEXT_LEN + 1];
    char escaped[LOG_LINE_MAX];

    time_text(wall_ms(), time);
    if (!state.json)
        return snprintf(line, cap, "%s %s %s: %s%s\n", time, names[level], module, text, more);
    escape_json(text, escaped, sizeof(escaped));
    return snprintf(line, cap,
                    "{\"ts\":\"%s\",\"level\":\"%s\",\"module\":\"%s\",\"text\":\"%s%s\"}\n", time,
                    names[level], module, escaped, more);
}

/* False while the site has to keep quiet. */
static bool site_may_write(struct log_site *site, uint32_t *held_back)
{
    uint64_t now = clock_ms();

    if (state.repeat_ms != 0 && site->last_ms != 0 && now - site->last_ms < state.repeat_ms) {
        site->held_back++;
        return false;
    }
    site->last_ms = now;
    *held_back = site->held_back;
    site->held_back = 0;
    return true;
}

void log_write(struct log_site *site, enum log_level level, const char *module, const char *fmt,
               ...)
{
    char text[LOG_LINE_MAX - 128];
    char line[LOG_LINE_MAX + 128];
    char more[40] = "";
    uint32_t held_back = 0;
    va_list ap;
    int n = 0;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    make_printable(text);

    pthread_mutex_lock(&state.lock);
    if (site == NULL || site_may_write(site, &held_back)) {
        if (held_back != 0)
            snprintf(more, sizeof(more), " (%u like it left out)", held_back);
        n = format_line(line, sizeof(line), level, module, text, more);
        if (n >= (int)sizeof(line))
            n = (int)sizeof(line) - 1;
        keep_in_ring(level, line);
        if (write(state.fd, line, (size_t)n) != n)
            atomic_fetch_add_explicit(&dropped, 1U, memory_order_relaxed);
    }
    pthread_mutex_unlock(&state.lock);
}

void log_ring(enum log_level level, size_t n, struct buf *out)
{
    size_t skip = 0;
    size_t fitting = 0;

    pthread_mutex_lock(&state.lock);
    for (size_t i = 0; i < LOG_RING_LINES; i++)
        fitting += state.ring[i].text != NULL && state.ring[i].level >= level ? 1U : 0U;
    skip = fitting > n ? fitting - n : 0;
    for (size_t i = 0; i < LOG_RING_LINES; i++) {
        const struct ring_line *l = &state.ring[(state.next + i) % LOG_RING_LINES];

        if (l->text == NULL || l->level < level)
            continue;
        if (skip != 0)
            skip--;
        else
            buf_add(out, l->text, strlen(l->text));
    }
    pthread_mutex_unlock(&state.lock);
}
