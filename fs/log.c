#include "fs/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>

#include "base/lock.h"

static enum log_level max_level = LOG_LEVEL_INFO;
static bool use_syslog;

/* Guarded by lock: how many lines this second had. */
static struct lock lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static time_t second;
static unsigned lines, dropped;

void log_set_level(enum log_level level)
{
    max_level = level;
}

enum log_level log_get_level(void)
{
    return max_level;
}

void log_to_syslog(void)
{
    openlog("epochfs", LOG_PID, LOG_DAEMON);
    use_syslog = true;
}

static void write_line(enum log_level level, const char *text)
{
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

    if (use_syslog)
        syslog(priorities[level], "%s", text);
    else
        fprintf(stderr, "epochfs: %s\n", text);
}

/* May this line be written? *ret_dropped: how many were not, to be told now. */
static bool admit(unsigned *ret_dropped)
{
    struct timespec now;
    LOCK_SCOPE(&lock);

    *ret_dropped = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != second) {
        second = now.tv_sec;
        lines = 0;
        *ret_dropped = dropped;
        dropped = 0;
    }
    if (++lines <= LOG_BURST)
        return true;
    dropped++;
    return false;
}

void log_line(enum log_level level, const char *format, ...)
{
    char text[2048];
    unsigned missing;
    va_list args;

    if (level > max_level)
        return;
    if (level != LOG_LEVEL_DEBUG) {
        if (!admit(&missing))
            return;
        if (missing) {
            snprintf(text, sizeof(text), "%u more messages were not written", missing);
            write_line(LOG_LEVEL_WARNING, text);
        }
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    write_line(level, text);
}
