#include "gateway/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static socklen_t address_len(const union address *a)
{
    return a->sa.sa_family == AF_INET6 ? (socklen_t)sizeof(a->v6) : (socklen_t)sizeof(a->v4);
}

int dial(const union address *addr)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return -1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0 &&
        (connect(fd, &addr->sa, address_len(addr)) == 0 || errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}

int dial_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 ? errno : error;
}

uint16_t dial_local_port(int fd)
{
    union address local = {.sa.sa_family = AF_UNSPEC};
    socklen_t len = sizeof(local);

    if (fd < 0 || getsockname(fd, &local.sa, &len) != 0)
        return 0;
    return ntohs(local.v4.sin_port); /* at the same place in both families */
}
