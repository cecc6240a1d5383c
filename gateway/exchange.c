#include "gateway/exchange.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "gateway/exchange_parts.h"
#include "gateway/outcome.h"

enum {
    FREE_BUFS_MAX = 256,
    BUF_KEEP = 64 * 1024, /* larger buffers go back to malloc after use */
    STUCK_MS = 100,
};

/* ---------------------------------------------------------------- phases */

void client_enter(struct client *c, enum phase to)
{
    struct exchanges *h = c->home;

    list_remove(&c->link);
    h->n_phase[c->phase]--;
    c->phase = to;
    c->since_ms = h->now_ms;
    c->unread = 0;
    h->n_phase[to]++;
    list_add(&h->phases[to], &c->link);
}

static void cut(struct client *c)
{
    shutdown(c->fd, SHUT_RDWR);
    /* the library sees the end of the stream at its next turn; until then the client must not be found
     * again by the sweep */
    c->since_ms = UINT64_MAX / 2;
    list_remove(&c->link);
    list_add(&c->home->phases[c->phase], &c->link);
}

/* Safe in HEADERS and BODY: the library has written nothing for this request yet. */
static void send_raw(struct client *c, enum outcome o, struct str request_id)
{
    const struct outcome_row *row = outcome_row(o);
    char body[320];
    char text[640];
    int n = snprintf(body, sizeof(body),
                     "{\"title\":\"%s\",\"status\":%u,\"code\":\"%s\",\"detail\":\"%s\"%s" STR_FMT
                     "%s,\"retryable\":%s}",
                     row->title, (unsigned)row->status, row->code, row->detail,
                     request_id.n != 0 ? ",\"requestId\":\"" : "", STR_ARG(request_id),
                     request_id.n != 0 ? "\"" : "", row->retryable ? "true" : "false");

    n = snprintf(text, sizeof(text),
                 "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/problem+json\r\n"
                 "Content-Length: %d\r\n\r\n%s",
                 (unsigned)row->status, row->title, n, body);
    if (n > 0 && send(c->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* the client is gone: nothing to tell */
}

static void expire(struct client *c)
{
    counter_add(&c->home->stats.timeouts[c->phase], 1);
    if (c->phase == PHASE_HEADERS || c->phase == PHASE_BODY)
        send_raw(c, OUTCOME_REQUEST_TIMEOUT, STR_NONE);
    cut(c);
}

void exchanges_sweep(struct exchanges *h)
{
    for (enum phase p = PHASE_HEADERS; p < PHASES; p++) {
        if (p == PHASE_CALL || h->limits.timeout_ms[p] == 0)
            continue;
        list_each_safe(l, &h->phases[p]) {
            struct client *c = container_of(l, struct client, link);

            if (c->since_ms > h->now_ms || h->now_ms - c->since_ms < h->limits.timeout_ms[p])
                break;
            expire(c);
        }
    }
}

/* A chunk line longer than the pool makes the library spin without ever asking for more
 * (docs/ROBUSTNESS.md section 0.6). */
void exchanges_cut_stuck(struct exchanges *h)
{
    list_each_safe(l, &h->phases[PHASE_BODY]) {
        struct client *c = container_of(l, struct client, link);
        int waiting = 0;

        if (c->since_ms > h->now_ms || ioctl(c->fd, FIONREAD, &waiting) != 0 || waiting == 0) {
            c->unread = 0;
        } else if (waiting != c->unread) {
            c->unread = waiting;
            c->unread_since_ms = h->now_ms;
        } else if (h->now_ms - c->unread_since_ms >= STUCK_MS) {
            counter_add(&h->stats.stuck, 1);
            send_raw(c, OUTCOME_BAD_REQUEST, STR_NONE);
            cut(c);
        }
    }
}

void exchanges_close_idle(struct exchanges *h)
{
    list_each_safe(l, &h->phases[PHASE_IDLE]) {
        struct client *c = container_of(l, struct client, link);

        if (c->since_ms > h->now_ms)
            break; /* those that were cut stand at the end of the list */
        cut(c);
    }
}

unsigned exchanges_clients(const struct exchanges *h)
{
    unsigned n = 0;

    for (size_t i = 0; i < PHASES; i++)
        n += h->n_phase[i];
    return n;
}

/* ---------------------------------------------------------------- pools */

void exchanges_init(struct exchanges *h, const struct exchange_limits *limits,
                    const struct exchange_hooks *hooks, void *owner)
{
    *h = (struct exchanges){
        .limits = *limits, .hooks = hooks, .owner = owner, .now_ms = clock_ms()};
    for (size_t i = 0; i < PHASES; i++)
        list_init(&h->phases[i]);
    list_init(&h->free_exchanges);
    list_init(&h->free_bufs);
}

void exchanges_free(struct exchanges *h)
{
    struct list *l = NULL;

    while ((l = list_take(&h->free_exchanges)) != NULL) {
        struct exchange *x = container_of(l, struct exchange, link);

        arena_free(&x->arena);
        buf_free(&x->target);
        buf_free(&x->body);
        free(x);
    }
    while ((l = list_take(&h->free_bufs)) != NULL) {
        struct out_buf *b = container_of(l, struct out_buf, link);

        buf_free(&b->buf);
        free(b);
    }
}

struct out_buf *out_buf_get(struct exchanges *h)
{
    struct list *l = list_take(&h->free_bufs);
    struct out_buf *b = NULL;

    if (l != NULL) {
        b = container_of(l, struct out_buf, link);
        h->n_free_bufs--;
    } else {
        b = xcalloc(1, sizeof(*b));
        b->home = h;
        list_init(&b->link);
    }
    b->buf.limit = h->limits.response_body;
    buf_truncate(&b->buf, 0);
    return b;
}

void out_buf_put(struct out_buf *b)
{
    struct exchanges *h = b->home;

    buf_truncate(&b->buf, 0);
    buf_shrink(&b->buf, BUF_KEEP);
    if (h->n_free_bufs >= FREE_BUFS_MAX) {
        buf_free(&b->buf);
        free(b);
        return;
    }
    h->n_free_bufs++;
    list_add(&h->free_bufs, &b->link);
}

static struct exchange *exchange_get(struct exchanges *h)
{
    struct list *l = list_take(&h->free_exchanges);
    struct exchange *x = NULL;

    if (l != NULL)
        return container_of(l, struct exchange, link);
    x = xcalloc(1, sizeof(*x));
    list_init(&x->link);
    arena_init(&x->arena);
    buf_init(&x->target, h->limits.request_header);
    buf_init(&x->body, h->limits.request_body);
    return x;
}

static void exchange_put(struct exchanges *h, struct exchange *x)
{
    struct arena arena = x->arena;
    struct buf target = x->target;
    struct buf body = x->body;

    arena_reset(&arena);
    buf_truncate(&target, 0);
    buf_truncate(&body, 0);
    buf_shrink(&body, BUF_KEEP);
    *x = (struct exchange){.arena = arena, .target = target, .body = body};
    list_init(&x->link);
    list_add(&h->free_exchanges, &x->link);
}

/* ---------------------------------------------------------------- the library's callbacks */

static struct client *client_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static void print_address(const struct sockaddr *sa, char *out, size_t cap)
{
    const void *bytes = NULL;

    if (sa != NULL && sa->sa_family == AF_INET)
        bytes = &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
    if (sa != NULL && sa->sa_family == AF_INET6)
        bytes = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    if (bytes == NULL || inet_ntop(sa->sa_family, bytes, out, (socklen_t)cap) == NULL)
        snprintf(out, cap, "unix");
}

static const struct sockaddr *peer_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info != NULL ? info->client_addr : NULL;
}

static void client_open(struct exchanges *h, struct MHD_Connection *mhd, void **socket_context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct client *c = xcalloc(1, sizeof(*c));

    c->home = h;
    c->mhd = mhd;
    c->fd = info != NULL ? info->connect_fd : -1;
    c->since_ms = h->now_ms;
    c->phase = PHASE_HEADERS;
    print_address(peer_of(mhd), c->address, sizeof(c->address));
    list_init(&c->link);
    list_add(&h->phases[PHASE_HEADERS], &c->link);
    h->n_phase[PHASE_HEADERS]++;
    counter_add(&h->stats.connections_total, 1);
    *socket_context = c;
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct exchanges *h = cls;
    struct client *c = *socket_context;

    h->activity++;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        client_open(h, mhd, socket_context);
    } else if (c != NULL) {
        list_remove(&c->link);
        h->n_phase[c->phase]--;
        free(c);
        *socket_context = NULL;
    }
}

/* We read the query ourselves.  The library would make a record of every parameter in the memory
 * that the connection has for headers, and closes without an answer when that is used up: 120 short parameters are
 * enough for 8 KiB.  It splits behind this callback and up to the NUL. */
static void hide_query(const char *uri)
{
    char *query = strchr((char *)(uintptr_t)uri, '?');

    if (query != NULL && query[1] != '\0')
        query[1] = '\0';
}

/* The request line is there: the only place where the target can be seen as it was sent. */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct exchanges *h = cls;
    struct client *c = client_of(mhd);
    struct exchange *x = NULL;

    h->activity++;
    if (c == NULL)
        return NULL;
    x = exchange_get(h);
    x->client = c;
    x->start_us = clock_us();
    buf_add(&x->target, uri, strlen(uri));
    hide_query(uri);
    c->requests++;
    if (c->phase == PHASE_IDLE)
        client_enter(c, PHASE_HEADERS);
    counter_add(&h->stats.requests_total, 1);
    return x;
}

/* Path and query are split and decoded by us, segment by segment; the library would cut at %00. */
static size_t leave_escaped(void *cls, struct MHD_Connection *mhd, char *s)
{
    return strlen(s);
}

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                    size_t key_n, const char *value, size_t value_n)
{
    size_t *n = cls;

    (*n)++;
    return MHD_YES;
}

struct header_sink {
    struct header *at;
    size_t left;
};

static enum MHD_Result take_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                   size_t key_n, const char *value, size_t value_n)
{
    struct header_sink *sink = cls;

    if (sink->left == 0)
        return MHD_NO;
    *sink->at++ = (struct header){{key, key_n}, {value, value != NULL ? value_n : 0}};
    sink->left--;
    return MHD_YES;
}

static void fill_request(struct exchange *x, struct MHD_Connection *mhd, const char *method,
                         const char *version)
{
    struct exchanges *h = x->client->home;
    size_t n = 0;
    struct header_sink sink = {0};

    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, &count_header, &n);
    sink.at = arena_alloc(&x->arena, (n + 1) * sizeof(struct header));
    sink.left = n;
    x->request.headers = sink.at;
    x->request.n_headers = n;
    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, &take_header, &sink);
    x->request.method = str_from(method);
    x->request.version = str_from(version);
    x->request.client_ip = str_from(x->client->address);
    x->request.from_trusted_proxy = h->hooks->is_trusted(h->owner, peer_of(mhd));
    x->max_body = h->limits.request_body;
}

static void at_the_door(struct exchange *x, struct MHD_Connection *mhd)
{
    struct exchanges *h = x->client->home;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const struct door_facts facts = {
        .raw_target = buf_str(&x->target),
        .header_size = info != NULL ? info->header_size : 0,
        .max_body = h->limits.request_body,
        .chunked_allowed = h->limits.chunked_requests,
    };
    UNFILLED struct problem p;

    problem_clear(&p);
    switch (door_check(&x->request, &facts, &x->verdict, &p)) {
    case DOOR_OK_CLOSE:
        x->close = true;
        h->hooks->on_head(x);
        return;
    case DOOR_OK:
        h->hooks->on_head(x);
        return;
    case DOOR_REFUSED:
        x->close = true;
        h->hooks->on_refused(x, &p);
        return;
    case DOOR_OPTIONS_STAR:
        exchange_answer(x, MHD_HTTP_NO_CONTENT, NULL, 0, NULL);
        return;
    }
}

/* A body that was longer than announced or allowed: the library takes no answer in this state. */
static enum MHD_Result refuse_body(struct exchange *x)
{
    send_raw(x->client, OUTCOME_REQUEST_TOO_LARGE, x->request.id);
    shutdown(x->client->fd, SHUT_WR);
    return MHD_NO;
}

static enum MHD_Result take_body(struct exchange *x, const char *data, size_t *size)
{
    struct exchanges *h = x->client->home;

    if (x->answered) { /* answered from the head; the library throws the rest away */
        *size = 0;
        return MHD_YES;
    }
    if (*size > x->max_body - x->body.len || h->body_bytes + *size > h->limits.memory)
        return refuse_body(x);
    buf_add(&x->body, data, *size);
    if (x->body.failed)
        return refuse_body(x);
    h->body_bytes += *size;
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **req_cls)
{
    struct exchanges *h = cls;
    struct exchange *x = *req_cls;

    h->activity++;
    if (x == NULL)
        return MHD_NO;
    if (!x->seen_head) {
        x->seen_head = true;
        client_enter(x->client, PHASE_BODY);
        fill_request(x, mhd, method, version);
        at_the_door(x, mhd);
        return MHD_YES;
    }
    if (*size != 0)
        return take_body(x, data, size);
    if (x->wait == WAIT_LINGERING) {
        exchange_linger(x);
    } else if (!x->answered && x->wait == WAIT_NONE) {
        x->request.body = buf_str(&x->body);
        h->hooks->on_request(x);
    }
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **req_cls,
                         enum MHD_RequestTerminationCode code)
{
    struct exchanges *h = cls;
    struct exchange *x = *req_cls;

    h->activity++;
    if (x == NULL)
        return;
    *req_cls = NULL;
    if (x->wait == WAIT_LINGERING)
        linger_cancel(&h->linger);
    h->body_bytes -= x->body.len;
    h->hooks->on_done(x, x->answered && code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    client_enter(x->client, PHASE_IDLE);
    exchange_put(h, x);
}

/* The library's own timeout is a net below ours: it knows only inactivity, in whole seconds. */
static unsigned net_timeout_s(const struct exchange_limits *l)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < PHASES; i++)
        largest = l->timeout_ms[i] > largest ? l->timeout_ms[i] : largest;
    return largest / 1000 + 5;
}

struct MHD_Daemon *exchanges_listen(struct exchanges *h, int fd)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, &on_access, h,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT,
        h->limits.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, h->limits.request_header,
        MHD_OPTION_CONNECTION_TIMEOUT, net_timeout_s(&h->limits), MHD_OPTION_NOTIFY_CONNECTION,
        &on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, &on_completed, h,
        MHD_OPTION_URI_LOG_CALLBACK, &on_request_line, h, MHD_OPTION_UNESCAPE_CALLBACK,
        &leave_escaped, h, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}
