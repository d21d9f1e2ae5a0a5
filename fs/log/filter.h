/* What of many messages is worth a line: the same text comes at most once a minute, and not more
 * than LOG_BURST lines come in LOG_BURST_NS. What is kept back is counted, and the count is told
 * with the next line that may come, or at the end. */
#ifndef EPOCHFS_FS_LOG_FILTER_H
#define EPOCHFS_FS_LOG_FILTER_H

#include <stdint.h>

#include "base/lock.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

#define LOG_SAME_NS  INT64_C(60000000000)
#define LOG_BURST    50
#define LOG_BURST_NS INT64_C(10000000000)
#define LOG_TEXTS    64 /* that are remembered */

/* A line that was written. */
struct log_said {
    char *text; /* NULL: the place is free */
    enum log_level level;
    int64_t at;    /* when it was last written */
    uint64_t more; /* how often it came since then */
};

struct log_filter {
    /* Set by log_filter_init(), then constant: */
    void (*write)(void *ctx, enum log_level level, const char *text);
    void *ctx;
    struct lock lock;
    /* Guarded by lock, under which write() is called, so that lines keep their order: */
    struct log_said said[LOG_TEXTS];
    int64_t burst_at; /* when the first line of the burst came */
    unsigned burst;   /* lines of it */
    uint64_t left_out;
};

void log_filter_init(struct log_filter *filter,
                     void (*write)(void *ctx, enum log_level level, const char *text), void *ctx);

/* A message, at monotonic_ns() now. Those for debugging all come: who asks for them wants them.
 * Any thread. */
void log_filter_line(struct log_filter *filter, int64_t now, enum log_level level,
                     const char *text);

/* Tell what was kept back, and release. */
void log_filter_end(struct log_filter *filter);

#endif
