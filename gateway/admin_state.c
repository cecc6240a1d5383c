/*
 * /health, /ready, /info, /config, /metrics, /log, and the paths that change something.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/json_write.h"
#include "gateway/admin.h"
#include "gateway/keys.h"
#include "gateway/metrics.h"
#include "gateway/report.h"
#include "gateway/version.h"

enum { ALIVE_MS = 5000, ANSWER_MAX = 16 * 1024 * 1024 };

static void answer_buf(struct admin_request *q, unsigned status, struct buf *b)
{
    admin_answer_json(q, status, buf_str(b));
    buf_free(b);
}

void admin_run_health(struct admin_request *q)
{
    const struct control *c = q->admin->control;
    uint64_t now = clock_ms();

    for (unsigned i = 0; i < c->n_workers; i++) {
        uint64_t alive = counter_get(&c->workers[i].alive_ms);

        if (now > alive && now - alive > ALIVE_MS) {
            char body[128];

            snprintf(body, sizeof(body), "{\"status\":\"stuck\",\"worker\":%u,\"for_ms\":%llu}\n",
                     i, (unsigned long long)(now - alive));
            admin_answer_json(q, MHD_HTTP_SERVICE_UNAVAILABLE, str_from(body));
            return;
        }
    }
    admin_answer_json(q, MHD_HTTP_OK, STR("{\"status\":\"ok\"}\n"));
}

void admin_run_ready(struct admin_request *q)
{
    const struct control *c = q->admin->control;
    struct buf b;

    buf_init(&b, ANSWER_MAX);
    buf_add_u8(&b, '{');
    control_print_ready(c, &b);
    buf_add_str(&b, STR("}\n"));
    answer_buf(q, control_is_ready(c) ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, &b);
}

static void add_member(struct buf *b, const char *name, struct str value)
{
    buf_printf(b, ",\"%s\":", name);
    json_add_string(b, value);
}

void admin_run_info(struct admin_request *q)
{
    const struct control *c = q->admin->control;
    char time[TIME_TEXT_LEN + 1];
    struct buf b;

    buf_init(&b, ANSWER_MAX);
    buf_printf(&b, "{\"name\":\"dubbogate\",\"version\":\"%s\",\"pid\":%d", VERSION, (int)getpid());
    time_text(c->started_wall_ms, time);
    add_member(&b, "started", str_from(time));
    buf_printf(&b, ",\"uptime_s\":%llu,\"workers\":%u",
               (unsigned long long)((clock_ms() - c->started_ms) / 1000), c->n_workers);
    add_member(&b, "config_file", str_from(c->config_file));
    add_member(&b, "config_hash", str_from(c->settings->hash));
    buf_printf(&b, ",\"reloads_ok\":%llu,\"reloads_failed\":%llu,\"restart_pending\":%s",
               (unsigned long long)c->reloads_ok, (unsigned long long)c->reloads_failed,
               c->restart_pending ? "true" : "false");
    if (c->reload_errors.len != 0)
        add_member(&b, "last_reload_errors", buf_str(&c->reload_errors));
    buf_printf(&b, ",\"libraries\":");
    version_libraries_json(&b);
    buf_add_str(&b, STR("}\n"));
    answer_buf(q, MHD_HTTP_OK, &b);
}

void admin_run_config(struct admin_request *q)
{
    struct buf b;

    buf_init(&b, ANSWER_MAX);
    keys_dump(q->admin->control->settings, &b);
    admin_answer(q, MHD_HTTP_OK, "application/yaml", buf_str(&b));
    buf_free(&b);
}

void admin_run_log(struct admin_request *q)
{
    const char *level = admin_query(q, "level");
    const char *n = admin_query(q, "n");
    int64_t lines = 100;
    enum log_level least = LOG_DEBUG;
    struct buf b;

    for (enum log_level l = LOG_DEBUG; level != NULL && l < LOG_LEVELS; l++) {
        if (strcmp(log_level_name(l), level) == 0)
            least = l;
    }
    if (n != NULL && !str_to_i64(str_from(n), 1, LOG_RING_LINES, &lines))
        lines = 100;
    buf_init(&b, ANSWER_MAX);
    log_ring(least, (size_t)lines, &b);
    admin_answer(q, MHD_HTTP_OK, "text/plain; charset=utf-8", buf_str(&b));
    buf_free(&b);
}

/* ---------------------------------------------------------------- changes */

void admin_run_reload(struct admin_request *q)
{
    struct control *c = q->admin->control;
    const char *keys[32];
    struct buf b;

    buf_init(&b, ANSWER_MAX);
    if (control_reload(c)) {
        size_t n = settings_restart_keys(c->at_start, c->settings, keys, ARRAY_LEN(keys));

        buf_printf(&b, "{\"hash\":\"%s\",\"restart_pending\":%s,\"restart_keys\":[",
                   c->settings->hash, c->restart_pending ? "true" : "false");
        for (size_t i = 0; i < n; i++)
            buf_printf(&b, "%s\"%s\"", i != 0 ? "," : "", keys[i]);
        buf_add_str(&b, STR("]}\n"));
        answer_buf(q, MHD_HTTP_OK, &b);
        return;
    }
    buf_printf(&b, "{\"errors\":");
    json_add_string(&b, buf_str(&c->reload_errors));
    buf_add_str(&b, STR("}\n"));
    answer_buf(q, MHD_HTTP_UNPROCESSABLE_CONTENT, &b);
}

void admin_run_drain(struct admin_request *q)
{
    admin_answer_json(q, MHD_HTTP_ACCEPTED, STR("{\"status\":\"draining\"}\n"));
    if (q->admin->control->phase < CONTROL_DRAINING)
        control_drain(q->admin->control);
}

void admin_run_loglevel(struct admin_request *q)
{
    const char *level = admin_query(q, "level");

    for (enum log_level l = LOG_DEBUG; level != NULL && l < LOG_LEVELS; l++) {
        if (strcmp(log_level_name(l), level) != 0)
            continue;
        log_set_level(l);
        admin_answer_json(q, MHD_HTTP_OK, STR("{\"status\":\"ok\"}\n"));
        return;
    }
    admin_answer_json(q, MHD_HTTP_BAD_REQUEST,
                      STR("{\"error\":\"level is one of debug, info, notice, warn, error\"}\n"));
}

void admin_run_reopen(struct admin_request *q)
{
    control_reopen_logs(q->admin->control);
    admin_answer_json(q, MHD_HTTP_OK, STR("{\"status\":\"ok\"}\n"));
}

/* ---------------------------------------------------------------- metrics */

static void *make_metrics(struct control *c)
{
    return metrics_new(c->settings->metrics.max_series);
}

static void collect_metrics(struct worker *w, void *part)
{
    report_metrics(w, part);
}

static void release_metrics(void *part)
{
    metrics_free(part);
}

static const char *const state_names[REFERENCE_STATES] = {
    [REFERENCE_WANTED] = "wanted",     [REFERENCE_READING] = "reading",
    [REFERENCE_READY] = "ready",       [REFERENCE_EMPTY] = "empty",
    [REFERENCE_SNAPSHOT] = "snapshot", [REFERENCE_FAILED] = "failed",
    [REFERENCE_LEAVING] = "leaving",
};

static void add_registry_metrics(const struct control *c, struct metrics *m)
{
    struct registry_numbers n;
    char labels[64];

    registry_numbers(c->registry, &n);
    for (size_t i = 0; i < REFERENCE_STATES; i++) {
        snprintf(labels, sizeof(labels), "state=\"%s\"", state_names[i]);
        metrics_add(m, METRIC_REFERENCES, labels, (double)n.references[i]);
    }
    metrics_add(m, METRIC_REFERENCE_EVICTIONS, "", (double)n.evictions_total);
    metrics_add(m, METRIC_SUBSCRIPTIONS, "", (double)n.subscriptions_total);
    metrics_add(m, METRIC_REGISTRY_CONNECTED, "", n.connected);
    metrics_add(m, METRIC_REGISTRY_WRITES, "op=\"create\"", (double)n.writes_create_total);
    metrics_add(m, METRIC_REGISTRY_WRITES, "op=\"delete\"", (double)n.writes_delete_total);
    metrics_add(m, METRIC_REGISTRY_EVENTS, "", (double)n.events_total);
    metrics_add(m, METRIC_REGISTRY_RECONNECTS, "", (double)n.reconnects_total);
    metrics_add(m, METRIC_REGISTRY_EXPIRED, "", (double)n.sessions_expired_total);
    metrics_add(m, METRIC_REGISTRY_BAD_RULES, "", (double)n.bad_rules);
    metrics_add(m, METRIC_REGISTRY_WATCHES, "", (double)n.watches);
    metrics_add(m, METRIC_CONSUMER_NODES, "", (double)n.consumer_nodes);
    metrics_add(m, METRIC_SNAPSHOT_WRITABLE, "", n.snapshot_writable ? 1 : 0);
    if (n.snapshot_saved_wall_ms != 0)
        metrics_add(m, METRIC_SNAPSHOT_AGE, "",
                    (double)(wall_ms() - n.snapshot_saved_wall_ms) / 1000);
}

static void add_control_metrics(const struct control *c, struct metrics *m)
{
    uint64_t now = clock_ms();
    char labels[64];

    metrics_add(m, METRIC_READY, "", control_is_ready(c) ? 1 : 0);
    metrics_add(m, METRIC_CONFIG_RELOADS, "result=\"ok\"", (double)c->reloads_ok);
    metrics_add(m, METRIC_CONFIG_RELOADS, "result=\"error\"", (double)c->reloads_failed);
    metrics_add(m, METRIC_CONFIG_RESTART_PENDING, "", c->restart_pending ? 1 : 0);
    snprintf(labels, sizeof(labels), "hash=\"%s\"", c->settings->hash);
    metrics_add(m, METRIC_CONFIG_INFO, labels, 1);
    metrics_add(m, METRIC_BUILD_INFO, "version=\"" VERSION "\"", 1);
    metrics_add(m, METRIC_LOG_DROPPED, "log=\"error\"", (double)log_dropped());
    for (unsigned i = 0; i < c->n_workers; i++) {
        uint64_t alive = counter_get(&c->workers[i].alive_ms);

        snprintf(labels, sizeof(labels), "worker=\"%u\"", i);
        metrics_add(m, METRIC_WORKER_LAG, labels, now > alive ? (double)(now - alive) / 1000 : 0);
    }
    metrics_add_process(m);
}

static void on_metrics(struct control *c, void **parts, unsigned n, void *ctx)
{
    struct admin_request *q = admin_find(c->admin, (uint64_t)(uintptr_t)ctx);
    struct metrics *all = metrics_new(c->settings->metrics.max_series);
    struct buf b;

    for (unsigned i = 0; i < n; i++) {
        if (parts[i] != NULL)
            metrics_merge(all, parts[i]);
    }
    add_registry_metrics(c, all);
    add_control_metrics(c, all);
    buf_init(&b, ANSWER_MAX);
    metrics_print(all, &b);
    metrics_free(all);
    if (q != NULL)
        admin_answer(q, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", buf_str(&b));
    buf_free(&b);
}

void admin_run_metrics(struct admin_request *q)
{
    const struct gather_spec spec = {
        .make = make_metrics,
        .run = collect_metrics,
        .release = release_metrics,
        .done = on_metrics,
        .ctx = (void *)(uintptr_t)q->id,
    };

    if (!q->admin->control->settings->metrics.enabled) {
        admin_answer_json(q, MHD_HTTP_NOT_FOUND, STR("{\"error\":\"metrics.enabled is false\"}\n"));
        return;
    }
    control_gather(q->admin->control, &spec);
}
