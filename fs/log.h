/* Messages of the daemon: to stderr in front, to syslog in the background. Only fs/ logs. */
#ifndef EPOCHFS_FS_LOG_H
#define EPOCHFS_FS_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Messages above level are dropped. Set before threads start. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* From now on to syslog. */
void log_to_syslog(void);

/* One line. Any thread. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
