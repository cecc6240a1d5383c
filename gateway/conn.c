#include "gateway/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fatal.h"
#include "codec/invoke.h"
#include "gateway/conn_parts.h"
#include "gateway/dial.h"

enum {
    OUT_KEEP = 65536,
    DEAD_AFTER = 3,    /* heartbeats without a byte read */
    SUSPECT_AFTER = 5, /* calls in a row that timed out without a byte read */
    PROBE_MS = 1000,
    DIAL_AGAIN_MS = 250, /* the kernel would send a lost SYN again after 1 s */
    GREETING_MS = 10000, /* a cold or busy provider needs longer to answer than to connect */
    GREET_AGAIN_MS = 250,
    SERIAL = 2, /* Hessian2 */
    HEARTBEAT = FRAME_REQUEST | FRAME_TWO_WAY | FRAME_EVENT | SERIAL,
};

static const struct {
    const char *name;
    unsigned next;
} states[CONN_STATES] = {
    [CONN_CONNECTING] = {"connecting", 1U << CONN_READY | 1U << CONN_CLOSED},
    [CONN_READY] = {"ready", 1U << CONN_DRAINING | 1U << CONN_CLOSED},
    [CONN_DRAINING] = {"draining", 1U << CONN_CLOSED},
    [CONN_CLOSED] = {"closed", 0},
};

const char *conn_state_name(enum conn_state s)
{
    return s < CONN_STATES ? states[s].name : "?";
}

void conn_enter(struct conn *c, enum conn_state to)
{
    enum conn_state from = c->state;

    ASSERT(states[from].next & 1U << to);

    c->state = to;
    c->on_state(c, c->ctx, from, to);
}

enum conn_state conn_state(const struct conn *c)
{
    return c->state;
}

bool conn_is_slow(const struct conn *c)
{
    return c->state == CONN_CONNECTING && c->w->now_ms - c->opened_ms >= c->opts.connect_timeout_ms;
}

unsigned conn_in_flight(const struct conn *c)
{
    return c->flights.n;
}

void conn_end_flight(struct conn *c, struct flight *f)
{
    if (!f->one_way)
        flights_remove(&c->flights, f);
    list_remove(&f->link);
    f->conn = NULL;
}

/* ---------------------------------------------------------------- closing */

static void drop_second(struct conn *c)
{
    if (c->second_fd < 0)
        return;
    ev_io_stop(c->w->loop, &c->second);
    close(c->second_fd);
    c->second_fd = -1;
}

static void fail_flight(struct conn *c, struct flight *f)
{
    bool written = c->sent > f->start;

    conn_end_flight(c, f);
    f->on_fail(f, written ? FLIGHT_LOST : FLIGHT_UNREACHABLE);
}

/* Callbacks may start new tries elsewhere; this connection takes none any more. */
static void fail_all(struct conn *c)
{
    struct list *l = NULL;

    for (size_t i = 0; i < c->flights.n_slots; i++) {
        if (c->flights.slots[i] != NULL)
            fail_flight(c, c->flights.slots[i]);
    }
    while ((l = c->watched.next) != &c->watched)
        fail_flight(c, container_of(l, struct flight, link));
}

void conn_close(struct conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    ev_io_stop(c->w->loop, &c->io);
    ev_timer_stop(c->w->loop, &c->timer);
    close(c->fd);
    c->fd = -1;
    drop_second(c);
    list_remove(&c->dirty);
    list_add(&c->w->dead, &c->dead);
    if (c->flights.n != 0)
        counter_add(&c->w->stats.connections_lost, 1);
    conn_enter(c, CONN_CLOSED);
    fail_all(c);
}

static void close_if_drained(struct conn *c)
{
    if (c->state == CONN_DRAINING && c->flights.n == 0 && c->out.len == 0)
        conn_close(c);
}

void conn_drain(struct conn *c)
{
    if (c->state == CONN_CONNECTING && c->flights.n == 0) {
        conn_close(c);
        return;
    }
    if (c->state == CONN_READY)
        conn_enter(c, CONN_DRAINING);
    close_if_drained(c);
}

static void free_conn(struct conn *c)
{
    list_remove(&c->dead);
    buf_free(&c->in);
    buf_free(&c->out);
    flights_free(&c->flights);
    free(c);
}

/* ---------------------------------------------------------------- writing */

static void watch(struct conn *c, int events)
{
    if (c->events == events)
        return;
    c->events = events;
    ev_io_stop(c->w->loop, &c->io);
    ev_io_set(&c->io, c->fd, events);
    ev_io_start(c->w->loop, &c->io);
}

void conn_mark_dirty(struct conn *c)
{
    list_remove(&c->dirty);
    list_add(&c->w->dirty, &c->dirty);
}

static void tell_written(struct conn *c)
{
    while (!list_empty(&c->watched)) {
        struct flight *f = container_of(c->watched.next, struct flight, link);

        if (c->sent < f->end)
            return;
        if (f->one_way)
            conn_end_flight(c, f);
        else
            list_remove(&f->link);
        f->on_written(f);
    }
}

static void flush(struct conn *c)
{
    if (c->state == CONN_CONNECTING || c->out.len == 0)
        return;
    ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        watch(c, EV_READ | EV_WRITE);
        return;
    }
    if (n < 0) {
        c->by_peer = true;
        conn_close(c);
        return;
    }
    c->sent += (uint64_t)n;
    c->last_write_ms = c->w->now_ms;
    buf_consume(&c->out, (size_t)n);
    watch(c, c->out.len != 0 ? EV_READ | EV_WRITE : EV_READ);
    if (c->out.len == 0)
        buf_shrink(&c->out, OUT_KEEP);
    tell_written(c);
}

void conn_flush_all(struct wctx *w)
{
    struct list *l = NULL;

    while ((l = list_take(&w->dirty)) != NULL) {
        struct conn *c = container_of(l, struct conn, dirty);

        flush(c);
        close_if_drained(c);
    }
    while (!list_empty(&w->dead))
        free_conn(container_of(w->dead.next, struct conn, dead));
}

static void add_frame(struct conn *c, const struct frame *f, const struct frame_parts *body)
{
    frame_encode(f, &c->out);
    for (size_t i = 0; body != NULL && i < ARRAY_LEN(body->part); i++)
        buf_add_str(&c->out, body->part[i]);
}

enum conn_result conn_send(struct conn *c, struct flight *f, const struct frame_parts *body)
{
    struct frame head = {.flags = FRAME_REQUEST | SERIAL | (f->one_way ? 0 : FRAME_TWO_WAY)};
    size_t before = c->out.len;
    size_t len = 1;

    ASSERT(f->conn == NULL);

    if (c->state > CONN_READY)
        return CONN_UNUSABLE;
    for (size_t i = 0; i < ARRAY_LEN(body->part); i++)
        len += body->part[i].n;
    if (c->flights.n >= c->opts.max_in_flight ||
        (before != 0 && before + FRAME_HEADER_LEN + len > c->opts.max_buffered))
        return CONN_BUSY;
    if (f->one_way) {
        f->id = c->flights.next_id++;
    } else {
        flights_add(&c->flights, f);
    }
    f->conn = c;
    /* the attachments map is opened in the provider's part and ended here */
    head.id = f->id;
    head.body_len = (uint32_t)len;
    add_frame(c, &head, body);
    invoke_attachments_end(&c->out);
    if (c->out.failed) { /* out of memory */
        buf_truncate(&c->out, before);
        conn_end_flight(c, f);
        return CONN_BUSY;
    }
    f->start = c->added;
    c->added += FRAME_HEADER_LEN + len;
    f->end = c->added;
    list_init(&f->link);
    if (f->on_written != NULL)
        list_add(&c->watched, &f->link);
    counter_add(&c->w->stats.frames_out, 1);
    conn_mark_dirty(c);
    return CONN_OK;
}

void conn_send_event(struct conn *c, uint8_t flags, uint8_t status, uint64_t id, struct str body)
{
    const struct frame head = {
        .flags = flags, .status = status, .id = id, .body_len = (uint32_t)body.n};
    const struct frame_parts parts = {{body}};

    add_frame(c, &head, &parts);
    c->added += FRAME_HEADER_LEN + body.n;
    conn_mark_dirty(c);
}

static void send_heartbeat(struct conn *c)
{
    counter_add(&c->w->stats.heartbeats_sent, 1);
    conn_send_event(c, HEARTBEAT, 0, c->flights.next_id++, STR("N"));
}

/* ---------------------------------------------------------------- timers */

static void arm(struct conn *c, uint64_t in_ms)
{
    ev_timer_stop(c->w->loop, &c->timer);
    ev_timer_set(&c->timer, (double)(in_ms != 0 ? in_ms : 1) / 1000., 0.);
    ev_timer_start(c->w->loop, &c->timer);
}

/* When to look again: the probe's end, or the next heartbeat. */
static void arm_idle(struct conn *c)
{
    uint64_t now = clock_ms();
    uint64_t used = c->last_read_ms > c->last_write_ms ? c->last_read_ms : c->last_write_ms;
    uint64_t at = used + c->opts.heartbeat_ms;

    if (c->probe_until_ms != 0 && c->probe_until_ms < at)
        at = c->probe_until_ms;
    arm(c, at > now ? at - now : 1);
}

static void connect_failed(struct conn *c)
{
    counter_add(&c->w->stats.connect_failures, 1);
    conn_close(c);
}

static bool send_greeting(struct conn *c)
{
    uint8_t bytes[FRAME_HEADER_LEN + 1];
    struct buf b = {.data = bytes, .cap = sizeof(bytes), .limit = sizeof(bytes)};
    const struct frame head = {.flags = HEARTBEAT, .id = c->flights.next_id++, .body_len = 1};

    frame_encode(&head, &b);
    buf_add_u8(&b, 'N');
    counter_add(&c->w->stats.heartbeats_sent, 1);
    c->last_write_ms = c->w->now_ms;
    return send(c->fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len;
}

/* Heartbeats go out before any call: an answer says that a Dubbo provider is there and takes us, and whatever closes
 * or is silent instead has certainly run nothing.  One alone is not enough: Dubbo 2.7.23 loses the first frame of a
 * connection when two of them are its first and come at once (docs/PROTOCOL.md 7). */
static void on_greeting_timer(struct conn *c)
{
    uint64_t age = clock_ms() - c->opened_ms;

    if (age >= GREETING_MS || !send_greeting(c))
        connect_failed(c);
    else
        arm(c, GREET_AGAIN_MS);
}

static void on_connected(struct conn *c)
{
    int error = dial_error(c->fd);

    drop_second(c);
    if (error != 0 || !send_greeting(c)) {
        c->by_peer = error == 0 || error == ECONNREFUSED || error == ECONNRESET;
        connect_failed(c);
        return;
    }
    c->greeted = true;
    watch(c, EV_READ);
    arm(c, GREET_AGAIN_MS);
}

/* The later SYN was answered first, in whatever way: this is the connection now. */
static void on_second(struct ev_loop *loop, ev_io *io, int events)
{
    struct conn *c = container_of(io, struct conn, second);

    ev_io_stop(loop, &c->second);
    ev_io_stop(loop, &c->io);
    close(c->fd);
    c->fd = c->second_fd;
    c->second_fd = -1;
    ev_io_set(&c->io, c->fd, EV_WRITE);
    ev_io_start(loop, &c->io);
    on_connected(c);
}

/* Takes the place of the one before.  The first attempt stays, for providers that are further away than DIAL_AGAIN_MS.
 * Half of the worker's dials at most, so that among thousands that are silent new ones are still asked. */
static void dial_second(struct conn *c)
{
    if (!wctx_may_dial(c->w, WCTX_DIALS_PER_S / 2))
        return;
    drop_second(c);
    c->second_fd = dial(&c->addr);
    if (c->second_fd < 0)
        return;
    ev_io_init(&c->second, on_second, c->second_fd, EV_WRITE);
    ev_io_start(c->w->loop, &c->second);
}

static void arm_dial(struct conn *c, uint64_t age_ms)
{
    uint64_t left = c->opts.connect_timeout_ms - age_ms;

    arm(c, left < DIAL_AGAIN_MS ? left : DIAL_AGAIN_MS);
}

static void on_dial_timer(struct conn *c)
{
    uint64_t age = clock_ms() - c->opened_ms;

    if (age >= c->opts.connect_timeout_ms) {
        connect_failed(c);
        return;
    }
    dial_second(c);
    arm_dial(c, age);
}

static void on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
    struct conn *c = container_of(t, struct conn, timer);
    uint64_t now = clock_ms();

    if (c->state == CONN_CONNECTING) {
        if (c->greeted)
            on_greeting_timer(c);
        else
            on_dial_timer(c);
        return;
    }
    if (c->probe_until_ms != 0 && now >= c->probe_until_ms) { /* half open */
        conn_close(c);
        return;
    }
    if (now - c->last_read_ms >= (uint64_t)c->opts.heartbeat_ms * DEAD_AFTER) {
        conn_close(c);
        return;
    }
    if (now - c->last_read_ms >= c->opts.heartbeat_ms ||
        now - c->last_write_ms >= c->opts.heartbeat_ms) {
        c->last_write_ms = now;
        send_heartbeat(c);
    }
    arm_idle(c);
}

void conn_hurry_heartbeats(struct conn *c, uint32_t heartbeat_ms)
{
    if (heartbeat_ms >= c->opts.heartbeat_ms)
        return;
    c->opts.heartbeat_ms = heartbeat_ms;
    if (c->state == CONN_READY)
        arm_idle(c);
}

void conn_probe(struct conn *c)
{
    if (c->state != CONN_READY || c->probe_until_ms != 0)
        return;
    send_heartbeat(c);
    c->probe_until_ms = clock_ms() + PROBE_MS;
    arm_idle(c);
}

void conn_cancel(struct flight *f, bool timed_out)
{
    struct conn *c = f->conn;

    if (c == NULL)
        return;
    conn_end_flight(c, f);
    if (timed_out && ++c->timeouts_in_a_row == SUSPECT_AFTER)
        conn_probe(c);
    if (c->state == CONN_DRAINING)
        conn_mark_dirty(c); /* closed before the loop sleeps, when this was the last one */
}

/* ---------------------------------------------------------------- socket events */

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
    struct conn *c = container_of(io, struct conn, io);
    ssize_t n = 0;

    if (!c->greeted) {
        on_connected(c);
        return;
    }
    if (events & EV_WRITE)
        conn_mark_dirty(c);
    if ((events & EV_READ) == 0)
        return;
    n = recv(c->fd, c->w->recv_buffer, RECV_BUFFER_LEN, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        c->by_peer = n == 0 || errno == ECONNRESET;
        if (c->state == CONN_CONNECTING)
            connect_failed(c);
        else
            conn_close(c);
        return;
    }
    c->last_read_ms = c->w->now_ms;
    if (c->state == CONN_CONNECTING) {
        conn_enter(c, CONN_READY);
        arm_idle(c);
        conn_mark_dirty(c);
    }
    conn_take_bytes(c, c->w->recv_buffer, (size_t)n);
    if (c->state == CONN_DRAINING)
        conn_mark_dirty(c);
}

/* ---------------------------------------------------------------- opening */

struct conn *conn_open(struct wctx *w, const union address *addr, const struct conn_opts *opts,
                       conn_state_fn on_state, void *ctx)
{
    struct conn *c = NULL;
    int fd = dial(addr);

    if (fd < 0) {
        counter_add(&w->stats.connect_failures, 1);
        return NULL;
    }
    c = xcalloc(1, sizeof(*c));
    c->w = w;
    c->fd = fd;
    c->second_fd = -1;
    c->addr = *addr;
    c->state = CONN_CONNECTING;
    c->opts = *opts;
    c->on_state = on_state;
    c->ctx = ctx;
    /* a restarted gateway must not repeat the ids that a slow provider may still answer */
    flights_init(&c->flights, wctx_random(w) >> 16);
    c->opened_ms = w->now_ms;
    buf_init(&c->in, (size_t)opts->max_response + FRAME_HEADER_LEN + RECV_BUFFER_LEN);
    buf_init(&c->out, (size_t)CONN_BODY_MAX);
    list_init(&c->dirty);
    list_init(&c->dead);
    list_init(&c->watched);
    c->events = EV_WRITE;
    ev_io_init(&c->io, on_io, fd, EV_WRITE);
    ev_io_start(w->loop, &c->io);
    ev_timer_init(&c->timer, on_timer, 0., 0.);
    arm_dial(c, 0);
    counter_add(&w->stats.connects, 1);
    return c;
}

void conn_info(const struct conn *c, struct conn_info *out)
{
    uint64_t now = clock_ms();

    *out = (struct conn_info){
        .state = c->state,
        .local_port = dial_local_port(c->fd),
        .in_flight = c->flights.n,
        .age_ms = now - c->opened_ms,
        .idle_ms = now - (c->last_read_ms != 0 ? c->last_read_ms : c->opened_ms),
        .readonly = c->readonly,
        .by_peer = c->by_peer,
        .buffered = c->out.len,
    };
}
