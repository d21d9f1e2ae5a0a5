/* The stage's thread, on top of all other files of the stage.
 *
 * Readers that wait queue their needs themselves. This file does the rest: it ends waits that have
 * lasted too long, wakes runs, watches what other processes fetch, and calls the background. */
#include <errno.h>

#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)
#define LOOK_MS   50 /* between two looks while a reader waits */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t runs_look_locked(struct stage *stage, int64_t now, struct wait **ret_over)
{
    int64_t next = waits_give_up_locked(stage, now, ret_over);
    bool waited = stage->quiet.n > 0;
    const struct run *run;

    lock_assert_held(&stage->lock);
    runs_stop_late_locked(stage, now);
    TAILQ_FOREACH (run, &stage->active, link)
        waited = waited || run->why != RUN_BACKGROUND;
    if (waited) /* runs_flush() */
        next = earlier(next, now + LOOK_MS * NS_PER_MS);
    return earlier(next, runs_next_alarm_locked(stage, now));
}

void *stage_main(void *arg)
{
    struct stage *stage = arg;

    lock_take(&stage->lock);
    while (!stage->ending && !stage->resting) {
        struct wait *over = NULL;
        int64_t now = stage_now(stage), next;

        stage->kicked = false;
        next = runs_look_locked(stage, now, &over);
        lock_drop(&stage->lock);
        waits_tell(stage, over, -EREMOTEIO, NULL);
        runs_free_dead(stage);
        runs_flush(stage);
        next = earlier(next, look_at_others(stage, now));
        runs_start(stage);
        next = earlier(next, passed_drop(stage, now));
        stage_in_background(stage, now);
        runs_start(stage);
        lock_take(&stage->lock);
        next = earlier(next, background_next_look_locked(stage, now));
        next = earlier(next, runs_trim_buffers_locked(stage, now));
        if (!stage->kicked && !stage->ending && !stage->resting)
            clock_wait(stage->options.clock, &stage->lock, &stage->wake, next);
    }
    lock_drop(&stage->lock);
    return NULL;
}
