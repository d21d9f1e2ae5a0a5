/* Reports of all other files of the stage: work to do goes to the stage's thread, failures go to
 * the listener, readers' waiting times go to the counters. The lowest file of the stage: it calls
 * none of the others. */
#include "base/thread.h"
#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)

void stage_kick_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    stage->kicked = true;
    pthread_cond_signal(&stage->wake);
    if (stage->runs || stage->ending || stage->resting)
        return;
    stage->runs = thread_start(&stage->thread, stage->main, stage) == 0;
}

void stage_tell(struct stage *stage, int error, const struct diag *reason)
{
    const struct stage_listener *listener = atomic_load(&stage->listener);

    if (listener && error < 0)
        listener->failed(listener->ctx, error, diag_text(reason, error));
    else if (listener)
        listener->answered(listener->ctx);
}

void stage_tell_early(struct stage *stage, int error, const struct diag *reason)
{
    lock_take(&stage->lock);
    stage->untold = *reason;
    stage->untold_error = error;
    lock_drop(&stage->lock);
    stage_tell(stage, error, reason);
}

void stage_set_listener(struct stage *stage, const struct stage_listener *listener)
{
    struct diag untold;
    int error;

    atomic_store(&stage->listener, listener);
    lock_take(&stage->lock);
    untold = stage->untold;
    error = stage->untold_error;
    lock_drop(&stage->lock);
    if (listener && error < 0)
        stage_tell(stage, error, &untold);
}

const unsigned stage_wait_ms[STAGE_WAIT_CLASSES] = {1,   2,   5,    10,   20,    50,
                                                    100, 500, 1000, 5000, 20000, 60000};

void stage_waited(struct stage *stage, int64_t ns)
{
    struct stage_counters *c = &stage->counters;
    unsigned class = 0;

    while (class < STAGE_WAIT_CLASSES && ns > stage_wait_ms[class] * NS_PER_MS)
        class ++;
    atomic_fetch_add_explicit(&c->waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->wait_ns, (uint64_t)ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->wait_class[class], 1, memory_order_relaxed);
}
