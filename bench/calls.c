/* calls: send exactly N POST requests over CONNS keep-alive connections, each connection one at a time.
 *   calls HOST PORT PATH N CONNS [BODY_BYTES [FIRST]]
 * A PATH with %d gets FIRST (0), FIRST + 1, … in turn.  Prints how many were answered with 200; exit 1 when not all were.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct link {
    int fd;
    size_t have, want; /* want: length of head + body, 0 = the head is not complete */
    char in[16384];
};

static long sent, answered, good, n;
static const char *path;
static char *body;
static int body_len, first;

static void next(struct link *l)
{
    char out[65536], p[512];
    int len = 0;

    if (sent >= n)
        return;
    snprintf(p, sizeof(p), path, first + (int)sent);
    len = snprintf(out, sizeof(out), "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                   p, body_len, body);
    if (write(l->fd, out, (size_t)len) != len)
        exit(3);
    sent++;
    l->have = l->want = 0;
}

static void take(struct link *l)
{
    ssize_t r = read(l->fd, l->in + l->have, sizeof(l->in) - 1 - l->have);
    char *end = NULL, *cl = NULL;

    if (r <= 0) {
        fprintf(stderr, "calls: closed after %ld answers\n", answered);
        exit(3);
    }
    l->have += (size_t)r;
    l->in[l->have] = '\0';
    if (l->want == 0 && (end = strstr(l->in, "\r\n\r\n")) != NULL) {
        cl = strcasestr(l->in, "content-length:");
        l->want = (size_t)(end - l->in) + 4 + (cl != NULL ? strtoul(cl + 15, NULL, 10) : 0);
    }
    if (l->want == 0 || l->have < l->want)
        return;
    answered++;
    if (strncmp(l->in, "HTTP/1.1 200", 12) == 0)
        good++;
    else if (good + 1 == answered)
        fprintf(stderr, "calls: the first other answer:\n%s\n", l->in);
    next(l);
}

int main(int argc, char **argv)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    struct epoll_event ev[64];
    int conns = 0, ep = epoll_create1(0), one = 1;

    if (argc < 6)
        return 2;
    inet_pton(AF_INET, argv[1], &sa.sin_addr);
    sa.sin_port = htons((uint16_t)atoi(argv[2]));
    path = argv[3];
    n = atol(argv[4]);
    conns = atoi(argv[5]);
    body_len = argc > 6 ? atoi(argv[6]) : 200;
    first = argc > 7 ? atoi(argv[7]) : 0;
    body = malloc((size_t)body_len + 1);
    snprintf(body, (size_t)body_len + 1, "[{\"name\":\"%0*d\"}]", body_len - 13, 7);
    body_len = (int)strlen(body);
    for (int i = 0; i < conns; i++) {
        struct link *l = calloc(1, sizeof(*l));
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};

        l->fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (connect(l->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
            perror("calls: connect");
            return 3;
        }
        epoll_ctl(ep, EPOLL_CTL_ADD, l->fd, &e);
        next(l);
    }
    while (answered < n) {
        int k = epoll_wait(ep, ev, 64, 60000);

        if (k <= 0)
            return 3;
        for (int i = 0; i < k; i++)
            take(ev[i].data.ptr);
    }
    printf("%ld of %ld\n", good, n);
    return good == n ? 0 : 1;
}
