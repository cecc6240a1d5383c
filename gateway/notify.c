#include "gateway/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

void notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t n = path != NULL ? strlen(path) : 0;
    int fd = -1;

    if (n == 0 || n >= sizeof(un.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(un.sun_path, path, n);
    if (path[0] == '@')
        un.sun_path[0] = '\0'; /* abstract name */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&un,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
        log_warn("notify", "systemd did not take a notification");
    close(fd);
}
