/* Reports of all other files of the stage: work to do goes to the stage's thread, failures go to
 * the listener, readers' waiting times go to the counters. The lowest file of the stage: it calls
 * none of the others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "cache/stage/core.h"
#include "cache/stage/transport.h"

#define FULL_S 5
#define BUSY_S 1 /* pause while another process drops blocks */

void stage_kick_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    stage->kicked = true;
    pthread_cond_signal(&stage->wake);
    if (stage->has_thread || stage->ending || stage->resting)
        return;
    stage->has_thread = thread_start(&stage->thread, stage->main, stage) == 0;
}

void stage_tell(struct stage *stage, int error, const struct diag *reason)
{
    const struct stage_listener *listener = atomic_load(&stage->listener);

    if (listener && error < 0)
        listener->failed(listener->ctx, error, diag_text(reason, error));
    else if (listener)
        listener->answered(listener->ctx);
}

void file_set_trouble_locked(struct file *file, const char *text)
{
    lock_assert_held(&file->stage->lock);
    free(file->trouble);
    file->trouble = text ? strdup(text) : NULL;
}

void stage_note_full(struct stage *stage, int error)
{
    LOCK_SCOPE(&stage->lock);

    stage->full_error = error;
    stage->full_until = stage_now(stage) + (error == -EAGAIN ? BUSY_S : FULL_S) * NS_PER_S;
    pthread_cond_broadcast(&stage->gone);
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
    atomic_fetch_add(&c->waits, 1);
    atomic_fetch_add(&c->wait_ns, (uint64_t)ns);
    atomic_fetch_add(&c->wait_class[class], 1);
}

struct stage_counters *stage_counters(struct stage *stage)
{
    return &stage->counters;
}

bool stage_is_shared(const struct stage *stage)
{
    return stage->cache->group.is_shared;
}

void stage_space(struct stage *stage, struct stage_space *ret)
{
    uint64_t staged = atomic_load(&stage->counters.staged_bytes), used = quota_used(stage->quota);
    uint64_t limit = quota_limit(stage->quota), most = stage->options.own_limit;

    *ret = (struct stage_space){
        .total = atomic_load(&stage->counters.total_bytes),
        .limit = most ? min_u64(most, limit) : limit,
        .staged = staged,
        .others = used > staged ? used - staged : 0,
        .keep = stage->options.keep,
        .folder = stage->cache->path,
        .is_refused = atomic_load(&stage->counters.refused) > 0,
    };
}

struct quota *stage_quota(struct stage *stage)
{
    return stage->quota;
}

struct memory_held stage_overflow_held(void *owner)
{
    return overflow_held(((struct stage *)owner)->overflow);
}

bool stage_peers(struct stage *stage, struct transport_peers *ret)
{
    return transport_peers(stage->transport, ret);
}

void stage_trouble(struct stage *stage, char *ret, size_t capacity)
{
    LOCK_SCOPE(&stage->lock);

    snprintf(ret, capacity, "%s", stage->trouble_error ? stage->trouble.text : "");
}
