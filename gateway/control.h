/*
 * The control thread: owns the settings, the workers and the registry; signals, reload, drain, readiness,
 * and the admin interface's requests to all of them.
 *
 * Runs in the main thread.  Everything here is that thread's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "base/buf.h"
#include "gateway/settings.h"
#include "gateway/worker.h"

enum control_phase { CONTROL_STARTING, CONTROL_READY, CONTROL_DRAINING, CONTROL_STOPPED };

struct admin;

struct control {
    struct ev_loop *loop;
    const char *config_file;
    struct settings *settings;
    struct settings *at_start; /* keys that need a restart still have these values */
    struct registry *registry;
    struct worker *workers;
    unsigned n_workers;
    unsigned n_running; /* workers whose thread has not ended */
    char **listening;   /* addresses, as they were at the start; NULL-ended, NULL = none yet */
    struct admin *admin;
    struct loop_box box;          /* mail from workers: jobs that ran, threads that ended */
    struct loop_box registry_box; /* reports of the registry */
    ev_async wake;
    ev_signal signals[7];
    ev_timer tick;
    ev_timer drain_timer;
    enum control_phase phase;
    uint64_t started_wall_ms;
    uint64_t started_ms;
    uint64_t reloads_ok;
    uint64_t reloads_failed;
    uint64_t last_reload_wall_ms;
    bool restart_pending;
    struct buf reload_errors; /* lines of the last failed reload; empty after a good one */
};

/* The daemon's whole life.  Returns the exit code. */
int control_run(const char *config_file) NONNULL;

/* Reads the file again; on any error the old settings stay and reload_errors says why. */
bool control_reload(struct control *c) NONNULL;
void control_reopen_logs(struct control *c) NONNULL;
/* Begins the graceful stop; a second call ends it at once. */
void control_drain(struct control *c) NONNULL;
bool control_is_ready(const struct control *c) NONNULL;
/* What is degraded or waited for, as JSON members `"status":…,"degraded":[…]` or `"waiting":[…]`. */
void control_print_ready(const struct control *c, struct buf *out) NONNULL;

/*
 * Runs `run` in every worker and calls `done` in the control thread when all have answered or after 500 ms;
 * `parts[i]` is NULL for a worker that did not.  `make` allocates a part per worker, `release` frees it.
 */
struct gather_spec {
    void *(*make)(struct control *c);
    void (*run)(struct worker *w, void *part);
    void (*release)(void *part);
    void (*done)(struct control *c, void **parts, unsigned n, void *ctx);
    void *ctx;
};
void control_gather(struct control *c, const struct gather_spec *spec) NONNULL;
/* A job of control_gather came back; called by the mailbox dispatch. */
void gather_job_back(struct job *j) NONNULL;
