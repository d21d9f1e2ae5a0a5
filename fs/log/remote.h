/* Logs the failures of a remote: each failure, by file and reason, once as long as it goes on; then
 * how often it came, and when the remote answers again. */
#ifndef EPOCHFS_FS_LOG_REMOTE_H
#define EPOCHFS_FS_LOG_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

#define REMOTE_FAILURES 32                   /* failures that are remembered */
#define REMOTE_QUIET_NS INT64_C(60000000000) /* without a failure: all are forgotten */
#define REMOTE_GONE_NS  INT64_C(1000000000)  /* after failing this long, an answer is logged */

struct remote_failure {
    char *text; /* as it was first seen */
    uint64_t more;
};

struct remote_log {
    /* Set by remote_log_init(), then constant: where lines go. */
    void (*say)(void *ctx, const char *text);
    void *ctx;
    struct lock lock;
    /* Guarded by lock; say() is called under it: */
    struct remote_failure failure[REMOTE_FAILURES];
    unsigned n;
    uint64_t others;  /* failures for which there was no place */
    bool fails;       /* no answer has come since: */
    int64_t since;    /* monotonic_ns(), as is: */
    int64_t last;     /* failure */
    uint64_t n_since; /* failures */
};

void remote_log_init(struct remote_log *log, void (*say)(void *ctx, const char *text), void *ctx);

/* A file could not be fetched; text: "<file>: <reason>". Reasons that differ only in numbers,
 * mostly bytes, count as the same. is_gone: nothing else can be fetched either. Any thread. */
void remote_log_failed(struct remote_log *log, const char *text, bool is_gone, int64_t now);

/* The remote has answered with what was asked for. Any thread. */
void remote_log_answered(struct remote_log *log, int64_t now);

/* Report what was only counted, and release. */
void remote_log_end(struct remote_log *log);

#endif
