/* Times as the services of AWS write them: 2026-11-21T18:15:22Z, with any fraction of a second. */
#ifndef EPOCHFS_CACHE_HTTP_ISO_TIME_H
#define EPOCHFS_CACHE_HTTP_ISO_TIME_H

#include <stdbool.h>
#include <time.h>

/* false: not such a time, or not in the years 1970 to 9999. Fractions are dropped, as HTTP does. */
bool iso_time_parse(const char *text, time_t *ret);

#endif
