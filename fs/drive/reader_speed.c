/* How fast a reader is, and since when. */
#include "fs/drive/reader_speed.h"

#include <math.h>

#define QUIET_S  60.0 /* without a read; then the plan may no longer be in use */
#define NEW_PART 0.2  /* of the average that the last move makes */
#define NS_PER_S 1e9

static double seconds(int64_t from, int64_t now)
{
    return (double)(now - from) / NS_PER_S;
}

void reader_speed_read(struct reader_speed *speed, int64_t now)
{
    speed->first_ns = speed->first_ns ? speed->first_ns : now;
    speed->last_ns = now;
}

void reader_speed_jumped(struct reader_speed *speed, int64_t now)
{
    speed->moved_ns = now;
}

void reader_speed_moved(struct reader_speed *speed, uint64_t units, int64_t now)
{
    double passed = seconds(speed->moved_ns, now);

    if (passed > 0) {
        double rate = (double)units / passed;

        speed->units_per_s =
            speed->units_per_s > 0 ? speed->units_per_s * (1 - NEW_PART) + rate * NEW_PART : rate;
    }
    speed->moved_ns = now;
}

bool reader_speed_is_quiet(const struct reader_speed *speed, uint64_t units, int64_t now)
{
    double expected = speed->units_per_s > 0 ? (double)units / speed->units_per_s : 0;

    return seconds(speed->last_ns, now) > QUIET_S + 4 * expected;
}

double reader_speed_since(const struct reader_speed *speed, int64_t now)
{
    return speed->first_ns ? seconds(speed->first_ns, now) : 0;
}

double reader_speed_quiet(const struct reader_speed *speed, int64_t now)
{
    return speed->first_ns ? seconds(speed->last_ns, now) : (double)INFINITY;
}
