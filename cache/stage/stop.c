/* Ends runs before they have brought all: takes them back, gives them up, or stops them with the
 * stage. */
#include <errno.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

void runs_let_go(struct run *gone)
{
    while (gone) {
        struct run *run = gone;

        gone = run->next;
        run_let_go(run);
    }
}

void runs_take_back(struct stage *stage)
{
    struct run *gone = NULL;
    struct wait *over = NULL;

    lock_take(&stage->lock);
    for (struct run *run = stage->queued[RUN_BACKGROUND].first, *next; run; run = next) {
        next = run->next;
        if (run->begun)
            continue;
        run_leave_locked(run, 0, &over);
        run->next = gone;
        gone = run;
    }
    lock_drop(&stage->lock);
    waits_tell(stage, over, 0, NULL);
    runs_let_go(gone);
}

/* error: what readers that wait get; 0: another run serves them. */
static void stop_locked(struct run *run, int error)
{
    run->over_error = error;
    if (run->phase == RUN_RUNNING && !run->stopping)
        transport_stop(run->file->stage->transport, &run->transfer);
    run->stopping = true;
}

void run_give_up_locked(struct run *run, struct wait **over, struct run **gone)
{
    if (run->state == RUN_ACTIVE) {
        stop_locked(run, 0); /* readers that come later get another run */
        return;
    }
    run_leave_locked(run, -EREMOTEIO, over);
    run->next = *gone;
    *gone = run;
}

void runs_stop_locked(struct stage *stage, struct wait **ret_over)
{
    struct run_list *lists[] = {&stage->queued[0], &stage->queued[1], &stage->queued[2],
                                &stage->asleep};
    struct run *gone = NULL;

    lock_assert_held(&stage->lock);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        while (lists[i]->first) {
            struct run *run = lists[i]->first;

            run_leave_locked(run, -EINTR, ret_over);
            run->next = gone;
            gone = run;
        }
    }
    for (struct run *run = stage->active.first; run; run = run->next)
        stop_locked(run, -EINTR);
    lock_drop(&stage->lock);
    runs_let_go(gone);
    lock_take(&stage->lock);
}
