/* Runs: blocks fetched together; how they are made, sleep, are hurried, and leave.
 *
 * A run's blocks are COMING from when it is made until each is published or the run has left, so no
 * two runs of a process have a block in common. Claims ensure that no two processes fetch the same
 * block (cache/stage/claim.c).
 *
 * cache/stage/start.c makes runs and starts their transfers, cache/stage/arrive.c takes what comes,
 * and cache/stage/settle.c decides what happens when a transfer has ended. This file calls none of
 * these.
 *
 * What counts as progress of a run, in this order:
 *   what counted for its need when it was made;
 *   while it sleeps, and its remote has not failed it: bytes of any run, because the queue moves;
 *   otherwise: its own bytes. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)
#define SPARE_MS  2000 /* buffers that no run has used for so long are freed */
#define HURRY_MS  200  /* how long a run sleeps at most that a reader begins to wait for */

/* ---- active and asleep ---- */

static void activate_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&run->file->stage->lock);
    run->state = RUN_STARTING;
    run->begun++;
    TAILQ_INSERT_TAIL(&stage->active, run, link);
    stage->n_active++;
}

/* Remove the run from where its state has it. */
static void remove_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&stage->lock);
    if (run->state == RUN_ASLEEP) {
        ranges_remove(&stage->alarms[run->why], &run->alarm);
        return;
    }
    TAILQ_REMOVE(&stage->active, run, link);
    stage->n_active--;
}

static void set_alarm_locked(struct run *run, uint64_t at)
{
    lock_assert_held(&run->file->stage->lock);
    run->alarm.first = at;
    run->alarm.end = at + 1;
    ranges_add(&run->file->stage->alarms[run->why], &run->alarm);
}

void run_sleep_locked(struct run *run, int64_t until)
{
    lock_assert_held(&run->file->stage->lock);
    remove_locked(run);
    run->state = RUN_ASLEEP;
    set_alarm_locked(run, (uint64_t)until);
}

void run_wake_locked(struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    remove_locked(run);
    atomic_store_explicit(&run->progress, run_progress_locked(run), memory_order_relaxed);
    activate_locked(run);
}

struct run *run_due_locked(struct stage *stage, enum run_why why, int64_t now)
{
    struct range *alarm = ranges_least(&stage->alarms[why]);

    lock_assert_held(&stage->lock);
    return alarm && (int64_t)alarm->first <= now
               ? (struct run *)((char *)alarm - offsetof(struct run, alarm))
               : NULL;
}

int64_t runs_next_alarm_locked(struct stage *stage, int64_t now)
{
    int64_t next = INT64_MAX;

    lock_assert_held(&stage->lock);
    for (unsigned why = 0; why < RUN_WHYS; why++) {
        struct range *alarm = ranges_first(&stage->alarms[why], (uint64_t)now + 1, UINT64_MAX);

        if (alarm && (int64_t)alarm->first < next)
            next = (int64_t)alarm->first;
    }
    return next;
}

bool runs_sleep_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return stage->alarms[RUN_DEMAND].n || stage->alarms[RUN_AHEAD].n ||
           stage->alarms[RUN_BACKGROUND].n;
}

/* ---- found by their blocks ---- */

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

/* ---- what is known of one ---- */

int64_t run_progress_locked(const struct run *run)
{
    const struct stage *stage = run->file->stage;
    int64_t own = atomic_load_explicit(&run->progress, memory_order_relaxed),
            any = atomic_load_explicit(&stage->progress, memory_order_relaxed);

    lock_assert_held(&run->file->stage->lock);
    run->file->stage->looks++;
    return run->state == RUN_ASLEEP && !run->failures && any > own ? any : own;
}

void run_watch_from_locked(struct run *run, int64_t since)
{
    lock_assert_held(&run->file->stage->lock);
    run->watched_at = since;
    run->watched_bytes = atomic_load_explicit(&run->bytes, memory_order_relaxed);
}

bool is_waited_for_locked(const struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    return wait_first_locked(run->file, run->first, run->first + run->n) != NULL;
}

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

bool run_must_wait_locked(const struct file *file)
{
    lock_assert_held(&file->stage->lock);
    return file->version.whole_only && file->runs.n;
}

/* Can a run have the block between its others? If it is missing, it comes, too, and *ret_comes is
 * true. What is here passes by, and so does what was dropped after its last need. */
static bool take_along_locked(struct file *file, uint64_t block, bool *ret_comes)
{
    enum block_state state = file_state(file, block);

    lock_assert_held(&file->stage->lock);
    *ret_comes = state != BLOCK_HERE && !file_is_for_readers(file, block);
    if (state == BLOCK_COMING || state == BLOCK_ELSEWHERE)
        return false;
    if (*ret_comes)
        file_set_locked(file, block, BLOCK_COMING);
    return true;
}

/* Widen the blocks of a run to all that are missing, up to those that others bring. */
static void widen_locked(struct file *file, uint64_t *first, uint64_t *n)
{
    uint64_t end = *first + *n;
    bool comes;

    lock_assert_held(&file->stage->lock);
    for (uint64_t b = *first; b && take_along_locked(file, b - 1, &comes); b--)
        *first = comes ? b - 1 : *first;
    for (uint64_t b = end; b < file->blocks && take_along_locked(file, b, &comes); b++)
        end = comes ? b + 1 : end;
    *n = end - *first;
}

struct run *run_make_locked(struct file *file, uint64_t first, uint64_t n, enum run_why why,
                            int64_t since)
{
    struct run *run = calloc(1, sizeof(*run));
    int64_t progress = atomic_load_explicit(&file->stage->progress, memory_order_relaxed);

    lock_assert_held(&file->stage->lock);
    if (!run)
        return NULL;
    for (uint64_t b = first; b < first + n; b++) {
        run->steals = run->steals || file_state(file, b) == BLOCK_ELSEWHERE;
        file_set_locked(file, b, BLOCK_COMING);
    }
    if (file->version.whole_only)
        widen_locked(file, &first, &n);
    lock_init(&run->buffer_lock);
    run->file = file;
    run->first = first;
    run->n = n;
    run->when = STAGE_NEVER;
    run->references = 1;
    atomic_store(&run->why, (int)why);
    atomic_store(&run->progress, progress > since ? progress : since);
    atomic_fetch_add(&file->users, 1);
    file->stage->alive++;
    activate_locked(run);
    run->blocks.first = first;
    run->blocks.end = first + n;
    ranges_add(&file->runs, &run->blocks);
    return run;
}

static void hurry_locked(struct run *run, enum run_why why)
{
    bool sleeps = run->state == RUN_ASLEEP, runs = run->state == RUN_RUNNING && !run->paused;
    int64_t now = stage_now(run->file->stage);

    lock_assert_held(&run->file->stage->lock);
    if (sleeps)
        remove_locked(run);
    atomic_store(&run->why, (int)why);
    if (sleeps)
        set_alarm_locked(run, min_u64(run->alarm.first, (uint64_t)(now + HURRY_MS * NS_PER_MS)));
    run_watch_from_locked(run, runs ? run_progress_locked(run) : now);
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

/* The blocks of the run behind its first n will not come with it. Their claims end first, so that
 * another run can claim them. Blocks that the run has brought may have been dropped meanwhile, and
 * be coming with another run. */
static void let_go_of_blocks_locked(struct run *run, uint64_t n)
{
    struct file *file = run->file;

    lock_assert_held(&file->stage->lock);
    if (run->claimed > n)
        staged_unclaim(&file->staged, run->first + n, run->claimed - n);
    run->claimed = min_u64(run->claimed, n);
    for (uint64_t b = run->first + n; b < run->first + run->n; b++)
        if (file_state(file, b) == BLOCK_COMING)
            file_set_locked(file, b, BLOCK_ABSENT);
}

void run_shorten_locked(struct run *run, uint64_t n)
{
    uint64_t end = run->first + run->n;

    lock_assert_held(&run->file->stage->lock);
    let_go_of_blocks_locked(run, n);
    run->cut = n < run->n ? 0 : run->cut;
    run_set_blocks_locked(run, run->first, n);
    needs_again_locked(run->file, run->first + n, end);
}

void run_leave_locked(struct run *run, int error, struct wait **ret_over)
{
    struct file *file = run->file;
    uint64_t first = run->first, end = first + run->n;

    lock_assert_held(&run->file->stage->lock);
    remove_locked(run);
    run->state = RUN_GONE;
    ranges_remove(&file->runs, &run->blocks);
    let_go_of_blocks_locked(run, run->done);
    if (error < 0)
        waits_over_locked(file, first + run->done, end, error, ret_over);
    if (file->version.whole_only) { /* it hindered others */
        first = 0;
        end = file->blocks;
    }
    needs_again_locked(file, first, end);
    run_let_go_locked(run);
}

void run_let_go_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&stage->lock);
    if (--run->references)
        return;
    TAILQ_INSERT_TAIL(&stage->dead, run, link);
}

uint8_t *runs_take_buffer(struct stage *stage)
{
    uint8_t *buffer = NULL;

    lock_take(&stage->lock);
    if (stage->n_buffers)
        buffer = stage->buffer[--stage->n_buffers];
    if (stage->buffers_spare > stage->n_buffers)
        stage->buffers_spare = stage->n_buffers;
    lock_drop(&stage->lock);
    if (buffer)
        return buffer;
    buffer = malloc(RUN_BUFFER);
    if (buffer)
        atomic_fetch_add(&stage->buffers, 1);
    return buffer;
}

static void free_buffer(struct stage *stage, uint8_t *buffer)
{
    free(buffer);
    atomic_fetch_sub(&stage->buffers, 1);
}

/* Keep buffers while there are runs: new ones cost a page fault for every 4 KiB. */
static void give_buffer_back_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&run->file->stage->lock);
    if (!run->buffer)
        return;
    if (stage->n_buffers < ARRAY_LEN(stage->buffer))
        stage->buffer[stage->n_buffers++] = run->buffer;
    else
        free_buffer(stage, run->buffer);
}

void runs_free_buffers_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    while (stage->n_buffers)
        free_buffer(stage, stage->buffer[--stage->n_buffers]);
}

/* A cache that is full never has all that is needed, so its runs never end for good. */
int64_t runs_trim_buffers_locked(struct stage *stage, int64_t now)
{
    lock_assert_held(&stage->lock);
    if (now >= stage->buffers_until) {
        for (; stage->buffers_spare && stage->n_buffers; stage->buffers_spare--)
            free_buffer(stage, stage->buffer[--stage->n_buffers]);
        stage->buffers_spare = stage->n_buffers;
        stage->buffers_until = now + SPARE_MS * NS_PER_MS;
    }
    return stage->n_buffers ? stage->buffers_until : INT64_MAX;
}

struct memory_held stage_buffers_held(void *owner)
{
    const struct stage *stage = owner;
    const struct stage_options *o = &stage->options;
    uint64_t most = max_u64(o->jobs, o->small_jobs) + ARRAY_LEN(stage->buffer);

    return (struct memory_held){.bytes = atomic_load(&stage->buffers) * RUN_BUFFER,
                                .limit = most * RUN_BUFFER};
}

/* Until the last of them is freed, the stage is not. */
static void free_dead(struct stage *stage, struct run_list *dead)
{
    uint64_t taken = 0;
    struct run *run;

    if (TAILQ_EMPTY(dead))
        return;
    TAILQ_FOREACH (run, dead, link)
        taken += run->taken;
    if (taken)
        quota_give_back(stage->quota, taken);
    lock_take(&stage->lock);
    while ((run = TAILQ_FIRST(dead))) {
        TAILQ_REMOVE(dead, run, link);
        file_put(run->file);
        give_buffer_back_locked(run);
        lock_release(&run->buffer_lock);
        free(run);
        stage->alive--;
    }
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
}

void runs_free_dead(struct stage *stage)
{
    struct run_list dead = TAILQ_HEAD_INITIALIZER(dead);

    lock_take(&stage->lock);
    TAILQ_CONCAT(&dead, &stage->dead, link);
    lock_drop(&stage->lock);
    free_dead(stage, &dead);
}

void run_let_go(struct run *run)
{
    struct stage *stage = run->file->stage;
    struct run_list dead = TAILQ_HEAD_INITIALIZER(dead);

    lock_take(&stage->lock);
    run_let_go_locked(run);
    TAILQ_CONCAT(&dead, &stage->dead, link);
    lock_drop(&stage->lock);
    free_dead(stage, &dead);
}

/* ---- stopping ---- */

/* Readers that come later get another run. */
static void stop_locked(struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    if (run->state == RUN_RUNNING && !run->stopping)
        transport_stop(run->file->stage->transport, &run->transfer);
    run->stopping = true;
}

void run_give_up_locked(struct run *run, struct wait **ret_over)
{
    lock_assert_held(&run->file->stage->lock);
    if (run->state == RUN_ASLEEP)
        run_leave_locked(run, -EREMOTEIO, ret_over);
    else
        stop_locked(run);
}

void runs_stop_locked(struct stage *stage, struct wait **ret_over)
{
    struct range *range;
    struct run *run;

    lock_assert_held(&stage->lock);
    while ((range = ranges_least(&stage->quiet)))
        wait_end_locked((struct wait *)((char *)range - offsetof(struct wait, quiet)), ret_over);
    for (unsigned why = 0; why < RUN_WHYS; why++) {
        while ((run = run_due_locked(stage, (enum run_why)why, INT64_MAX)))
            run_leave_locked(run, 0, ret_over);
        while (why < RUN_BACKGROUND && !TAILQ_EMPTY(&stage->needs[why]))
            need_unqueue_locked(TAILQ_FIRST(&stage->needs[why]));
    }
    TAILQ_FOREACH (run, &stage->active, link)
        stop_locked(run);
}
