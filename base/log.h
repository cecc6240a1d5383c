/*
 * The error log: one event = one line, `time level module text`, or JSON.
 *
 * Threads: any.  A line takes a lock for a few microseconds, so nothing is logged per request above
 * debug.  A call site that repeats itself is held back for `repeat_ms`; the next line it writes tells
 * how many were left out.  The last LOG_RING_LINES lines stay in memory for the admin interface.
 * A target that does not take a line (full pipe, full disk) loses it: counted, never waited for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARN, LOG_ERROR, LOG_LEVELS };
enum { LOG_RING_LINES = 1000, LOG_LINE_MAX = 2048 };

struct log_opts {
    const char *file; /* NULL: stderr */
    enum log_level level;
    bool json;
    uint32_t repeat_ms;
};

/* Per call site; the zero value is right. */
struct log_site {
    uint64_t last_ms;
    uint32_t held_back;
};

/* May be called again for a reload; on an error the former target stays. */
bool log_open(const struct log_opts *opts, struct err *e) NONNULL MUST_CHECK;
/* Opens the file anew (SIGUSR1). */
void log_reopen(void);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* "debug", "info", "notice", "warn", "error". */
const char *log_level_name(enum log_level level);
uint64_t log_dropped(void);
/* Appends the newest `n` lines at or above `level`, oldest first. */
void log_ring(enum log_level level, size_t n, struct buf *out) NONNULL;

/* `site` NULL: never held back. */
void log_write(struct log_site *site, enum log_level level, const char *module, const char *fmt,
               ...) PRINTF_LIKE(4, 5);

#define log_at(level, module, ...)                                 \
    do {                                                           \
        static struct log_site log_site_;                          \
        if ((level) >= log_get_level())                            \
            log_write(&log_site_, (level), (module), __VA_ARGS__); \
    } while (0)
/* For what an operator did: each time it is written. */
#define log_always(level, module, ...)                       \
    do {                                                     \
        if ((level) >= log_get_level())                      \
            log_write(NULL, (level), (module), __VA_ARGS__); \
    } while (0)
#define log_debug(module, ...)  log_at(LOG_DEBUG, module, __VA_ARGS__)
#define log_info(module, ...)   log_at(LOG_INFO, module, __VA_ARGS__)
#define log_notice(module, ...) log_at(LOG_NOTICE, module, __VA_ARGS__)
#define log_warn(module, ...)   log_at(LOG_WARN, module, __VA_ARGS__)
#define log_error(module, ...)  log_at(LOG_ERROR, module, __VA_ARGS__)
