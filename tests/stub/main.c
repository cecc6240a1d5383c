/*
 * The stub provider's connections and command line.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fatal.h"

#include "tests/stub/hessian.h"
#include "tests/stub/stub.h"

enum {
    READ_SIZE = 262144,
    BODY_MAX = 64 * 1024 * 1024,
    KIND_VALUE = 4,
    STATUS_OK = 20,
    STATUS_ERROR = 70
};

/* ---------------------------------------------------------------- requests */

static bool next_text(struct cursor *in, struct buf *texts, struct str *out)
{
    size_t from = texts->len;

    if (!hessian_string(in, texts))
        return false;
    *out = (struct str){(const char *)texts->data + from, texts->len - from};
    return true;
}

static bool skip_list(struct cursor *in)
{
    return hessian_skip(in, 0);
}

static bool take_args(struct cursor *in, struct stub_call *c)
{
    size_t n = 0;

    if (!hessian_list(in, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *from = in->p;

        if (!hessian_skip(in, 0))
            return false;
        if (i < ARRAY_LEN(c->args)) {
            c->args[i] = from;
            c->arg_len[i] = (size_t)(in->p - from);
            c->n_args = i + 1;
        }
    }
    return true;
}

bool stub_decode(const uint8_t *body, size_t n, struct stub_call *c, struct buf *texts)
{
    struct cursor in = {.p = body, .end = body + n};
    struct str dubbo, invoke, descriptor;

    /* texts are slices of one buffer: it must not move while they are taken */
    buf_truncate(texts, 0);
    if (buf_reserve(texts, n * 2 + 64) == NULL)
        return false;
    if (!next_text(&in, texts, &dubbo) || !next_text(&in, texts, &c->interface) ||
        !next_text(&in, texts, &c->version) || !next_text(&in, texts, &invoke) ||
        !next_text(&in, texts, &descriptor))
        return false;
    if (!str_is(invoke, "$invoke")) {
        c->method = invoke;
        return true;
    }
    if (!next_text(&in, texts, &c->method) || !skip_list(&in) || !take_args(&in, c))
        return false;
    c->attachments = in.p;
    if (!hessian_skip(&in, 0))
        return false;
    c->attachments_len = (size_t)(in.p - c->attachments);
    return true;
}

void stub_frame(struct stub_conn *k, uint8_t flags, uint8_t status, uint64_t id, struct str body)
{
    const struct frame f = {
        .id = id, .body_len = (uint32_t)body.n, .flags = flags, .status = status};

    frame_encode(&f, &k->out);
    buf_add_str(&k->out, body);
}

struct answer_later {
    ev_timer timer;
    struct stub *stub;
    struct stub_conn *conn;
    uint64_t id;
    uint8_t flags;
    uint8_t status;
    struct buf body;
};

static void on_answer_later(struct ev_loop *loop, ev_timer *t, int events)
{
    struct answer_later *l = container_of(t, struct answer_later, timer);

    ev_timer_stop(loop, t);
    list_each(c, &l->stub->conns) {
        struct stub_conn *k = container_of(c, struct stub_conn, link);

        if (k == l->conn) {
            stub_frame(k, l->flags, l->status, l->id, buf_str(&l->body));
            stub_flush(k);
            break;
        }
    }
    buf_free(&l->body);
    free(l);
}

void stub_answer_later(struct stub_conn *k, double after_s, uint8_t flags, uint8_t status,
                       uint64_t id, struct str body)
{
    struct answer_later *l = xcalloc(1, sizeof(*l));

    *l = (struct answer_later){
        .stub = k->stub, .conn = k, .id = id, .flags = flags, .status = status};
    buf_init(&l->body, BODY_MAX);
    buf_add_str(&l->body, body);
    ev_timer_init(&l->timer, on_answer_later, after_s, 0.);
    ev_timer_start(k->stub->loop, &l->timer);
}

static void answer(struct stub_conn *k, uint64_t id, uint8_t status, struct str body,
                   double delay_s)
{
    if (delay_s > 0)
        stub_answer_later(k, delay_s, 2, status, id, body);
    else
        stub_frame(k, 2, status, id, body);
}

static void answer_call(struct stub_conn *k, const struct stub_call *c)
{
    struct stub *s = k->stub;
    double delay_s = 0;

    buf_truncate(&s->body, 0);
    if (service_answer(s, c, &s->body, &delay_s)) {
        answer(k, c->id, STATUS_OK, buf_str(&s->body), delay_s);
        return;
    }
    buf_truncate(&s->scratch, 0);
    buf_printf(&s->scratch,
               "org.apache.dubbo.rpc.RpcException: No such method " STR_FMT
               " in class interface " STR_FMT "\n\tat stub",
               STR_ARG(c->method), STR_ARG(c->interface));
    buf_truncate(&s->body, 0);
    hessian_put_string(&s->body, buf_str(&s->scratch));
    answer(k, c->id, STATUS_ERROR, buf_str(&s->body), 0);
}

static void on_request(struct stub_conn *k, const struct frame *f, const uint8_t *body)
{
    struct stub *s = k->stub;
    struct stub_call c = {.id = f->id, .one_way = (f->flags & FRAME_TWO_WAY) == 0};

    s->calls++;
    s->one_ways += c.one_way ? 1U : 0U;
    if (s->canned != 0) {
        answer(k, f->id, STATUS_OK, buf_str(&s->canned_body), s->delay_s);
        return;
    }
    if (!stub_decode(body, f->body_len, &c, &s->scratch)) {
        buf_truncate(&s->body, 0);
        hessian_put_string(&s->body, STR("Fail to decode request due to: RpcInvocation"));
        stub_frame(k, 2, 40, f->id, buf_str(&s->body));
        return;
    }
    if (script_run(k, &c) || c.one_way)
        return;
    answer_call(k, &c);
}

static bool scripted_heartbeat(struct stub_conn *k, const struct frame *f)
{
    const struct stub_call c = {.id = f->id, .method = STR("$heartbeat")};

    return script_run(k, &c);
}

static void on_frame(struct stub_conn *k, const struct frame *f, const uint8_t *body)
{
    if ((f->flags & FRAME_REQUEST) == 0)
        return; /* an answer to an event of ours */
    if ((f->flags & FRAME_EVENT) == 0) {
        on_request(k, f, body);
        return;
    }
    k->stub->heartbeats++;
    if (!scripted_heartbeat(k, f) && (f->flags & FRAME_TWO_WAY))
        stub_frame(k, FRAME_EVENT | 2, STATUS_OK, f->id, STR("N"));
}

/* ---------------------------------------------------------------- connections */

void stub_close(struct stub_conn *k, bool reset)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    ev_io_stop(k->stub->loop, &k->io);
    if (reset && setsockopt(k->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) != 0)
        perror("stub: SO_LINGER");
    close(k->fd);
    list_remove(&k->link);
    k->stub->n_conns--;
    buf_free(&k->in);
    buf_free(&k->out);
    k->fd = -1;
    free(k);
}

static void watch(struct stub_conn *k, int events)
{
    if (k->io.events == events)
        return;
    ev_io_stop(k->stub->loop, &k->io);
    ev_io_set(&k->io, k->fd, events);
    ev_io_start(k->stub->loop, &k->io);
}

void stub_flush(struct stub_conn *k)
{
    while (k->out.len != 0 && !k->slow) {
        ssize_t n = send(k->fd, k->out.data, k->out.len, MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0) {
            stub_close(k, false);
            return;
        }
        buf_consume(&k->out, (size_t)n);
    }
    if (k->closing && k->out.len == 0) {
        stub_close(k, false);
        return;
    }
    watch(k, (k->deaf ? 0 : EV_READ) | (k->out.len != 0 && !k->slow ? EV_WRITE : 0));
}

static bool is_open(const struct stub *s, const struct stub_conn *k)
{
    list_each(l, &s->conns) {
        if (container_of(l, struct stub_conn, link) == k)
            return true;
    }
    return false;
}

static void take_frames(struct stub *s, struct stub_conn *k)
{
    size_t at = 0;
    struct frame f;

    for (;;) {
        enum frame_result r = frame_decode(k->in.data + at, k->in.len - at, BODY_MAX, &f);

        if (r == FRAME_MALFORMED) {
            stub_close(k, false);
            return;
        }
        if (r == FRAME_MORE || k->in.len - at - FRAME_HEADER_LEN < f.body_len)
            break;
        on_frame(k, &f, k->in.data + at + FRAME_HEADER_LEN);
        if (s->script != NULL && !is_open(s, k))
            return;
        at += FRAME_HEADER_LEN + f.body_len;
    }
    buf_consume(&k->in, at);
    stub_flush(k);
}

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
    struct stub_conn *k = container_of(io, struct stub_conn, io);
    uint8_t *at = NULL;
    ssize_t n = 0;

    if (events & EV_WRITE) {
        stub_flush(k);
        return;
    }
    at = buf_reserve(&k->in, READ_SIZE);
    n = at != NULL ? recv(k->fd, at, READ_SIZE, 0) : -1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        stub_close(k, false);
        return;
    }
    buf_commit(&k->in, (size_t)n);
    take_frames(k->stub, k);
}

struct stub_listener {
    ev_io io;
    struct stub *stub;
};

static void on_accept(struct ev_loop *loop, ev_io *io, int events)
{
    struct stub *s = container_of(io, struct stub_listener, io)->stub;
    int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int one = 1;
    struct stub_conn *k = NULL;

    if (fd < 0)
        return;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
        perror("stub: TCP_NODELAY");
    k = xcalloc(1, sizeof(*k));
    k->stub = s;
    k->fd = fd;
    buf_init(&k->in, (size_t)2 * BODY_MAX);
    buf_init(&k->out, (size_t)4 * BODY_MAX + 32 * k->stub->canned); /* that many answers may wait */
    list_init(&k->link);
    list_add(&s->conns, &k->link);
    s->n_conns++;
    s->connects++;
    ev_io_init(&k->io, on_io, fd, EV_READ);
    ev_io_start(loop, &k->io);
}

/* `host` is an IPv4 or IPv6 address; "::" takes both. */
static bool listen_on(struct stub *s, const char *host, int port)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct stub_listener *l = xcalloc(1, sizeof(*l));
    struct addrinfo *ai = NULL;
    char service[16];
    int fd = -1;
    int one = 1;

    l->stub = s;
    snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(host, service, &hints, &ai) == 0)
        fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, 1024) != 0) {
        fprintf(stderr, "stub-provider: cannot listen on %s:%d: %s\n", host, port, strerror(errno));
        return false;
    }
    freeaddrinfo(ai);
    ev_io_init(&l->io, on_accept, fd, EV_READ);
    ev_io_start(s->loop, &l->io);
    return true;
}

/* ---------------------------------------------------------------- command line */

/* A map like a small POJO, padded to the size asked for. */
static void make_canned(struct stub *s)
{
    char *padding = NULL;
    unsigned classes = 0;
    struct buf *b = &s->canned_body;

    buf_init(b, s->canned + 65536);
    hessian_put_int(b, KIND_VALUE);
    buf_add_u8(b, 'H');
    hessian_put_string(b, STR("class"));
    hessian_put_string(b, STR("demo.User"));
    hessian_put_string(b, STR("id"));
    hessian_put_long(b, INT64_C(9007199254740993));
    hessian_put_string(b, STR("name"));
    hessian_put_string(b, STR("Ann Example"));
    hessian_put_string(b, STR("active"));
    buf_add_u8(b, 'T');
    hessian_put_string(b, STR("score"));
    hessian_put_json(b, json_real(12.5));
    hessian_put_string(b, STR("balance"));
    hessian_put_decimal(b, "12345.67", &classes);
    hessian_put_string(b, STR("tags"));
    buf_add_u8(b, 0x7b);
    hessian_put_string(b, STR("alpha"));
    hessian_put_string(b, STR("beta"));
    hessian_put_string(b, STR("gamma"));
    hessian_put_string(b, STR("note"));
    size_t pad = s->canned > b->len + 40 ? s->canned - b->len - 40 : 1;

    padding = xcalloc(1, pad);
    memset(padding, 'x', pad);
    hessian_put_string(b, (struct str){padding, pad});
    free(padding);
    buf_add_u8(b, 'Z');
    put_attachments_end(b, NULL);
}

static void on_stop(struct ev_loop *loop, ev_signal *s, int events)
{
    ev_break(loop, EVBREAK_ALL);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: stub-provider [-l ADDRESS] [-p PORT]… [-c CONTROL_PORT] [-n NAME] [-s BYTES] "
            "[-d DELAY_MS] [--script FILE.json]\n"
            "  -s  every call gets the same answer of about so many bytes (benchmarks)\n");
    return 2;
}

/* An orderly end: what remains is a leak to the sanitizers. */
static void end(struct stub *s)
{
    while (!list_empty(&s->conns))
        stub_close(container_of(s->conns.next, struct stub_conn, link), false);
    buf_free(&s->scratch);
    buf_free(&s->body);
    buf_free(&s->canned_body);
    json_decref(s->script);
    json_decref(s->counts);
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {{"script", required_argument, NULL, 'S'}, {0}};
    struct stub s = {.loop = ev_default_loop(0), .name = "stub", .counts = json_object()};
    const char *host = "127.0.0.1";
    int ports[16];
    int n_ports = 0;
    int control = 0;
    ev_signal term, intr;

    for (int o = 0; (o = getopt_long(argc, argv, "l:p:c:n:s:d:", long_options, NULL)) != -1;) {
        json_error_t e;

        switch (o) {
        case 'l':
            host = optarg;
            break;
        case 'p':
            if (n_ports < 16)
                ports[n_ports++] = atoi(optarg);
            break;
        case 'c':
            control = atoi(optarg);
            break;
        case 'n':
            s.name = optarg;
            break;
        case 's':
            s.canned = (size_t)strtoul(optarg, NULL, 10);
            break;
        case 'd':
            s.delay_s = strtod(optarg, NULL) / 1000;
            break;
        case 'S':
            s.script = json_load_file(optarg, 0, &e);
            if (s.script == NULL) {
                fprintf(stderr, "stub-provider: %s:%d: %s\n", optarg, e.line, e.text);
                return 1;
            }
            break;
        default:
            return usage();
        }
    }
    signal(SIGPIPE, SIG_IGN);
    list_init(&s.conns);
    buf_init(&s.scratch, (size_t)2 * BODY_MAX);
    buf_init(&s.body, (size_t)2 * BODY_MAX);
    if (s.canned != 0)
        make_canned(&s);
    if (n_ports == 0)
        ports[n_ports++] = 20880;
    for (int i = 0; i < n_ports; i++) {
        if (!listen_on(&s, host, ports[i]))
            return 1;
    }
    if (control != 0 && !control_listen(&s, control))
        return 1;
    ev_signal_init(&term, on_stop, SIGTERM);
    ev_signal_start(s.loop, &term);
    ev_signal_init(&intr, on_stop, SIGINT);
    ev_signal_start(s.loop, &intr);
    printf("READY port=%d name=%s\n", ports[0], s.name);
    fflush(stdout);
    ev_run(s.loop, 0);
    end(&s);
    return 0;
}
