#include "fs/log/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/text.h"

static enum log_level max_level = LOG_LEVEL_INFO;
static const char *_Atomic syslog_mountpoint; /* NULL: to stderr */
static struct log_filter filter;
static bool is_filtered;

void log_set_level(enum log_level level)
{
    max_level = level;
}

enum log_level log_get_level(void)
{
    return max_level;
}

void log_to_syslog(const char *mountpoint)
{
    openlog("epochfs", LOG_PID, LOG_DAEMON);
    syslog_mountpoint = mountpoint;
}

static void write_line(void *ctx, enum log_level level, const char *text)
{
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

    (void)ctx;
    if (syslog_mountpoint)
        syslog(priorities[level], "%s: %s", syslog_mountpoint, text);
    else
        fprintf(stderr, "epochfs: %s\n", text);
}

void log_begin(void)
{
    if (max_level == LOG_LEVEL_DEBUG) /* users that ask for debug messages want every line */
        return;
    log_filter_init(&filter, write_line, NULL);
    is_filtered = true;
}

void log_end(void)
{
    if (is_filtered)
        log_filter_end(&filter);
    is_filtered = false;
}

void log_lines(enum log_level level, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");

        if (len)
            log_line(level, "%.*s", (int)len, text);
        text += len + (text[len] != '\0');
    }
}

void log_line(enum log_level level, const char *format, ...)
{
    char text[2048];
    va_list args;

    if (level > max_level)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    text_plain(text, "");
    if (is_filtered)
        log_filter_line(&filter, monotonic_ns(), level, text);
    else
        write_line(NULL, level, text);
}
