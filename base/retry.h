/* Work in steps that may lack the bytes of a remote: not yet, try again, or give up. A state
 * machine without a clock or a file, for one thread. Commands and mounts prepare datasets by it.
 *
 *                   ┌───────────── the pause is over, or a reader asks ─────────────┐
 *                   ▼                                                               │
 *   step: more ─► GOES_ON ──── step: -EREMOTEIO, -EINTR ────────────────────────► PAUSES
 *                   ├── step: done ──► DONE                                         │
 *                   └── step: another error ──► FAILED ◄── the caller gives up ─────┘
 *
 * A step that cannot go on has waited for the retry limit (patience=) already, so its readers get
 * the reason now. A mount pauses, and tries again: a command gives up. docs/internals/not-yet.md.
 */
#ifndef EPOCHFS_BASE_RETRY_H
#define EPOCHFS_BASE_RETRY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#define RETRY_PAUSE_NS INT64_C(1000000000)

enum retry_state { RETRY_GOES_ON, RETRY_PAUSES, RETRY_DONE, RETRY_FAILED };

struct retry { /* {0}: goes on */
    enum retry_state state;
    int64_t until; /* PAUSES: when to try again */
};

/* May a step be made now? The end of a pause shows here. */
static inline bool retry_may(struct retry *retry, int64_t now)
{
    if (retry->state == RETRY_PAUSES && now >= retry->until)
        retry->state = RETRY_GOES_ON;
    return retry->state == RETRY_GOES_ON;
}

/* A step was made, with r: 1: all is done; 0: there is more to do; or -errno. */
static inline void retry_step(struct retry *retry, int r, int64_t now)
{
    retry->state = r == 1                           ? RETRY_DONE
                   : r == 0                         ? RETRY_GOES_ON
                   : r == -EREMOTEIO || r == -EINTR ? RETRY_PAUSES
                                                    : RETRY_FAILED;
    retry->until = now + RETRY_PAUSE_NS;
}

/* A reader asks for what is not done yet: end the pause. */
static inline void retry_ask(struct retry *retry)
{
    if (retry->state == RETRY_PAUSES)
        retry->state = RETRY_GOES_ON;
}

/* The caller does not try again. True: that makes it fail, for the reason of the last step. */
static inline bool retry_give_up(struct retry *retry)
{
    bool ends = retry->state == RETRY_PAUSES;

    retry->state = ends ? RETRY_FAILED : retry->state;
    return ends;
}

#endif
