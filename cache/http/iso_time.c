/* Times as the services of AWS write them. */
#include "cache/http/iso_time.h"

#include <string.h>

bool iso_time_parse(const char *text, time_t *ret)
{
    struct tm tm = {0};
    const char *end =
        *text >= '0' && *text <= '9' ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    if (!end || tm.tm_year < 70)
        return false;
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0)
        return false;
    *ret = timegm(&tm);
    return true;
}
