/* Messages: to stderr in the foreground, to syslog in the background. Only fs/ logs. */
#ifndef EPOCHFS_FS_LOG_LOG_H
#define EPOCHFS_FS_LOG_LOG_H

#include "fs/log/filter.h"

/* Messages above level are dropped. Set before threads start. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* From now on log to syslog, each message with the mountpoint. The text must stay valid until the
 * end. */
void log_to_syslog(const char *mountpoint);

/* From log_begin() on, messages pass the filter of fs/log/filter.h; with log=debug all are written.
 * log_end(): no other thread may log any more. */
void log_begin(void);
void log_end(void);

/* Log each line of a text. */
void log_lines(enum log_level level, const char *text);

/* Log one line. Any thread. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
