/* Times as the services of AWS write them. */
#include "cache/http/iso_time.h"

#include <stddef.h>
#include <string.h>

/* Read a number of n digits at text, within bounds. */
static bool digits(const char *text, size_t n, int least, int most, int *ret)
{
    int v = 0;

    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        v = 10 * v + (text[i] - '0');
    }
    *ret = v;
    return v >= least && v <= most;
}

bool iso_time_parse(const char *text, time_t *ret)
{
    struct tm tm = {0};

    if (strlen(text) < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':' || text[16] != ':' || !digits(text, 4, 1970, 9999, &tm.tm_year) ||
        !digits(text + 5, 2, 1, 12, &tm.tm_mon) || !digits(text + 8, 2, 1, 31, &tm.tm_mday) ||
        !digits(text + 11, 2, 0, 23, &tm.tm_hour) || !digits(text + 14, 2, 0, 59, &tm.tm_min) ||
        !digits(text + 17, 2, 0, 60, &tm.tm_sec))
        return false;
    text += 19;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    if (strcmp(text, "Z") != 0 && strcmp(text, "+00:00") != 0)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *ret = timegm(&tm);
    return true;
}
