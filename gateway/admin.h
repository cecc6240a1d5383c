/*
 * The admin interface: its own HTTP daemon in the control thread, JSON answers (docs/OPERATIONS.md section
 * 4).  One row of admin_paths[] per path; a handler answers at once or takes the request along and
 * answers later.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <microhttpd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "gateway/control.h"

enum { ADMIN_LISTENERS_MAX = 8 };

struct admin_request {
    struct list link; /* admin->open */
    struct admin *admin;
    struct MHD_Connection *mhd;
    uint64_t id;
    struct str rest; /* what follows the row's path */
    char *url;
    bool answered;
    bool suspended;
    void *state; /* the handler's own; freed by it */
};

struct admin_path {
    const char *method;
    const char *path;
    bool prefix; /* the path may go on */
    const char *help;
    void (*run)(struct admin_request *q);
};

struct admin_listener {
    struct admin *home;
    struct MHD_Daemon *daemon;
    ev_io io;
};

struct admin {
    struct control *control;
    struct admin_listener listeners[ADMIN_LISTENERS_MAX];
    unsigned n_listeners;
    struct list open;
    uint64_t last_id;
    ev_prepare prepare;
    ev_timer tick;
    bool need_run;
};

bool admin_start(struct admin *a, struct control *c, struct err *e) NONNULL MUST_CHECK;
void admin_stop(struct admin *a) NONNULL;

/* Ends the request; `body` is copied. */
void admin_answer(struct admin_request *q, unsigned status, const char *type, struct str body)
    __attribute__((nonnull(1, 3)));
void admin_answer_json(struct admin_request *q, unsigned status, struct str body)
    __attribute__((nonnull(1)));
/* NULL when it is not there. */
const char *admin_query(struct admin_request *q, const char *name) NONNULL;
/* The open request of that id, for answers that come by mail; NULL when it is gone. */
struct admin_request *admin_find(struct admin *a, uint64_t id) NONNULL;
/* A report of the registry arrived. */
void admin_on_report(struct admin *a, struct registry_mail *m) NONNULL;

void admin_run_health(struct admin_request *q);
void admin_run_ready(struct admin_request *q);
void admin_run_info(struct admin_request *q);
void admin_run_config(struct admin_request *q);
void admin_run_references(struct admin_request *q);
void admin_run_providers(struct admin_request *q);
void admin_run_connections(struct admin_request *q);
void admin_run_registries(struct admin_request *q);
void admin_run_metrics(struct admin_request *q);
void admin_run_log(struct admin_request *q);
void admin_run_reload(struct admin_request *q);
void admin_run_drain(struct admin_request *q);
void admin_run_loglevel(struct admin_request *q);
void admin_run_reopen(struct admin_request *q);
