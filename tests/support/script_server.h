/* An HTTP server that follows a test's scripts, right or wrong. One thread accepts, and each
 * connection has a thread. An assertion that fails in those threads would go unnoticed, so scripts
 * only write. */
#ifndef EPOCHFS_TESTS_SUPPORT_SCRIPT_SERVER_H
#define EPOCHFS_TESTS_SUPPORT_SCRIPT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct script_server;

struct script_request {
    struct script_server *server;
    int fd;
    char head[8192]; /* as received, NUL-terminated */
    char method[16], path[512];
    bool has_range;
    uint64_t first, last; /* of Range */
    unsigned nth;         /* request of this path; the first is 1 */
};

struct script {
    const char *path;
    /* Answer a request. Returns whether the connection stays open. */
    bool (*reply)(const struct script_request *request);
};

/* scripts: ends with a path of NULL; any other path gets 404. Returns NULL if the server cannot
 * start. */
struct script_server *script_server_new(const struct script *scripts);
void script_server_free(struct script_server *server); /* takes NULL */
unsigned script_server_port(const struct script_server *server);
unsigned script_server_accepted(struct script_server *server); /* connections so far */
unsigned script_server_requests(struct script_server *server);

/* For scripts: send bytes; false: the client is gone. */
bool script_send(const struct script_request *request, const void *bytes, size_t n);
bool script_say(const struct script_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Send n bytes, `piece` of them between two calls of pause(). false: the client has closed. */
bool script_drip(const struct script_request *request, const void *bytes, size_t n, size_t piece,
                 void (*pause)(void));

/* Send nothing, and call pause() until the client closes. */
void script_stay_silent(const struct script_request *request, void (*pause)(void));

/* Wait until the client closes. */
void script_wait_closed(const struct script_request *request);

/* Break the connection, with a reset. */
bool script_reset(const struct script_request *request);

#endif
