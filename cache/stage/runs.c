/* Runs: blocks fetched together; how they are made, sleep, are hurried, and leave.
 *
 * A run's blocks are COMING from when it is made until each is published or the run has left, so no
 * two runs of a process have a block in common. Claims ensure that no two processes fetch the same
 * block.
 *
 * cache/stage/transfers.c makes runs, starts their transfers, and decides what happens when one has
 * ended; cache/stage/arrive.c takes what comes. This file calls none of these.
 *
 * What counts as progress of a run, in this order:
 *   what counted for its need when it was made;
 *   while it sleeps, and its remote has not failed it: bytes of any run, because the queue moves;
 *   otherwise: its own bytes. */
#include <errno.h>
#include <stdlib.h>

#include "cache/stage/blocks.h"
#include "cache/stage/run.h"

#define SPARE_MS 2000 /* buffers that no run has used for so long are freed */
#define HURRY_MS 200  /* how long a run sleeps at most that a reader begins to wait for */

int runs_init(struct stage *stage)
{
    stage->runs = calloc(1, sizeof(*stage->runs));
    if (!stage->runs)
        return -ENOMEM;
    TAILQ_INIT(&stage->runs->active);
    TAILQ_INIT(&stage->runs->dead);
    return 0;
}

int file_runs_init(struct file *file)
{
    file->runs = calloc(1, sizeof(*file->runs));
    return file->runs ? 0 : -ENOMEM;
}

/* When the run last made progress, stage_now(). It must not be stopping. */
static int64_t run_progress_locked(const struct run *run)
{
    const struct stage *stage = run->file->stage;
    int64_t its = atomic_load(&run->progress), any = atomic_load(&stage->progress);

    lock_assert_held(&run->file->stage->lock);
    return run->state == RUN_ASLEEP && !run->failures && any > its ? any : its;
}

/* ---- active and asleep ---- */

static void run_activate_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&run->file->stage->lock);
    run->state = RUN_STARTING;
    run->begun++;
    TAILQ_INSERT_TAIL(&stage->runs->active, run, link);
    stage->runs->n_active++;
}

/* Remove the run from where its state has it. */
static void run_remove_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&stage->lock);
    if (run->state == RUN_ASLEEP) {
        ranges_remove(&stage->runs->alarms[run->why], &run->alarm);
        return;
    }
    TAILQ_REMOVE(&stage->runs->active, run, link);
    stage->runs->n_active--;
}

static void set_alarm_locked(struct run *run, uint64_t at)
{
    lock_assert_held(&run->file->stage->lock);
    run->alarm.first = at;
    run->alarm.end = at + 1;
    ranges_add(&run->file->stage->runs->alarms[run->why], &run->alarm);
}

void run_sleep_locked(struct run *run, int64_t until)
{
    lock_assert_held(&run->file->stage->lock);
    run_remove_locked(run);
    run->state = RUN_ASLEEP;
    set_alarm_locked(run, (uint64_t)until);
}

void run_wake_locked(struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    run_remove_locked(run);
    atomic_store_explicit(&run->progress, run_progress_locked(run), memory_order_relaxed);
    run_activate_locked(run);
}

struct run *run_due_locked(struct stage *stage, enum run_why why, int64_t now)
{
    struct range *alarm = ranges_least(&stage->runs->alarms[why]);

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
        struct range *alarm =
            ranges_first(&stage->runs->alarms[why], (uint64_t)now + 1, UINT64_MAX);

        if (alarm && (int64_t)alarm->first < next)
            next = (int64_t)alarm->first;
    }
    return next;
}

bool runs_sleep_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return stage->runs->alarms[RUN_DEMAND].n || stage->runs->alarms[RUN_AHEAD].n ||
           stage->runs->alarms[RUN_BACKGROUND].n;
}

static struct run *run_at(struct range *blocks)
{
    return blocks ? (struct run *)((char *)blocks - offsetof(struct run, blocks)) : NULL;
}

/* The first and the next run of a file with some of the blocks [first, end), in order; NULL: no
 * more. Get the next one before the current one leaves. */
static struct run *run_first_locked(struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    return run_at(ranges_first(&file->runs->runs, first, end));
}

static struct run *run_next_locked(const struct run *run, uint64_t first, uint64_t end)
{
    lock_assert_held(&run->file->stage->lock);
    return run_at(ranges_next(&run->file->runs->runs, &run->blocks, first, end));
}

/* ---- what is known of one ---- */

void run_watch_from_locked(struct run *run, int64_t since)
{
    lock_assert_held(&run->file->stage->lock);
    run->watched_at = since;
    run->watched_bytes = atomic_load(&run->bytes);
}

bool run_is_waited_for_locked(const struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    return needs_wait_locked(run->file, run->blocks.first, run->blocks.end);
}

bool run_is_wanted(const struct run *run)
{
    LOCK_SCOPE(&run->file->stage->lock);

    return run->why == RUN_DEMAND || run_is_waited_for_locked(run);
}

uint64_t run_bytes_left(const struct run *run)
{
    const struct file *file = run->file;

    return min_u64(run->blocks.end * file->block_bytes, file->blob.size) -
           run->at * file->block_bytes;
}

/* May a reader that waited for it in vain end it? */
static bool may_end_locked(const struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    return run->why != RUN_BACKGROUND && !run->stopping;
}

int64_t runs_progress_locked(struct file *file, uint64_t first, uint64_t end, int64_t now)
{
    lock_assert_held(&file->stage->lock);
    for (const struct run *run = run_first_locked(file, first, end); run;
         run = run_next_locked(run, first, end)) {
        int64_t progress = may_end_locked(run) ? run_progress_locked(run) : now;

        now = progress < now ? progress : now;
    }
    return now;
}

unsigned runs_active_locked(const struct stage *stage, enum run_why why)
{
    const struct run *run;
    unsigned n = 0;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->runs->active, link)
        n += run->why == (int)why;
    return n;
}

const struct file *runs_under_way_locked(const struct stage *stage)
{
    const struct run *run;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->runs->active, link)
        if (run->state == RUN_RUNNING && !run->paused)
            return run->file;
    return NULL;
}

bool runs_alive_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return stage->runs->alive;
}

void runs_await_gone_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    while (stage->runs->alive)
        lock_wait(&stage->lock, &stage->gone);
}

/* ---- making ---- */

bool run_must_wait_locked(const struct file *file)
{
    lock_assert_held(&file->stage->lock);
    return file->version.whole_only && file->runs->runs.n;
}

bool file_may_run_locked(const struct file *file, int64_t now)
{
    lock_assert_held(&file->stage->lock);
    return file->runs->rest_until <= now && !run_must_wait_locked(file);
}

/* Can a run have the block between its others? If it is missing, it comes, and *ret_comes is
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
    int64_t progress = atomic_load(&file->stage->progress);

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
    run->at = first;
    run->when = STAGE_NEVER;
    run->references = 1;
    atomic_store(&run->why, (int)why);
    atomic_store(&run->progress, progress > since ? progress : since);
    file_keep(file);
    file->stage->runs->alive++;
    run_activate_locked(run);
    run->blocks.first = first;
    run->blocks.end = first + n;
    ranges_add(&file->runs->runs, &run->blocks);
    return run;
}

static void run_hurry_locked(struct run *run, enum run_why why)
{
    bool sleeps = run->state == RUN_ASLEEP, runs = run->state == RUN_RUNNING && !run->paused;
    int64_t now = stage_now(run->file->stage);

    lock_assert_held(&run->file->stage->lock);
    if (sleeps)
        run_remove_locked(run);
    atomic_store(&run->why, (int)why);
    if (sleeps)
        set_alarm_locked(run, min_u64(run->alarm.first, (uint64_t)(now + HURRY_MS * NS_PER_MS)));
    run_watch_from_locked(run, runs ? run_progress_locked(run) : now);
}

void runs_hurry_locked(struct file *file, uint64_t first, uint64_t end, enum run_why why)
{
    lock_assert_held(&file->stage->lock);
    for (struct run *run = run_first_locked(file, first, end); run;
         run = run_next_locked(run, first, end))
        if (run->why > (int)why)
            run_hurry_locked(run, why);
}

/* ---- leaving ---- */

/* The blocks of the run from `from` on will not come with it. Their claims end first, so that
 * another run can claim them. Blocks that the run has brought may have been dropped meanwhile, and
 * be coming with another run. */
static void run_leave_blocks_locked(struct run *run, uint64_t from)
{
    struct file *file = run->file;

    lock_assert_held(&file->stage->lock);
    if (run->claimed > from)
        staged_unclaim(file_staged(file), from, run->claimed - from);
    run->claimed = min_u64(run->claimed, from);
    for (uint64_t b = from; b < run->blocks.end; b++)
        if (file_state(file, b) == BLOCK_COMING)
            file_set_locked(file, b, BLOCK_ABSENT);
}

void run_shorten_locked(struct run *run, uint64_t end)
{
    uint64_t before = run->blocks.end;

    lock_assert_held(&run->file->stage->lock);
    run_leave_blocks_locked(run, end);
    run->cut = end < before ? 0 : run->cut;
    ranges_move(&run->file->runs->runs, &run->blocks, run->blocks.first, end);
    needs_again_locked(run->file, end, before);
}

static void let_go_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&stage->lock);
    if (!--run->references)
        TAILQ_INSERT_TAIL(&stage->runs->dead, run, link);
}

void run_leave_locked(struct run *run, int error, struct wait **ret_over)
{
    struct file *file = run->file;
    uint64_t first = run->blocks.first, end = run->blocks.end;

    lock_assert_held(&run->file->stage->lock);
    run_remove_locked(run);
    run->state = RUN_GONE;
    ranges_remove(&file->runs->runs, &run->blocks);
    run_leave_blocks_locked(run, run->at);
    if (error < 0)
        waits_over_locked(file, run->at, end, error, ret_over);
    if (file->version.whole_only) { /* it hindered others */
        first = 0;
        end = file->blocks;
    }
    needs_again_locked(file, first, end);
    let_go_locked(run);
}

uint8_t *runs_take_buffer(struct stage *stage)
{
    uint8_t *buffer = NULL;

    lock_take(&stage->lock);
    if (stage->runs->n_buffers)
        buffer = stage->runs->buffer[--stage->runs->n_buffers];
    if (stage->runs->buffers_spare > stage->runs->n_buffers)
        stage->runs->buffers_spare = stage->runs->n_buffers;
    lock_drop(&stage->lock);
    if (buffer)
        return buffer;
    buffer = malloc(RUN_BUFFER);
    if (buffer)
        atomic_fetch_add(&stage->runs->buffers, 1);
    return buffer;
}

static void free_buffer(struct stage *stage, uint8_t *buffer)
{
    free(buffer);
    atomic_fetch_sub(&stage->runs->buffers, 1);
}

/* Keep buffers while there are runs: new ones cost a page fault for every 4 KiB. */
static void give_buffer_back_locked(struct run *run)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&run->file->stage->lock);
    if (!run->buffer)
        return;
    if (stage->runs->n_buffers < ARRAY_LEN(stage->runs->buffer))
        stage->runs->buffer[stage->runs->n_buffers++] = run->buffer;
    else
        free_buffer(stage, run->buffer);
}

void runs_free_buffers_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    while (stage->runs->n_buffers)
        free_buffer(stage, stage->runs->buffer[--stage->runs->n_buffers]);
}

/* A cache that is full never has all that is needed, so its runs never end for good. */
int64_t runs_trim_buffers_locked(struct stage *stage, int64_t now)
{
    lock_assert_held(&stage->lock);
    if (now >= stage->runs->buffers_until) {
        for (; stage->runs->buffers_spare && stage->runs->n_buffers; stage->runs->buffers_spare--)
            free_buffer(stage, stage->runs->buffer[--stage->runs->n_buffers]);
        stage->runs->buffers_spare = stage->runs->n_buffers;
        stage->runs->buffers_until = now + SPARE_MS * NS_PER_MS;
    }
    return stage->runs->n_buffers ? stage->runs->buffers_until : INT64_MAX;
}

struct memory_held stage_buffers_held(void *owner)
{
    const struct stage *stage = owner;
    const struct stage_options *o = &stage->options;
    uint64_t most = max_u64(max_u64(o->jobs, o->small_jobs), ARRAY_LEN(stage->runs->buffer));

    return (struct memory_held){.bytes = atomic_load(&stage->runs->buffers) * RUN_BUFFER,
                                .limit = most * RUN_BUFFER};
}

/* Drop a reference to `mine`, if it is not NULL, and free what has gone. Until the last run is
 * freed the stage is not: so the thread that drops the last reference frees the run itself. */
static void let_go_and_free(struct stage *stage, struct run *mine)
{
    struct run_list dead = TAILQ_HEAD_INITIALIZER(dead);
    uint64_t taken = 0;
    struct run *run;

    lock_take(&stage->lock);
    if (mine)
        let_go_locked(mine);
    TAILQ_CONCAT(&dead, &stage->runs->dead, link);
    lock_drop(&stage->lock);
    if (TAILQ_EMPTY(&dead))
        return;
    TAILQ_FOREACH (run, &dead, link)
        taken += run->taken;
    if (taken)
        quota_give_back(stage->quota, taken);
    LOCK_SCOPE(&stage->lock);

    while ((run = TAILQ_FIRST(&dead))) {
        TAILQ_REMOVE(&dead, run, link);
        file_put(run->file);
        give_buffer_back_locked(run);
        lock_release(&run->buffer_lock);
        free(run);
        stage->runs->alive--;
    }
    pthread_cond_broadcast(&stage->gone);
}

void runs_free_dead(struct stage *stage)
{
    let_go_and_free(stage, NULL);
}

void run_let_go(struct run *run)
{
    let_go_and_free(run->file->stage, run);
}

/* ---- stopping ---- */

/* Readers that come later get another run. */
static void run_stop_locked(struct run *run)
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
        run_stop_locked(run);
}

void runs_give_up_locked(struct file *file, uint64_t first, uint64_t end, int64_t since,
                         struct wait **ret_over)
{
    struct run *next;

    lock_assert_held(&file->stage->lock);
    for (struct run *run = run_first_locked(file, first, end); run; run = next) {
        next = run_next_locked(run, first, end);
        if (may_end_locked(run) && run_progress_locked(run) < since &&
            !run_is_waited_for_locked(run))
            run_give_up_locked(run, ret_over);
    }
}

void runs_stop_locked(struct stage *stage, struct wait **ret_over)
{
    struct run *run;

    lock_assert_held(&stage->lock);
    waits_stop_locked(stage, ret_over);
    for (unsigned why = 0; why < RUN_WHYS; why++)
        while ((run = run_due_locked(stage, (enum run_why)why, INT64_MAX)))
            run_leave_locked(run, 0, ret_over);
    TAILQ_FOREACH (run, &stage->runs->active, link)
        run_stop_locked(run);
}
