#include "fs/life/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scope.h"

void notify_ready(void)
{
    static const char ready[] = "READY=1";
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    AUTO_CLOSE int fd = -1;

    if (len < 2 || len >= sizeof(at.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(at.sun_path, path, len);
    if (path[0] == '@') /* abstract: has no file */
        at.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && sendto(fd, ready, strlen(ready), MSG_NOSIGNAL, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
        /* If it failed, the service manager notices by its own time limit. */
    }
}
