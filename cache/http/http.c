/* Makes and frees HTTP. The work is in loop.c (requests), transfer.c (transfers of the stage) and
 * call.c (texts). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "cache/disk/folder.h"
#include "cache/disk/local_file.h"
#include "cache/http/parts.h"

#define NS_PER_S INT64_C(1000000000)
#define CA_MOST  (64u << 20) /* bytes of a file of certificates */

static void http_free(struct transport *transport)
{
    struct http *http = http_of(transport);

    http_signing_rest(&http->signing);
    if (http->loop)
        http_loop_rest(http);
    http_loop_free(http->loop);
    http_signing_release(&http->signing);
    http_via_release(&http->via);
    limiter_release(&http->limiter);
    free(http->ca);
    free(http);
}

/* Does the file have certificates? */
static int check_ca(const char *path, char **ret, struct diag *d)
{
    AUTO_TEXT struct text text = {0};
    const char *line = NULL;
    struct stat st;
    int r = file_read_whole(path, CA_MOST, &text, &st);

    if (r < 0)
        return diag_set(d, r, "%s: certificates to trust: %s", path,
                        r == -EINVAL ? "expected a regular file, got another kind of file"
                                     : strerror(-r));
    for (line = text.data; line && (line = strstr(line, "-----BEGIN ")); line++)
        if (memmem(line, strcspn(line, "\n"), "CERTIFICATE", strlen("CERTIFICATE")))
            break;
    if (!line)
        return diag_set(d, -EINVAL,
                        "%s: certificates to trust: expected a line -----BEGIN CERTIFICATE-----, "
                        "got none",
                        path);
    *ret = realpath(path, NULL); /* a daemon changes to / */
    return *ret ? 0 : diag_set(d, -errno, "%s: %s", path, strerror(errno));
}

/* libcurl reads it, and would wait for a pipe. */
static int check_netrc(struct diag *d)
{
    char path[PATH_MAX];
    struct stat st;

    if (!home_path("/.netrc", path, sizeof(path)) || stat(path, &st) < 0 || S_ISREG(st.st_mode))
        return 0;
    return diag_set(d, -EINVAL, "%s: expected a regular file, got another kind of file", path);
}

static void http_transport_rest(struct transport *transport)
{
    struct http *http = http_of(transport);

    http_signing_rest(&http->signing);
    http_loop_rest(http);
}

static const struct transport_ops transport_ops = {.start = http_transfer_start,
                                                   .stop = http_transfer_stop,
                                                   .pause = http_transfer_pause,
                                                   .stop_threads = http_transport_rest,
                                                   .peers = http_via_peers,
                                                   .free = http_free};

int http_new(const struct http_options *options, struct http **ret, struct diag *d)
{
    struct http *http = calloc(1, sizeof(*http));
    int r;

    if (!http)
        return -ENOMEM;
    http->transport.ops = &transport_ops;
    http->clock = clock_or_real(options->clock);
    http->asks_by_reading = options->asks_by_reading;
    http->by_time = options->by_time;
    http->by_url = options->by_url;
    http->accepts_gzip = options->accepts_gzip;
    limiter_init(&http->limiter, options->jobs < 2 ? 2 : options->jobs, options->most,
                 options->clock);
    http->transport.limiter = &http->limiter;
    http->transport.gave_up = &http->gave_up;
    http->waited = 1;
    http->transport.waited = &http->waited;
    http->retry_limit_ns = options->retry_limit_s ? options->retry_limit_s * NS_PER_S : NO_LIMIT;
    http->timeout_ns = (options->timeout_s ? options->timeout_s : 1) * NS_PER_S;
    if (http->timeout_ns > http->retry_limit_ns)
        http->timeout_ns = http->retry_limit_ns;
    http_signing_init(&http->signing, options->signer, http->clock, http_loop_poke);
    r = http_via_init(&http->via, options->via, options->via_secret, d);
    if (r == 0)
        r = check_netrc(d);
    if (r == 0 && options->ca)
        r = check_ca(options->ca, &http->ca, d);
    if (r == 0)
        r = http_loop_new(http, &http->loop);
    if (r < 0) {
        http_free(&http->transport);
        return r;
    }
    *ret = http;
    return 0;
}

bool http_sends_user(const struct http *http)
{
    return atomic_load(&http->user) == HTTP_USER_SENT;
}

struct transport *http_transport(struct http *http)
{
    return &http->transport;
}
