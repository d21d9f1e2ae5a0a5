#include "fs/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

static enum log_level max_level = LOG_LEVEL_INFO;
static bool use_syslog;

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

void log_line(enum log_level level, const char *format, ...)
{
    char text[2048];
    va_list args;

    if (level > max_level)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    write_line(level, text);
}
