#include "gateway/telnet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fatal.h"
#include "gateway/dial.h"

enum {
    ANSWER_MS = 3000,
    LINE_MAX_LEN = 16384, /* the name is out of a provider URL, which is shorter */
};

struct question {
    struct list link; /* telnet->open or ->waiting */
    struct telnet *home;
    struct telnet_ask *ask;
    int fd; /* -1 = waits */
    ev_io io;
    ev_timer timer;
    struct buf out;
    struct buf in;
};

static void free_question(struct question *q)
{
    if (q->fd >= 0) {
        ev_io_stop(q->home->w->loop, &q->io);
        ev_timer_stop(q->home->w->loop, &q->timer);
        close(q->fd);
        q->home->n_open--;
    }
    list_remove(&q->link);
    buf_free(&q->in);
    buf_free(&q->out);
    free(q->ask);
    free(q);
}

static void answer(struct question *q, struct str text)
{
    registry_telnet(q->home->registry, q->ask, text);
    q->ask = NULL;
    free_question(q);
}

static void fail(struct question *q, const char *why)
{
    err_set(&q->ask->why, "%s", why);
    answer(q, STR_NONE);
}

static void open_waiting(struct telnet *t);

static void end(struct question *q, const char *why)
{
    struct telnet *t = q->home;

    if (why != NULL)
        fail(q, why);
    else
        answer(q, buf_str(&q->in));
    open_waiting(t);
}

static void watch(struct question *q, int events)
{
    ev_io_stop(q->home->w->loop, &q->io);
    ev_io_set(&q->io, q->fd, events);
    ev_io_start(q->home->w->loop, &q->io);
}

static void on_writable(struct question *q)
{
    int error = dial_error(q->fd);
    ssize_t n = 0;

    if (error != 0) {
        end(q, strerror(error));
        return;
    }
    n = send(q->fd, q->out.data, q->out.len, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        end(q, strerror(errno));
        return;
    }
    if (n > 0)
        buf_consume(&q->out, (size_t)n);
    if (q->out.len == 0)
        watch(q, EV_READ);
}

static void on_readable(struct question *q)
{
    uint8_t *piece = q->home->w->recv_buffer;
    ssize_t n = recv(q->fd, piece, RECV_BUFFER_LEN, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end(q, n == 0 ? "it closed the connection" : strerror(errno));
        return;
    }
    buf_add(&q->in, piece, (size_t)n);
    if (q->in.failed)
        end(q, "the answer is too long");
    else if (definition_telnet_is_whole(buf_str(&q->in)))
        end(q, NULL);
}

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
    struct question *q = container_of(io, struct question, io);

    if (q->out.len != 0)
        on_writable(q);
    else
        on_readable(q);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    end(container_of(timer, struct question, timer), "no answer in time");
}

/* One that cannot be opened is answered. */
static void open_question(struct question *q)
{
    struct telnet *t = q->home;
    int fd = dial(&q->ask->addr);

    if (fd < 0) {
        fail(q, strerror(errno));
        return;
    }
    q->fd = fd;
    t->n_open++;
    list_remove(&q->link);
    list_add(&t->open, &q->link);
    ev_io_init(&q->io, on_io, fd, EV_WRITE);
    ev_io_start(t->w->loop, &q->io);
    ev_timer_init(&q->timer, on_timer, ANSWER_MS / 1000., 0.);
    ev_timer_start(t->w->loop, &q->timer);
}

static void open_waiting(struct telnet *t)
{
    while (t->n_open < TELNET_OPEN_MAX && !list_empty(&t->waiting))
        open_question(container_of(t->waiting.next, struct question, link));
}

void telnet_ask(struct telnet *t, struct telnet_ask *ask)
{
    struct question *q = xcalloc(1, sizeof(*q));

    q->home = t;
    q->ask = ask;
    q->fd = -1;
    buf_init(&q->out, LINE_MAX_LEN);
    buf_init(&q->in, DEFINITION_NODE_MAX);
    buf_printf(&q->out, "ls -l %s\r\n", ask->interface);
    list_init(&q->link);
    list_add(&t->waiting, &q->link);
    open_waiting(t);
}

void telnet_init(struct telnet *t, struct wctx *w, struct registry *registry)
{
    *t = (struct telnet){.w = w, .registry = registry};
    list_init(&t->open);
    list_init(&t->waiting);
}

static void free_all(struct list *questions)
{
    while (!list_empty(questions))
        free_question(container_of(questions->next, struct question, link));
}

void telnet_free(struct telnet *t)
{
    free_all(&t->open);
    free_all(&t->waiting);
}
