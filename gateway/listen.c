#include "gateway/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool parse_unix(struct str path, struct sockaddr_storage *out, socklen_t *len, struct err *e)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)out;

    if (path.n == 0 || path.n >= sizeof(un->sun_path)) {
        err_set(e, "the path of a unix socket has 1 to %zu bytes", sizeof(un->sun_path) - 1);
        return false;
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path.p, path.n);
    *len = (socklen_t)sizeof(*un);
    return true;
}

bool listen_is_unix(struct str address)
{
    return str_starts(address, STR("unix:"));
}

bool listen_parse(struct str address, struct sockaddr_storage *out, socklen_t *len, struct err *e)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[256];
    char port[8];
    size_t colon = address.n;
    int rc = 0;

    memset(out, 0, sizeof(*out));
    if (listen_is_unix(address))
        return parse_unix(str_sub(address, 5, address.n), out, len, e);
    while (colon > 0 && address.p[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon > sizeof(host) || address.n - colon >= sizeof(port)) {
        err_set(e, "\"" STR_FMT "\" is not HOST:PORT", STR_ARG(address));
        return false;
    }
    struct str name = str_sub(address, 0, colon - 1);

    if (name.p[0] == '[' && name.p[name.n - 1] == ']')
        name = str_sub(name, 1, name.n - 1);
    snprintf(host, sizeof(host), STR_FMT, STR_ARG(name));
    snprintf(port, sizeof(port), STR_FMT, STR_ARG(str_sub(address, colon, address.n)));
    rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0) {
        err_set(e, "%s:%s: %s", host, port, gai_strerror(rc));
        return false;
    }
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, (socklen_t)sizeof(value)) == 0;
}

static int open_socket(const struct sockaddr_storage *sa, bool shared)
{
    int fd = socket(sa->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || sa->ss_family == AF_UNIX)
        return fd;
    if (!set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) ||
        (shared && !set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1)) ||
        (sa->ss_family == AF_INET6 && !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A socket file that nobody listens on is a leftover of a crash. */
static void remove_stale(const struct sockaddr_storage *sa, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)sa, len) != 0 && errno == ECONNREFUSED)
        unlink(((const struct sockaddr_un *)(const void *)sa)->sun_path);
    close(fd);
}

int listen_open(struct str address, const struct listen_opts *opts, struct err *e)
{
    struct sockaddr_storage sa;
    socklen_t len = 0;
    int fd = -1;

    if (!listen_parse(address, &sa, &len, e))
        return -1;
    if (sa.ss_family == AF_UNIX)
        remove_stale(&sa, len);
    fd = open_socket(&sa, opts->shared);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, len) != 0 ||
        listen(fd, opts->backlog) != 0) {
        err_set(e, "cannot listen on " STR_FMT ": %s", STR_ARG(address), strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (sa.ss_family == AF_UNIX)
        chmod(((const struct sockaddr_un *)(const void *)&sa)->sun_path, (mode_t)opts->mode);
    return fd;
}

void listen_remove(struct str address)
{
    struct sockaddr_storage sa;
    socklen_t len = 0;
    struct err e = {0};

    if (listen_is_unix(address) && listen_parse(address, &sa, &len, &e))
        unlink(((const struct sockaddr_un *)(const void *)&sa)->sun_path);
}

bool listen_is_free(struct str address, struct err *e)
{
    struct sockaddr_storage sa;
    socklen_t len = 0;
    int fd = -1;
    bool ok = false;

    if (!listen_parse(address, &sa, &len, e))
        return false;
    if (sa.ss_family == AF_UNIX) {
        remove_stale(&sa, len);
        ok = access(((const struct sockaddr_un *)(const void *)&sa)->sun_path, F_OK) != 0;
        if (!ok)
            err_set(e, STR_FMT " is in use", STR_ARG(address));
        return ok;
    }
    fd = open_socket(&sa, false);
    ok = fd >= 0 && bind(fd, (const struct sockaddr *)&sa, len) == 0 && listen(fd, 1) == 0;
    if (!ok)
        err_set(e, "cannot listen on " STR_FMT ": %s", STR_ARG(address), strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}
