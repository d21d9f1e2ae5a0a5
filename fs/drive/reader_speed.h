/* The speed of an active plan's reader, and other numbers that are times.
 *
 * Invariants:
 *  1. Times are those of the active plans' clock, in nanoseconds; 0: nothing was read yet.
 *  2. first_ns <= moved_ns <= last_ns, except a jump: it sets moved_ns alone.
 *  3. units_per_s is a moving average, and 0 until the reader has moved once.
 *
 * The active plans' lock guards it. */
#ifndef EPOCHFS_FS_DRIVE_READER_SPEED_H
#define EPOCHFS_FS_DRIVE_READER_SPEED_H

#include <stdbool.h>
#include <stdint.h>

struct reader_speed {
    int64_t first_ns, last_ns; /* reads that reached us */
    int64_t moved_ns;          /* the last read that was further on, or elsewhere */
    int64_t wait_ns;           /* how long readers waited for the remote */
    double units_per_s;
};

/* A read has reached us. */
void reader_speed_read(struct reader_speed *speed, int64_t now);

/* The reader has begun, or jumped: its way to there says nothing. */
void reader_speed_jumped(struct reader_speed *speed, int64_t now);

/* The reader is so many units further on. */
void reader_speed_moved(struct reader_speed *speed, uint64_t units, int64_t now);

/* Has nothing been read for so long that the plan may no longer be in use? Reads may be `units`
 * units apart. */
bool reader_speed_is_quiet(const struct reader_speed *speed, uint64_t units, int64_t now);

/* Seconds since the first read, and since the last; 0 and INFINITY if there was none. */
double reader_speed_since(const struct reader_speed *speed, int64_t now);
double reader_speed_quiet(const struct reader_speed *speed, int64_t now);

#endif
