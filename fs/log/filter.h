/* Limits how many messages are logged: the same text at most once a minute, and at most LOG_BURST
 * lines in LOG_BURST_NS. Suppressed messages are counted, and the count is reported with the next
 * line that may be written, or at the end. */
#ifndef EPOCHFS_FS_LOG_FILTER_H
#define EPOCHFS_FS_LOG_FILTER_H

#include <stdint.h>

#include "base/lock.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

#define LOG_SAME_NS  INT64_C(60000000000)
#define LOG_BURST    50
#define LOG_BURST_NS INT64_C(10000000000)
#define LOG_TEXTS    64 /* texts that are remembered */

/* A line that was written. */
struct log_said {
    char *text; /* NULL: the place is free */
    enum log_level level;
    int64_t at;    /* when the text was last written */
    uint64_t more; /* how often it has come since then */
};

struct log_filter {
    /* Set by log_filter_init(), then constant: */
    void (*write)(void *ctx, enum log_level level, const char *text);
    void *ctx;
    struct lock lock;
    /* Guarded by lock. write() is called under it, so that lines keep their order: */
    struct log_said said[LOG_TEXTS];
    int64_t burst_at; /* when the first line of the burst came */
    unsigned burst;   /* lines of the burst */
    uint64_t left_out;
};

void log_filter_init(struct log_filter *filter,
                     void (*write)(void *ctx, enum log_level level, const char *text), void *ctx);

/* Log a message; now: monotonic_ns(). Debug messages are never suppressed: users that ask for them
 * want all. Any thread. */
void log_filter_line(struct log_filter *filter, int64_t now, enum log_level level,
                     const char *text);

/* Report what was suppressed, and release. */
void log_filter_end(struct log_filter *filter);

#endif
