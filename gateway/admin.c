#include "gateway/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "gateway/listen.h"

static void run_help(struct admin_request *q);

static const struct admin_path admin_paths[] = {
    {
        .method = "GET",
        .path = "/health",
        .help = "200 while every event loop turns",
        .run = admin_run_health,
    },
    {
        .method = "GET",
        .path = "/ready",
        .help = "200 when calls can be taken; tells what is degraded or waited for",
        .run = admin_run_ready,
    },
    {
        .method = "GET",
        .path = "/info",
        .help = "version, uptime, configuration, last reload",
        .run = admin_run_info,
    },
    {
        .method = "GET",
        .path = "/config",
        .help = "every setting in effect, as YAML with its origin",
        .run = admin_run_config,
    },
    {
        .method = "GET",
        .path = "/references",
        .prefix = true,
        .help =
            "references: state, subscription, consumer node, providers, last events; /references/KEY",
        .run = admin_run_references,
    },
    {
        .method = "GET",
        .path = "/providers",
        .help = "providers of every reference; ?service=KEY",
        .run = admin_run_providers,
    },
    {
        .method = "GET",
        .path = "/connections",
        .help = "connections to providers",
        .run = admin_run_connections,
    },
    {
        .method = "GET",
        .path = "/registries",
        .help = "registries: session, watches, writes",
        .run = admin_run_registries,
    },
    {
        .method = "GET",
        .path = "/metrics",
        .help = "Prometheus text",
        .run = admin_run_metrics,
    },
    {
        .method = "GET",
        .path = "/log",
        .help = "last lines of the error log; ?level=warn&n=100",
        .run = admin_run_log,
    },
    {
        .method = "POST",
        .path = "/reload",
        .help = "read the configuration again; 422 with the errors when it is bad",
        .run = admin_run_reload,
    },
    {
        .method = "POST",
        .path = "/drain",
        .help = "stop gracefully",
        .run = admin_run_drain,
    },
    {
        .method = "POST",
        .path = "/loglevel",
        .help = "?level=debug|info|notice|warn|error",
        .run = admin_run_loglevel,
    },
    {
        .method = "POST",
        .path = "/reopen",
        .help = "open the log files anew",
        .run = admin_run_reopen,
    },
    {
        .method = "GET",
        .path = "/help",
        .help = "this table",
        .run = run_help,
    },
};

/* ---------------------------------------------------------------- answers */

void admin_answer(struct admin_request *q, unsigned status, const char *type, struct str body)
{
    struct MHD_Response *r = NULL;

    if (q->answered)
        return;
    /* the library only reads the bytes: it copies them */
    r = MHD_create_response_from_buffer(body.n, (void *)(uintptr_t)body.p, MHD_RESPMEM_MUST_COPY);
    q->answered = true;
    if (r != NULL) {
        if (MHD_add_response_header(r, "Content-Type", type) != MHD_YES ||
            MHD_add_response_header(r, "Cache-Control", "no-store") != MHD_YES ||
            MHD_queue_response(q->mhd, status, r) != MHD_YES)
            log_warn("admin", "an answer could not be queued");
        MHD_destroy_response(r);
    }
    if (q->suspended) {
        q->suspended = false;
        MHD_resume_connection(q->mhd);
        q->admin->need_run = true;
    }
}

void admin_answer_json(struct admin_request *q, unsigned status, struct str body)
{
    admin_answer(q, status, "application/json", body);
}

const char *admin_query(struct admin_request *q, const char *name)
{
    return MHD_lookup_connection_value(q->mhd, MHD_GET_ARGUMENT_KIND, name);
}

struct admin_request *admin_find(struct admin *a, uint64_t id)
{
    list_each(l, &a->open) {
        struct admin_request *q = container_of(l, struct admin_request, link);

        if (q->id == id)
            return q;
    }
    return NULL;
}

static void run_help(struct admin_request *q)
{
    struct buf b;

    buf_init(&b, 65536);
    for (size_t i = 0; i < ARRAY_LEN(admin_paths); i++)
        buf_printf(&b, "%-4s %-14s %s\n", admin_paths[i].method, admin_paths[i].path,
                   admin_paths[i].help);
    admin_answer(q, MHD_HTTP_OK, "text/plain; charset=utf-8", buf_str(&b));
    buf_free(&b);
}

static void refuse(struct admin_request *q, unsigned status, const char *why)
{
    char body[256];

    snprintf(body, sizeof(body), "{\"error\":\"%s\"}\n", why);
    admin_answer_json(q, status, str_from(body));
}

/* ---------------------------------------------------------------- one request */

static bool is_address(struct str host)
{
    if (host.n != 0 && host.p[0] == '[')
        return true;
    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];

        if ((c < '0' || c > '9') && c != '.')
            return false;
    }
    return host.n != 0;
}

/* A page that a browser loaded elsewhere must not reach us: neither under a name that was made to point
 * here (DNS rebinding) nor by a form (its Origin gives it away). */
static bool is_from_browser_elsewhere(struct admin_request *q)
{
    struct str host = str_from(MHD_lookup_connection_value(q->mhd, MHD_HEADER_KIND, "Host"));
    struct str origin = str_from(MHD_lookup_connection_value(q->mhd, MHD_HEADER_KIND, "Origin"));
    struct str rest;
    struct str name = host.n != 0 && host.p[0] == '[' ? host : str_cut(host, ':', &rest);

    if (host.n != 0 && !is_address(name) && !str_eq_nocase(name, STR("localhost")))
        return true;
    if (origin.n == 0)
        return false;
    return !str_starts(origin, STR("http://")) || !str_eq(str_sub(origin, 7, origin.n), host);
}

static bool path_fits(const struct admin_path *p, struct str url, struct str *rest)
{
    struct str path = str_from(p->path);

    if (str_eq(url, path)) {
        *rest = STR_NONE;
        return true;
    }
    if (!p->prefix || !str_starts(url, path) || url.n <= path.n + 1 || url.p[path.n] != '/')
        return false;
    *rest = str_sub(url, path.n + 1, url.n);
    return true;
}

static void dispatch(struct admin_request *q, const char *method)
{
    struct str url = str_from(q->url);
    struct str asked = strcmp(method, "HEAD") == 0 ? STR("GET") : str_from(method);
    bool path_known = false;

    if (is_from_browser_elsewhere(q)) {
        refuse(q, MHD_HTTP_FORBIDDEN, "asked through a foreign name or page");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(admin_paths); i++) {
        if (!path_fits(&admin_paths[i], url, &q->rest))
            continue;
        path_known = true;
        if (str_is(asked, admin_paths[i].method)) {
            admin_paths[i].run(q);
            return;
        }
    }
    if (path_known)
        refuse(q, MHD_HTTP_METHOD_NOT_ALLOWED, "GET reads, POST changes; see /help");
    else
        refuse(q, MHD_HTTP_NOT_FOUND, "no such path; see /help");
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **req_cls)
{
    struct admin *a = cls;
    struct admin_request *q = *req_cls;

    if (q == NULL) {
        q = xcalloc(1, sizeof(*q));
        q->admin = a;
        q->mhd = mhd;
        q->id = ++a->last_id;
        q->url = strdup(url);
        list_init(&q->link);
        list_add(&a->open, &q->link);
        *req_cls = q;
        return q->url != NULL ? MHD_YES : MHD_NO;
    }
    if (*size != 0) {
        *size = 0; /* nobody here reads a body */
        return MHD_YES;
    }
    if (q->answered || q->suspended)
        return MHD_YES;
    dispatch(q, method);
    if (!q->answered) {
        q->suspended = true;
        MHD_suspend_connection(mhd);
    }
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **req_cls,
                         enum MHD_RequestTerminationCode code)
{
    struct admin_request *q = *req_cls;

    if (q == NULL)
        return;
    list_remove(&q->link);
    free(q->url);
    free(q);
    *req_cls = NULL;
}

/* ---------------------------------------------------------------- loop */

static void run_all(struct admin *a)
{
    for (int turns = 0; turns < 8; turns++) {
        bool again = a->need_run;

        a->need_run = false;
        for (unsigned i = 0; i < a->n_listeners; i++) {
            MHD_UNSIGNED_LONG_LONG ms = 1;

            if (MHD_get_timeout(a->listeners[i].daemon, &ms) == MHD_YES && ms == 0)
                again = true;
        }
        if (!again)
            return;
        for (unsigned i = 0; i < a->n_listeners; i++)
            MHD_run(a->listeners[i].daemon);
    }
}

static void on_prepare(struct ev_loop *loop, ev_prepare *e, int events)
{
    run_all(container_of(e, struct admin, prepare));
}

static void on_readable(struct ev_loop *loop, ev_io *e, int events)
{
    MHD_run(container_of(e, struct admin_listener, io)->daemon);
}

static void on_tick(struct ev_loop *loop, ev_timer *t, int events)
{
    container_of(t, struct admin, tick)->need_run = true;
}

static bool listen_one(struct admin *a, struct str address, struct err *e)
{
    const struct listen_opts opts = {.backlog = 64, .mode = 0660, .shared = false};
    struct admin_listener *l = &a->listeners[a->n_listeners];
    const union MHD_DaemonInfo *info = NULL;
    int fd = listen_open(address, &opts, e);

    if (fd < 0)
        return false;
    l->home = a;
    l->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                                 &on_access, a, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd,
                                 MHD_OPTION_CONNECTION_LIMIT, 64U, MHD_OPTION_CONNECTION_TIMEOUT,
                                 30U, MHD_OPTION_NOTIFY_COMPLETED, &on_completed, a,
                                 MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (l->daemon == NULL) {
        err_set(e, "the HTTP library refuses the admin socket");
        close(fd);
        return false;
    }
    info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    ASSERT(info != NULL);
    ev_io_init(&l->io, on_readable, info->epoll_fd, EV_READ);
    ev_io_start(a->control->loop, &l->io);
    a->n_listeners++;
    return true;
}

bool admin_start(struct admin *a, struct control *c, struct err *e)
{
    *a = (struct admin){.control = c};
    list_init(&a->open);
    ev_prepare_init(&a->prepare, on_prepare);
    ev_prepare_start(c->loop, &a->prepare);
    ev_timer_init(&a->tick, on_tick, 1., 1.);
    ev_timer_start(c->loop, &a->tick);
    for (size_t i = 0; i < c->settings->admin_listen.n && i < ADMIN_LISTENERS_MAX; i++) {
        if (!listen_one(a, c->settings->admin_listen.v[i], e))
            return false;
    }
    return true;
}

void admin_stop(struct admin *a)
{
    list_each_safe(l, &a->open) {
        struct admin_request *q = container_of(l, struct admin_request, link);

        if (q->suspended)
            refuse(q, MHD_HTTP_SERVICE_UNAVAILABLE, "stopping");
    }
    run_all(a);
    for (unsigned i = 0; i < a->n_listeners; i++) {
        ev_io_stop(a->control->loop, &a->listeners[i].io);
        MHD_stop_daemon(a->listeners[i].daemon);
    }
    a->n_listeners = 0;
    ev_prepare_stop(a->control->loop, &a->prepare);
    ev_timer_stop(a->control->loop, &a->tick);
}
