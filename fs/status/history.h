/* What the daemon counted in its last hour: a sample each ten seconds, in a ring. It takes 26 KiB,
 * for ever. .epochfs/history.json shows it. */
#ifndef EPOCHFS_FS_STATUS_HISTORY_H
#define EPOCHFS_FS_STATUS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/text.h"

#define HISTORY_INTERVAL_S 10
#define HISTORY_SAMPLES    360

struct active_plans;
struct stage;

/* One moment. Counters are those of the mount since its start. */
struct history_sample {
    int64_t at_s; /* seconds since 1970 */
    uint64_t served_bytes;
    uint64_t received_bytes, staged_bytes, total_bytes; /* of the remote; 0 without one */
    uint64_t hits, misses, waits, wait_ns;
    double batches_per_s; /* of all plans, on average since the sample before */
};

struct history {
    struct lock lock;
    /* Guarded by lock: */
    int64_t next_ns; /* of the clock: when the next sample is due; 0: at once */
    unsigned n;      /* samples */
    unsigned first;  /* the oldest one */
    struct history_sample sample[HISTORY_SAMPLES]; /* a ring */
};

void history_init(struct history *ret);
void history_release(struct history *history);

/* Where samples come from; stage and active_plans may be NULL. */
struct history_sources {
    const _Atomic uint64_t *served_bytes;
    struct stage *stage;
    struct active_plans *active_plans;
};

/* Take a sample if one is due. Cheap; call it about every second. After a pause (the machine slept)
 * samples are simply missing. */
void history_note(struct history *history, const struct history_sources *sources,
                  const struct clock *clock);

/* Units per second, on average over the last interval, of a plan whose first read was since_s ago
 * and whose last one quiet_s ago (INFINITY: none was), at units_per_s in between. unseen: units
 * that the kernel may give to its reader from then on, without a read that reaches us. */
double history_speed(double units_per_s, double since_s, double quiet_s, uint64_t unseen);

/* Add the text of history.json. */
void history_json(struct history *history, struct text *t);

#endif
