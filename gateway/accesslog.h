/*
 * The access log: one line per request, JSON or combined (docs/OPERATIONS.md section 5.3).
 *
 * One per worker: lines collect in its buffer and leave with one write, so that nothing waits for a disk
 * per request; a target that takes no bytes loses lines, which are counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/stats.h"
#include "base/str.h"

enum accesslog_format { ACCESSLOG_JSON, ACCESSLOG_COMBINED };

struct accesslog_opts {
    const char *target; /* file, "stdout", or "none" */
    enum accesslog_format format;
    uint32_t slow_ms; /* slower requests are always written; 0 = off */
    double sample;    /* share of good, fast requests that is written */
    size_t buffer;    /* bytes */
    uint32_t flush_ms;
};

/* What is known of one finished request.  Absent texts are empty. */
struct access {
    uint64_t wall_ms; /* of the end */
    uint64_t duration_us;
    uint64_t provider_us;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint16_t status;
    unsigned tries;
    struct str client_ip, method, path, version, route, request_id, trace_id, user_agent;
    struct str interface, rpc_method, rpc_version, rpc_group, provider;
    struct str code, exception, reason;
};

struct accesslog {
    struct accesslog_opts opts;
    int fd; /* -1: off */
    struct buf buf;
    uint64_t first_ms; /* when the oldest line entered the buffer; 0 = empty */
    uint64_t random;
    uint64_t second; /* wall clock second of `stamp` */
    char stamp[24];  /* its text up to the seconds */
    struct counter lines;
    struct counter dropped;
};

/* The target string must live as long as the log. */
bool accesslog_open(struct accesslog *l, const struct accesslog_opts *opts,
                    struct err *e) NONNULL MUST_CHECK;
void accesslog_close(struct accesslog *l) NONNULL;
void accesslog_write(struct accesslog *l, const struct access *a) NONNULL;
/* Every 100 ms. */
void accesslog_tick(struct accesslog *l, uint64_t now_ms) NONNULL;
void accesslog_flush(struct accesslog *l) NONNULL;
void accesslog_reopen(struct accesslog *l) NONNULL;
