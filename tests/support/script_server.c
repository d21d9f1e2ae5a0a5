#include "support/script_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lock.h"

#define CONNECTIONS 256
#define PATHS       128

struct connection {
    struct script_server *server;
    pthread_t thread;
    int fd; /* guarded by the server's lock; -1: closed */
};

struct script_server {
    const struct script *scripts;
    int door;
    unsigned port;
    pthread_t thread;
    _Atomic unsigned requests;
    struct lock lock;
    /* Guarded by lock: */
    bool ending;
    unsigned n;
    struct connection connection[CONNECTIONS];
    unsigned seen[PATHS]; /* requests of each script */
};

bool script_send(const struct script_request *request, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n > 0) {
        ssize_t sent = send(request->fd, at, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

bool script_say(const struct script_request *request, const char *format, ...)
{
    char text[2048];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return script_send(request, text, (size_t)n);
}

static bool has_closed(const struct script_request *request)
{
    struct pollfd closed = {.fd = request->fd, .events = POLLRDHUP};

    return poll(&closed, 1, 0) > 0;
}

bool script_drip(const struct script_request *request, const void *bytes, size_t n, size_t piece,
                 void (*pause)(void))
{
    const char *at = bytes;

    for (size_t len; n > 0; at += len, n -= len) {
        len = n < piece ? n : piece;
        if (!script_send(request, at, len))
            return false;
        pause();
        if (has_closed(request))
            return false;
    }
    return true;
}

void script_stay_silent(const struct script_request *request, void (*pause)(void))
{
    while (!has_closed(request))
        pause();
}

void script_wait_closed(const struct script_request *request)
{
    char byte;

    while (recv(request->fd, &byte, 1, 0) > 0) {
    }
}

bool script_reset(const struct script_request *request)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(request->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    return false;
}

/* Read a head; false: the client is gone. One request at a time: epochfs does not pipeline. */
static bool read_head(struct script_request *request)
{
    size_t n = 0;

    for (;;) {
        ssize_t got = recv(request->fd, request->head + n, sizeof(request->head) - 1 - n, 0);

        if (got <= 0)
            return false;
        n += (size_t)got;
        request->head[n] = '\0';
        if (strstr(request->head, "\r\n\r\n"))
            return true;
    }
}

static bool answer(struct script_request *request)
{
    struct script_server *server = request->server;
    unsigned long long first = 0, last = 0;
    const char *range;

    if (sscanf(request->head, "%15s %511s", request->method, request->path) != 2)
        return false;
    request->path[strcspn(request->path, "?")] = '\0';
    range = strstr(request->head, "\r\nRange: bytes=");
    request->has_range = range && sscanf(range + 15, "%llu-%llu", &first, &last) == 2;
    request->first = first;
    request->last = last;
    atomic_fetch_add(&server->requests, 1);
    for (unsigned i = 0; server->scripts[i].path; i++) {
        if (strcmp(server->scripts[i].path, request->path) != 0)
            continue;
        lock_take(&server->lock);
        request->nth = ++server->seen[i];
        lock_drop(&server->lock);
        return server->scripts[i].reply(request);
    }
    return script_say(request, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

static void *connection_main(void *arg)
{
    struct connection *connection = arg;
    struct script_request *request = calloc(1, sizeof(*request));

    if (request) {
        request->server = connection->server;
        lock_take(&connection->server->lock);
        request->fd = connection->fd;
        lock_drop(&connection->server->lock);
        while (read_head(request) && answer(request)) {
        }
    }
    lock_take(&connection->server->lock);
    close(connection->fd);
    connection->fd = -1;
    lock_drop(&connection->server->lock);
    free(request);
    return NULL;
}

static void *door_main(void *arg)
{
    struct script_server *server = arg;
    int one = 1, fd;

    while ((fd = accept(server->door, NULL, NULL)) >= 0) {
        struct connection *connection;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        lock_take(&server->lock);
        connection = &server->connection[server->n];
        connection->server = server;
        connection->fd = fd;
        if (server->ending || server->n == CONNECTIONS ||
            pthread_create(&connection->thread, NULL, connection_main, connection) != 0)
            close(fd);
        else
            server->n++;
        lock_drop(&server->lock);
    }
    return NULL;
}

struct script_server *script_server_new(const struct script *scripts)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct script_server *server = calloc(1, sizeof(*server));
    socklen_t len = sizeof(at);

    if (!server)
        return NULL;
    server->scripts = scripts;
    lock_init(&server->lock);
    server->door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server->door < 0 || bind(server->door, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(server->door, 64) != 0 ||
        getsockname(server->door, (struct sockaddr *)&at, &len) != 0 ||
        pthread_create(&server->thread, NULL, door_main, server) != 0) {
        close(server->door);
        free(server);
        return NULL;
    }
    server->port = ntohs(at.sin_port);
    return server;
}

void script_server_free(struct script_server *server)
{
    if (!server)
        return;
    lock_take(&server->lock);
    server->ending = true;
    for (unsigned i = 0; i < server->n; i++)
        if (server->connection[i].fd >= 0)
            shutdown(server->connection[i].fd, SHUT_RDWR);
    lock_drop(&server->lock);
    shutdown(server->door, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    for (unsigned i = 0; i < server->n; i++)
        pthread_join(server->connection[i].thread, NULL);
    close(server->door);
    lock_release(&server->lock);
    free(server);
}

unsigned script_server_port(const struct script_server *server)
{
    return server->port;
}

unsigned script_server_accepted(struct script_server *server)
{
    LOCK_SCOPE(&server->lock);

    return server->n;
}

unsigned script_server_requests(struct script_server *server)
{
    return atomic_load(&server->requests);
}
