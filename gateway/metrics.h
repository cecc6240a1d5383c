/*
 * Metrics as Prometheus text (docs/OPERATIONS.md section 5.1).
 *
 * A set of series that one thread fills.  At a scrape every worker fills a set of its own inside a job;
 * the control thread adds them up and prints.  Label values come only from the configuration and from
 * fixed sets, and the number of series is bounded: what is over goes into one series labelled _OTHER.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/stats.h"

/* One row per family in metrics.c: name, type, help. */
enum metric {
    METRIC_HTTP_DURATION,
    METRIC_HTTP_ACTIVE,
    METRIC_REQUEST_BYTES,
    METRIC_RESPONSE_BYTES,
    METRIC_ERRORS,
    METRIC_RETRIES,
    METRIC_RETRY_BUDGET_EXHAUSTED,
    METRIC_REFERENCES,
    METRIC_REFERENCE_EVICTIONS,
    METRIC_SUBSCRIPTIONS,
    METRIC_REGISTRY_CONNECTED,
    METRIC_REGISTRY_WRITES,
    METRIC_REGISTRY_EVENTS,
    METRIC_REGISTRY_RECONNECTS,
    METRIC_REGISTRY_EXPIRED,
    METRIC_REGISTRY_BAD_RULES,
    METRIC_REGISTRY_WATCHES,
    METRIC_CONSUMER_NODES,
    METRIC_SNAPSHOT_AGE,
    METRIC_SNAPSHOT_WRITABLE,
    METRIC_PROVIDER_CALLS,
    METRIC_PROVIDER_EJECTIONS,
    METRIC_PROVIDERS_EJECTED,
    METRIC_PROVIDER_CONNECTS,
    METRIC_PROVIDER_CONNECT_FAILURES,
    METRIC_PROVIDER_CONNECTIONS_LOST,
    METRIC_PROVIDER_READONLY_EVENTS,
    METRIC_PROVIDER_HEARTBEATS,
    METRIC_PROTOCOL_ERRORS,
    METRIC_LATE_RESPONSES,
    METRIC_IN_FLIGHT,
    METRIC_CLIENT_CONNECTIONS,
    METRIC_CLIENT_CONNECTIONS_TOTAL,
    METRIC_CLIENT_TIMEOUTS,
    METRIC_JSON_CYCLES,
    METRIC_LOG_DROPPED,
    METRIC_CONFIG_INFO,
    METRIC_CONFIG_RELOADS,
    METRIC_CONFIG_RESTART_PENDING,
    METRIC_BUILD_INFO,
    METRIC_READY,
    METRIC_WORKER_LAG,
    METRIC_CPU_SECONDS,
    METRIC_RESIDENT_BYTES,
    METRIC_OPEN_FDS,
    METRIC_MAX_FDS,
    METRIC_START_TIME,
    METRICS, /* must stay last */
};

struct metrics;

struct metrics *metrics_new(size_t max_series) MUST_CHECK;
void metrics_free(struct metrics *m);
/* Adds to the series; `labels` is the finished text between the braces ("" = none). */
void metrics_add(struct metrics *m, enum metric what, const char *labels, double by) NONNULL;
void metrics_add_hist(struct metrics *m, enum metric what, const char *labels,
                      const struct hist *h) NONNULL;
void metrics_merge(struct metrics *to, const struct metrics *from) NONNULL;
void metrics_print(const struct metrics *m, struct buf *out) NONNULL;
/* cpu, memory, descriptors, start time of this process */
void metrics_add_process(struct metrics *m) NONNULL;

/* Appends `name="value"` with the escapes of the text format, after a comma when there is something
 * already. */
void metrics_label(struct buf *labels, const char *name, struct str value)
    __attribute__((nonnull(1, 2)));
