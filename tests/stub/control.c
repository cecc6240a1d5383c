/*
 * The stub provider's control page: a page for tests, not for people.
 *   GET /       {"calls": N, "connections": N, "connects": N, "heartbeats": N, "one_ways": N, "methods": {…}}
 *   POST /script  the body becomes the script, counts start again
 *   POST /reset   no script, all counts 0
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fatal.h"

#include "tests/stub/stub.h"

struct page {
    ev_io io;
    struct stub *stub;
    struct buf in;
};

static void set_script(struct stub *s, json_t *script)
{
    json_decref(s->script);
    s->script = script;
    json_decref(s->counts);
    s->counts = json_object();
}

static void print_counts(const struct stub *s, struct buf *out)
{
    char *methods = json_dumps(s->counts, JSON_COMPACT);

    buf_printf(out,
               "{\"calls\": %llu, \"connections\": %u, \"connects\": %llu, \"heartbeats\": %llu, "
               "\"one_ways\": %llu, \"methods\": %s}\n",
               (unsigned long long)s->calls, s->n_conns, (unsigned long long)s->connects,
               (unsigned long long)s->heartbeats, (unsigned long long)s->one_ways,
               methods != NULL ? methods : "{}");
    free(methods);
}

static void answer(struct page *p, struct str head, struct str body)
{
    struct stub *s = p->stub;
    struct buf out;
    struct buf page;

    if (str_starts(head, STR("POST /script"))) {
        json_t *script = json_loadb(body.p, body.n, 0, NULL);

        if (script != NULL)
            set_script(s, script);
    }
    if (str_starts(head, STR("POST /reset"))) {
        set_script(s, NULL);
        s->calls = s->connects = s->heartbeats = s->one_ways = 0;
    }
    buf_init(&page, 1 << 20);
    buf_init(&out, 1 << 20);
    print_counts(s, &page);
    buf_printf(&out,
               "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               page.len);
    buf_add_str(&out, buf_str(&page));
    if (send(p->io.fd, out.data, out.len, MSG_NOSIGNAL) < 0)
        perror("stub: control page");
    buf_free(&out);
    buf_free(&page);
}

static size_t content_length(struct str head)
{
    const char *at = head.n != 0 ? strcasestr(head.p, "\r\nContent-Length:") : NULL;

    return at != NULL && at < head.p + head.n ? (size_t)strtoul(at + 17, NULL, 10) : 0;
}

static void on_page(struct ev_loop *loop, ev_io *io, int events)
{
    struct page *p = container_of(io, struct page, io);
    uint8_t *at = buf_reserve(&p->in, 65537);
    ssize_t n = at != NULL ? recv(io->fd, at, 65536, 0) : 0;
    const char *end = NULL;

    if (n > 0) {
        buf_commit(&p->in, (size_t)n);
        p->in.data[p->in.len] = '\0';
        end = memmem(p->in.data, p->in.len, "\r\n\r\n", 4);
        if (end == NULL)
            return;
        struct str head = {(const char *)p->in.data, (size_t)(end + 2 - (const char *)p->in.data)};
        struct str body = str_sub(buf_str(&p->in), head.n + 2, p->in.len);

        if (body.n < content_length(head))
            return;
        answer(p, head, body);
    }
    ev_io_stop(loop, io);
    close(io->fd);
    buf_free(&p->in);
    free(p);
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events)
{
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);
    struct page *p = NULL;

    if (fd < 0)
        return;
    p = xcalloc(1, sizeof(*p));
    p->stub = io->data;
    buf_init(&p->in, 16 * 1024 * 1024);
    ev_io_init(&p->io, on_page, fd, EV_READ);
    ev_io_start(loop, &p->io);
}

bool control_listen(struct stub *s, int port)
{
    static ev_io io;
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(fd, 64) != 0) {
        perror("stub-provider: control port");
        return false;
    }
    io.data = s;
    ev_io_init(&io, on_accept, fd, EV_READ);
    ev_io_start(s->loop, &io);
    return true;
}
