#include "gateway/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fatal.h"
#include "base/hash.h"

enum type { COUNTER, GAUGE, HISTOGRAM };

static const struct {
    const char *name;
    enum type type;
    const char *help;
} families[METRICS] = {
    [METRIC_HTTP_DURATION] = {"http_server_request_duration_seconds", HISTOGRAM,
                              "Time from the request line to the last byte of the answer."},
    [METRIC_HTTP_ACTIVE] = {"http_server_active_requests", GAUGE, "Requests in work."},
    [METRIC_REQUEST_BYTES] = {"dubbogate_request_bytes_total", COUNTER, "Bytes of request bodies."},
    [METRIC_RESPONSE_BYTES] = {"dubbogate_response_bytes_total", COUNTER,
                               "Bytes of answer bodies."},
    [METRIC_ERRORS] = {"dubbogate_errors_total", COUNTER, "Answers with an error code."},
    [METRIC_RETRIES] = {"dubbogate_retries_total", COUNTER, "Further tries, by reason."},
    [METRIC_RETRY_BUDGET_EXHAUSTED] = {"dubbogate_retry_budget_exhausted_total", COUNTER,
                                       "Retries that the budget refused."},
    [METRIC_REFERENCES] = {"dubbogate_references", GAUGE, "References by state."},
    [METRIC_REFERENCE_EVICTIONS] = {"dubbogate_reference_evictions_total", COUNTER,
                                    "References dropped to stay within limits.references."},
    [METRIC_SUBSCRIPTIONS] = {"dubbogate_subscriptions_total", COUNTER,
                              "Subscriptions; rises only with new references."},
    [METRIC_REGISTRY_CONNECTED] = {"dubbogate_registry_connected", GAUGE,
                                   "Registries with a session now."},
    [METRIC_REGISTRY_WRITES] = {"dubbogate_registry_writes_total", COUNTER,
                                "Writes to the registry; must not follow the request rate."},
    [METRIC_REGISTRY_EVENTS] = {"dubbogate_registry_events_total", COUNTER, "Watch events."},
    [METRIC_REGISTRY_RECONNECTS] = {"dubbogate_registry_reconnects_total", COUNTER,
                                    "Connections that stood again."},
    [METRIC_REGISTRY_EXPIRED] = {"dubbogate_registry_session_expired_total", COUNTER,
                                 "Sessions that expired."},
    [METRIC_REGISTRY_BAD_RULES] =
        {"dubbogate_registry_bad_rules", GAUGE,
         "Published rules that are not obeyed as they stand; /registries says why."},
    [METRIC_REGISTRY_WATCHES] = {"dubbogate_registry_watches", GAUGE, "Watches set now."},
    [METRIC_CONSUMER_NODES] = {"dubbogate_consumer_nodes", GAUGE, "Consumer nodes of ours."},
    [METRIC_SNAPSHOT_AGE] = {"dubbogate_snapshot_age_seconds", GAUGE,
                             "Time since the lists were saved."},
    [METRIC_SNAPSHOT_WRITABLE] = {"dubbogate_snapshot_writable", GAUGE,
                                  "0 while the state directory cannot be written."},
    [METRIC_PROVIDER_CALLS] = {"dubbogate_provider_calls_total", COUNTER, "Tries by provider."},
    [METRIC_PROVIDER_EJECTIONS] =
        {"dubbogate_provider_ejections_total", COUNTER,
         "Providers ejected after failures in a row, by service and worker."},
    [METRIC_PROVIDERS_EJECTED] = {"dubbogate_providers_ejected", GAUGE,
                                  "Ejected now, summed over the workers."},
    [METRIC_PROVIDER_CONNECTS] = {"dubbogate_provider_connects_total", COUNTER,
                                  "Connections to providers that were begun."},
    [METRIC_PROVIDER_CONNECT_FAILURES] = {"dubbogate_provider_connect_failures_total", COUNTER,
                                          "Of these, refused or timed out."},
    [METRIC_PROVIDER_CONNECTIONS_LOST] = {"dubbogate_provider_connections_lost_total", COUNTER,
                                          "Connections that ended with calls in flight."},
    [METRIC_PROVIDER_READONLY_EVENTS] = {"dubbogate_provider_readonly_events_total", COUNTER,
                                         "Providers that said that they stop."},
    [METRIC_PROVIDER_HEARTBEATS] = {"dubbogate_provider_heartbeats_total", COUNTER,
                                    "Heartbeats sent."},
    [METRIC_PROTOCOL_ERRORS] = {"dubbogate_protocol_errors_total", COUNTER,
                                "Frames of providers that were none."},
    [METRIC_LATE_RESPONSES] = {"dubbogate_late_responses_total", COUNTER,
                               "Answers that came after their call had ended."},
    [METRIC_IN_FLIGHT] = {"dubbogate_in_flight", GAUGE, "Calls in flight by service."},
    [METRIC_CLIENT_CONNECTIONS] = {"dubbogate_client_connections", GAUGE,
                                   "Connections of clients by phase."},
    [METRIC_CLIENT_CONNECTIONS_TOTAL] = {"dubbogate_client_connections_total", COUNTER,
                                         "Connections accepted."},
    [METRIC_CLIENT_TIMEOUTS] = {"dubbogate_client_timeouts_total", COUNTER,
                                "Connections cut because a phase took too long."},
    [METRIC_JSON_CYCLES] = {"dubbogate_json_cycles_total", COUNTER,
                            "Results in which null stands for a cycle."},
    [METRIC_LOG_DROPPED] = {"dubbogate_log_dropped_total", COUNTER, "Log lines that were lost."},
    [METRIC_CONFIG_INFO] = {"dubbogate_config_info", GAUGE, "Hash of the configuration in effect."},
    [METRIC_CONFIG_RELOADS] = {"dubbogate_config_reloads_total", COUNTER, "Reloads by result."},
    [METRIC_CONFIG_RESTART_PENDING] = {"dubbogate_config_restart_pending", GAUGE,
                                       "1 when a changed key waits for a restart."},
    [METRIC_BUILD_INFO] = {"dubbogate_build_info", GAUGE, "Version."},
    [METRIC_READY] = {"dubbogate_ready", GAUGE, "1 when /ready answers 200."},
    [METRIC_WORKER_LAG] = {"dubbogate_event_loop_lag_seconds", GAUGE,
                           "Time since the last turn of a worker's loop."},
    [METRIC_CPU_SECONDS] = {"process_cpu_seconds_total", COUNTER, "CPU time."},
    [METRIC_RESIDENT_BYTES] = {"process_resident_memory_bytes", GAUGE, "Resident memory."},
    [METRIC_OPEN_FDS] = {"process_open_fds", GAUGE, "Open descriptors."},
    [METRIC_MAX_FDS] = {"process_max_fds", GAUGE, "Limit of open descriptors."},
    [METRIC_START_TIME] = {"process_start_time_seconds", GAUGE, "Start of the process, Unix time."},
};

static const char *const type_names[] = {"counter", "gauge", "histogram"};

struct series {
    UT_hash_handle hh;
    enum metric what;
    double value;
    struct hist *hist; /* histograms only */
    char key[];        /* two digits of the family, then the labels: sorts by family */
};

struct metrics {
    struct series *all;
    size_t n;
    size_t max;
};

struct metrics *metrics_new(size_t max_series)
{
    struct metrics *m = xcalloc(1, sizeof(*m));

    m->max = max_series;
    return m;
}

void metrics_free(struct metrics *m)
{
    struct series *s = NULL;
    struct series *next = NULL;

    if (m == NULL)
        return;
    HASH_ITER(hh, m->all, s, next)
    {
        HASH_DEL(m->all, s);
        free(s->hist);
        free(s);
    }
    free(m);
}

static struct series *find(struct metrics *m, enum metric what, const char *labels)
{
    char key[1024];
    struct series *s = NULL;
    int n = snprintf(key, sizeof(key), "%02u%s", (unsigned)what, labels);

    if (n < 0 || (size_t)n >= sizeof(key) || m->n >= m->max) {
        HASH_FIND_STR(m->all, key, s);
        if (s != NULL)
            return s;
        n = snprintf(key, sizeof(key), "%02u%s", (unsigned)what, "series=\"_OTHER\"");
    }
    HASH_FIND_STR(m->all, key, s);
    if (s != NULL)
        return s;
    s = xcalloc(1, sizeof(*s) + (size_t)n + 1);
    s->what = what;
    memcpy(s->key, key, (size_t)n + 1);
    if (families[what].type == HISTOGRAM)
        s->hist = xcalloc(1, sizeof(*s->hist));
    HASH_ADD_STR(m->all, key, s);
    m->n++;
    return s;
}

void metrics_add(struct metrics *m, enum metric what, const char *labels, double by)
{
    ASSERT(families[what].type != HISTOGRAM);

    find(m, what, labels)->value += by;
}

void metrics_add_hist(struct metrics *m, enum metric what, const char *labels, const struct hist *h)
{
    ASSERT(families[what].type == HISTOGRAM);

    hist_merge(find(m, what, labels)->hist, h);
}

void metrics_merge(struct metrics *to, const struct metrics *from)
{
    for (const struct series *s = from->all; s != NULL; s = s->hh.next) {
        if (s->hist != NULL)
            metrics_add_hist(to, s->what, s->key + 2, s->hist);
        else
            metrics_add(to, s->what, s->key + 2, s->value);
    }
}

/* ---------------------------------------------------------------- text */

static void print_braces(struct buf *out, const char *labels, const char *more)
{
    bool both = labels[0] != '\0' && more[0] != '\0';

    if (labels[0] == '\0' && more[0] == '\0')
        return;
    buf_printf(out, "{%s%s%s}", labels, both ? "," : "", more);
}

static void print_hist(struct buf *out, const struct series *s)
{
    const char *name = families[s->what].name;
    const char *labels = s->key + 2;
    uint64_t sum = 0;

    for (size_t i = 0; i < HIST_BUCKETS; i++) {
        char le[40] = "le=\"+Inf\"";

        if (i < HIST_BUCKETS - 1)
            snprintf(le, sizeof(le), "le=\"%g\"", (double)hist_bounds_us[i] / 1e6);
        sum += counter_get(&s->hist->bucket[i]);
        buf_printf(out, "%s_bucket", name);
        print_braces(out, labels, le);
        buf_printf(out, " %llu\n", (unsigned long long)sum);
    }
    buf_printf(out, "%s_sum", name);
    print_braces(out, labels, "");
    buf_printf(out, " %.6f\n%s_count", (double)counter_get(&s->hist->sum_us) / 1e6, name);
    print_braces(out, labels, "");
    buf_printf(out, " %llu\n", (unsigned long long)sum);
}

static void print_series(struct buf *out, const struct series *s)
{
    if (s->hist != NULL) {
        print_hist(out, s);
        return;
    }
    buf_printf(out, "%s", families[s->what].name);
    print_braces(out, s->key + 2, "");
    buf_printf(out, " %.15g\n", s->value);
}

static int by_key(const void *a, const void *b)
{
    const struct series *const *x = a;
    const struct series *const *y = b;

    return strcmp((*x)->key, (*y)->key);
}

void metrics_print(const struct metrics *m, struct buf *out)
{
    const struct series **sorted = xcalloc(m->n + 1, sizeof(struct series *));
    enum metric family = METRICS;
    size_t n = 0;

    for (const struct series *s = m->all; s != NULL; s = s->hh.next)
        sorted[n++] = s;
    qsort(sorted, n, sizeof(struct series *), by_key);
    for (size_t i = 0; i < n; i++) {
        if (sorted[i]->what != family) {
            family = sorted[i]->what;
            buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", families[family].name,
                       families[family].help, families[family].name,
                       type_names[families[family].type]);
        }
        print_series(out, sorted[i]);
    }
    free(sorted);
}

void metrics_label(struct buf *labels, const char *name, struct str value)
{
    if (labels->len != 0)
        buf_add_u8(labels, ',');
    buf_printf(labels, "%s=\"", name);
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == '"' || value.p[i] == '\\')
            buf_add_u8(labels, '\\');
        if (value.p[i] == '\n')
            buf_add_str(labels, STR("\\n"));
        else
            buf_add_u8(labels, (uint8_t)value.p[i]);
    }
    buf_add_u8(labels, '"');
}

/* ---------------------------------------------------------------- the process */

static unsigned count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    if (d == NULL)
        return 0;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", "..", and the directory itself */
}

/* Fields of /proc/self/stat behind the command name, which may hold anything. */
static void read_stat(unsigned long long *start_ticks, long *resident_pages)
{
    char text[1024];
    FILE *f = fopen("/proc/self/stat", "re");
    size_t n = f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0;
    char *at = NULL;

    if (f != NULL)
        fclose(f);
    text[n] = '\0';
    at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 24; field++) {
        at = strchr(at + 1, ' ');
        if (at != NULL && field == 21)
            *start_ticks = strtoull(at, NULL, 10);
        if (at != NULL && field == 23)
            *resident_pages = strtol(at, NULL, 10);
    }
}

static double boot_time(void)
{
    char line[256];
    double at = 0;
    FILE *f = fopen("/proc/stat", "re");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "btime ", 6) == 0)
            at = strtod(line + 6, NULL);
    }
    if (f != NULL)
        fclose(f);
    return at;
}

void metrics_add_process(struct metrics *m)
{
    struct rusage use = {0};
    struct rlimit fds = {0};
    unsigned long long start_ticks = 0;
    long pages = 0;

    read_stat(&start_ticks, &pages);
    if (getrusage(RUSAGE_SELF, &use) == 0)
        metrics_add(m, METRIC_CPU_SECONDS, "",
                    (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                        (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
    if (getrlimit(RLIMIT_NOFILE, &fds) == 0)
        metrics_add(m, METRIC_MAX_FDS, "", (double)fds.rlim_cur);
    metrics_add(m, METRIC_OPEN_FDS, "", count_fds());
    metrics_add(m, METRIC_RESIDENT_BYTES, "", (double)pages * (double)sysconf(_SC_PAGESIZE));
    metrics_add(m, METRIC_START_TIME, "",
                boot_time() + (double)start_ticks / (double)sysconf(_SC_CLK_TCK));
}
