/* Runs: blocks fetched together; their lists, how they are made, and how they leave.
 *
 * A run's blocks are COMING from when it is made until each is published or the run has left, so no
 * two runs of a process have a block in common. Claims ensure that no two processes fetch the same
 * block (cache/stage/claim.c).
 *
 * cache/stage/start.c starts their transfers, cache/stage/arrive.c takes what comes, and
 * cache/stage/settle.c decides what happens when a transfer has ended. This file calls none of
 * these.
 *
 * What counts as progress of a run, in this order:
 *   that it was made;
 *   while it is queued, and its remote has not failed it: bytes of any run, because the queue
 * moves; then: its own bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)

/* ---- lists ---- */

static struct run_list *list_of(struct run *run)
{
    struct stage *stage = run->file->stage;

    switch (run->state) {
    case RUN_QUEUED:
        return &stage->queued[run->why];
    case RUN_ACTIVE:
        return &stage->active;
    default:
        return &stage->asleep;
    }
}

static void list_add(struct run *run, enum run_state state)
{
    struct run_list *list;

    lock_assert_held(&run->file->stage->lock);
    run->state = state;
    list = list_of(run);
    run->next = NULL;
    run->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = run;
    list->last = run;
    list->n++;
}

/* A run that has slept has waited already: queue it before all others. */
static void list_add_first(struct run *run)
{
    struct run_list *list;

    lock_assert_held(&run->file->stage->lock);
    run->state = RUN_QUEUED;
    list = list_of(run);
    run->previous = NULL;
    run->next = list->first;
    *(list->first ? &list->first->previous : &list->last) = run;
    list->first = run;
    list->n++;
}

static void list_remove(struct run *run)
{
    struct run_list *list = list_of(run);

    lock_assert_held(&run->file->stage->lock);
    *(run->previous ? &run->previous->next : &list->first) = run->next;
    *(run->next ? &run->next->previous : &list->last) = run->previous;
    list->n--;
}

void run_move_locked(struct run *run, enum run_state state)
{
    list_remove(run);
    list_add(run, state);
}

static struct run *run_of(struct range *blocks)
{
    return blocks ? (struct run *)((char *)blocks - offsetof(struct run, blocks)) : NULL;
}

struct run *run_first_locked(struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    return run_of(ranges_first(&file->runs, first, end));
}

struct run *run_next_locked(const struct run *run, uint64_t first, uint64_t end)
{
    lock_assert_held(&run->file->stage->lock);
    return run_of(ranges_next(&run->file->runs, &run->blocks, first, end));
}

void run_set_blocks_locked(struct run *run, uint64_t first, uint64_t n)
{
    lock_assert_held(&run->file->stage->lock);
    run->first = first;
    run->n = n;
    ranges_move(&run->file->runs, &run->blocks, first, first + n);
}

void run_sleep_locked(struct run *run, int64_t until)
{
    run_move_locked(run, RUN_ASLEEP);
    run->alarm.first = (uint64_t)until;
    run->alarm.end = run->alarm.first + 1;
    ranges_add(&run->file->stage->alarms, &run->alarm);
}

static void wake_locked(struct run *run)
{
    ranges_remove(&run->file->stage->alarms, &run->alarm);
    list_remove(run);
    list_add_first(run);
}

/* Queue the runs whose sleep is over. Returns when to call this again. */
int64_t runs_wake_asleep_locked(struct stage *stage, int64_t now)
{
    struct range *alarm;

    while ((alarm = ranges_least(&stage->alarms)) && (int64_t)alarm->first <= now)
        wake_locked((struct run *)((char *)alarm - offsetof(struct run, alarm)));
    return alarm ? (int64_t)alarm->first : INT64_MAX;
}

/* ---- what is known of one ---- */

int64_t run_progress_locked(const struct run *run)
{
    bool is_queued = run->state != RUN_ACTIVE && !run->failures;
    int64_t progress = atomic_load_explicit(
        is_queued ? &run->file->stage->progress : &run->progress, memory_order_relaxed);

    lock_assert_held(&run->file->stage->lock);
    run->file->stage->looks++;
    return progress > run->made ? progress : run->made;
}

void run_watch_from_locked(struct run *run, int64_t since)
{
    run->watched_at = since;
    run->watched_bytes = atomic_load_explicit(&run->bytes, memory_order_relaxed);
}

/* Measure since the last progress of a run that is running, else from now on. */
void run_watch_locked(struct run *run)
{
    bool runs = run->state == RUN_ACTIVE && run->phase == RUN_RUNNING && !run->paused;

    lock_assert_held(&run->file->stage->lock);
    run_watch_from_locked(run, runs ? run_progress_locked(run) : stage_now(run->file->stage));
}

bool is_waited_for_locked(const struct run *run)
{
    return wait_first_locked(run->file, run->first, run->first + run->n) != NULL;
}

/* Would a reader use what comes even if it is not kept? */
bool run_is_wanted(const struct run *run)
{
    LOCK_SCOPE(&run->file->stage->lock);

    return run->why == RUN_DEMAND || is_waited_for_locked(run);
}

uint64_t run_bytes_left(const struct run *run)
{
    const struct file *file = run->file;
    uint64_t end = min_u64((run->first + run->n) * file->block_bytes, file->blob.size);

    return end - (run->first + run->done) * file->block_bytes;
}

/* ---- making ---- */

/* Blocks that memory still has are fetched again by the background only, which may find space on
 * disk for them. */
bool run_is_to_fetch(struct file *file, uint64_t block, enum run_why why, bool steal)
{
    enum block_state state = file_state(file, block);
    bool missing =
        state == BLOCK_UNKNOWN || state == BLOCK_ABSENT || (steal && state == BLOCK_ELSEWHERE);

    return missing && (why == RUN_BACKGROUND || !overflow_has(&file->stage->overflow, file, block));
}

/* 0, -ENOMEM or -EINTR. */
int run_make_locked(struct file *file, uint64_t first, uint64_t n, enum run_why why, bool steal)
{
    struct run *run;

    if (file->stage->ending || file->stage->resting) /* no thread would end it */
        return -EINTR;
    run = calloc(1, sizeof(*run));
    if (!run)
        return -ENOMEM;
    lock_init(&run->buffer_lock);
    run->file = file;
    run->first = first;
    run->n = n;
    atomic_store(&run->why, (int)why);
    run->when = STAGE_NEVER;
    run->made = stage_now(file->stage);
    run->references = 1;
    run->steals = steal;
    run->whole = file->version.whole_only;
    atomic_fetch_add(&file->users, 1);
    for (uint64_t b = first; b < first + n; b++)
        if (file_state(file, b) != BLOCK_HERE)
            file_set_locked(file, b, BLOCK_COMING);
    if (run->whole)
        file->whole = run;
    file->stage->alive++;
    list_add(run, RUN_QUEUED);
    run->blocks.first = first;
    run->blocks.end = first + n;
    ranges_add(&file->runs, &run->blocks);
    return 0;
}

int runs_make_locked(struct file *file, uint64_t first, uint64_t end, uint64_t most,
                     enum run_why why, bool steal)
{
    uint64_t blocks = max_u64(most / file->block_bytes, 1);
    bool any = false;
    int r = 0;

    lock_assert_held(&file->stage->lock);
    if (file->version.whole_only) {
        for (uint64_t b = first; b < end && !any; b++)
            any = run_is_to_fetch(file, b, why, steal);
        if (any && !file->whole)
            r = run_make_locked(file, 0, file->blocks, why, steal);
        return r;
    }
    while (first < end && r == 0) {
        uint64_t n = 0;

        while (first + n < end && n < blocks && run_is_to_fetch(file, first + n, why, steal))
            n++;
        if (n)
            r = run_make_locked(file, first, n, why, steal);
        first += n ? n : 1;
    }
    return r;
}

bool runs_make_planned_locked(struct file *file, uint64_t first, uint64_t end, uint64_t when,
                              uint64_t capacity)
{
    bool any = false;

    runs_make_locked(file, first, end, UINT64_MAX, RUN_BACKGROUND, false);
    for (struct run *run = run_first_locked(file, first, end); run;
         run = run_next_locked(run, first, end)) {
        if (run->why != RUN_BACKGROUND || run->state != RUN_QUEUED || run->begun)
            continue;
        run->when = when;
        if (!any)
            run->taken = capacity;
        any = true;
    }
    return any;
}

void runs_make_for_waits_locked(struct file *file, uint64_t first, uint64_t end,
                                struct wait **ret_over)
{
    struct wait *next;

    for (struct wait *w = wait_first_locked(file, first, end); w; w = next) {
        uint64_t from = max_u64(first, w->blocks.first), to = min_u64(end, w->blocks.end);
        enum run_why why = w->waiter->ahead ? RUN_AHEAD : RUN_DEMAND;

        next = wait_next_locked(w, first, end);
        runs_hurry_locked(file, from, to, why); /* runs made for another wait */
        if (runs_make_locked(file, from, to, DEMAND_BYTES, why, false) < 0)
            wait_end_locked(w, ret_over);
    }
}

static void hurry_locked(struct run *run, enum run_why why)
{
    uint64_t soon = (uint64_t)(stage_now(run->file->stage) + BACKOFF_MS * NS_PER_MS);
    bool queued = run->state == RUN_QUEUED;

    if (queued)
        list_remove(run);
    atomic_store(&run->why, (int)why);
    run_watch_locked(run);
    if (queued)
        list_add(run, RUN_QUEUED);
    if (run->state == RUN_ASLEEP && run->alarm.first > soon)
        ranges_move(&run->file->stage->alarms, &run->alarm, soon, soon + 1);
}

void runs_hurry_locked(struct file *file, uint64_t first, uint64_t end, enum run_why why)
{
    lock_assert_held(&file->stage->lock);
    if (!file->coming)
        return;
    for (struct run *run = run_first_locked(file, first, end); run;
         run = run_next_locked(run, first, end))
        if (run->why > (int)why)
            hurry_locked(run, why);
}

/* ---- leaving ---- */

/* Blocks that will not come with this run. Their waits end with error; 0: they go on, with another
 * run. The claims end first, so that the other run can claim. Blocks that the run has brought may
 * have been dropped meanwhile, and be coming with another run. */
static void release_blocks_locked(struct run *run, int error, struct wait **over)
{
    struct file *file = run->file;
    uint64_t first = run->first + run->done, end = run->first + run->n;

    lock_assert_held(&file->stage->lock);
    if (run->claimed > run->done)
        staged_unclaim(&file->staged, first, run->claimed - run->done);
    run->claimed = 0;
    for (uint64_t b = first; b < end; b++)
        if (file_state(file, b) == BLOCK_COMING)
            file_set_locked(file, b, BLOCK_ABSENT);
    if (error < 0)
        waits_over_locked(file, first, end, error, over);
    if (file->whole == run)
        file->whole = NULL;
}

void run_shorten_locked(struct run *run, uint64_t n, struct wait **over)
{
    struct file *file = run->file;
    uint64_t first = run->first + n, end = run->first + run->n;

    lock_assert_held(&file->stage->lock);
    if (run->claimed > n) {
        staged_unclaim(&file->staged, first, run->claimed - n);
        run->claimed = n;
    }
    for (uint64_t b = first; b < end; b++)
        if (file_state(file, b) == BLOCK_COMING)
            file_set_locked(file, b, BLOCK_ABSENT);
    run_set_blocks_locked(run, run->first, n);
    runs_make_for_waits_locked(file, first, end, over);
}

/* Keep buffers while there are runs: new ones cost a page fault for every 4 KiB. */
static void give_buffer_back_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&stage->lock);
    if (!run->buffer)
        return;
    if (stage->n_buffers < ARRAY_LEN(stage->buffer))
        stage->buffer[stage->n_buffers++] = run->buffer;
    else
        free(run->buffer);
    run->buffer = NULL;
}

void runs_free_buffers_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    while (stage->n_buffers)
        free(stage->buffer[--stage->n_buffers]);
}

/* Drop a reference to a run; the last one frees it. No lock held. */
void run_let_go(struct run *run)
{
    struct stage *stage = run->file->stage;
    bool last;

    lock_take(&stage->lock);
    last = !--run->references;
    lock_drop(&stage->lock);
    if (!last)
        return;
    if (run->taken)
        quota_give_back(stage->quota, run->taken);
    file_put(run->file);
    lock_take(&stage->lock);
    give_buffer_back_locked(run);
    stage->alive--;
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
    lock_release(&run->buffer_lock);
    free(run);
}

/* Remove the run from its list; the caller then calls run_let_go() without the lock. Readers that
 * still wait get their blocks from another run. A run of the whole file hindered others: blocks
 * that it has passed over, or that another process has let go of, may need runs now. */
void run_leave_locked(struct run *run, int error, struct wait **over)
{
    struct file *file = run->file;

    if (run->state == RUN_ASLEEP)
        ranges_remove(&file->stage->alarms, &run->alarm);
    list_remove(run);
    ranges_remove(&file->runs, &run->blocks);
    release_blocks_locked(run, error, over);
    if (run->whole)
        runs_make_for_waits_locked(file, 0, file->blocks, over);
    else
        runs_make_for_waits_locked(file, run->first, run->first + run->n, over);
}
