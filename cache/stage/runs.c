/* Runs: blocks that are fetched together.
 *
 * A run's blocks are COMING from when it is made until each is published or the run is gone, so no
 * two runs of a process have a block in common; claims see to it that no two processes do. What the
 * server has given stays good when a transfer breaks: the next one of the run goes on at the very
 * byte. One connection is always left for those who wait.
 *
 * Jobs is what the bandwidth needs. Small transfers have connections beside those: what they cost
 * is the way there and back, and many can be on it together. A remote that takes fewer is given
 * fewer for a while, and nobody else is to notice.
 *
 * end() takes stage->lock before it touches the lists; so a transfer of a run that stands in the
 * list of the active ones, looked at with the lock held, has not ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/scope.h"
#include "cache/stage/parts.h"

#define NS_PER_MS       INT64_C(1000000)
#define NS_PER_S        INT64_C(1000000000)
#define GROUP_BYTES     (UINT64_C(1) << 20)   /* that are written to disk at a time: whole blocks */
#define DEMAND_GROUP    (UINT64_C(128) << 10) /* that is enough where somebody waits */
#define BACKOFF_MS      200
#define BACKOFF_MOST_MS 15000
#define GIVE_UP         6 /* failures of a run that nobody waits for */
#define LOOK_MS         50
#define PUBLISH_MS      5 /* then complete blocks are written, though there could be more */
#define FULL_S          5
#define BUSY_S          1  /* another process drops */
#define EXTENT_BYTES    16 /* that the file system may need to know where a piece of a file is */
#define SPEED_BYTES     (UINT64_C(64) << 10) /* by fewer no speed is told */
#define REST_S          30
#define SMALL_MOST      (UINT64_C(256) << 10) /* bytes of a small transfer, */
#define SMALL_SHARE     8                     /* in the background: of what is worth a transfer */
#define CALM_S          60                    /* after a refusal: no more than jobs; */
#define FORGET_S        600                   /* after so long it is forgotten */
#define CROWDED_MS      1000                  /* that one waits which was refused for that */

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

/* What has slept has waited already: it is queued before all others. */
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

static void list_move(struct run *run, enum run_state state)
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

static void set_blocks_locked(struct run *run, uint64_t first, uint64_t n)
{
    lock_assert_held(&run->file->stage->lock);
    run->first = first;
    run->n = n;
    ranges_move(&run->file->runs, &run->blocks, first, first + n);
}

static void sleep_locked(struct run *run, int64_t until)
{
    list_move(run, RUN_ASLEEP);
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

/* ---- making ---- */

static bool run_grow(struct transfer *transfer);
static bool data_came(struct transfer *transfer, const void *bytes, size_t n);
static uint64_t complete_blocks(const struct run *run, uint64_t *ret_bytes);
static void publish_ready(struct run *run);
static void run_end(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                    const struct diag *d);

/* What memory still has is fetched again by the background only, which may find room for it. */
static bool is_to_fetch(struct file *file, uint64_t block, enum run_why why, bool steal)
{
    enum block_state state = file_state(file, block);
    bool missing =
        state == BLOCK_UNKNOWN || state == BLOCK_ABSENT || (steal && state == BLOCK_ELSEWHERE);

    return missing && (why == RUN_BACKGROUND || !overflow_has(&file->stage->overflow, file, block));
}

/* 0, -ENOMEM or -EINTR. */
static int make_run_locked(struct file *file, uint64_t first, uint64_t n, enum run_why why,
                           bool steal)
{
    struct run *run;

    if (file->stage->ending || file->stage->resting) /* nobody would end it */
        return -EINTR;
    run = calloc(1, sizeof(*run));
    if (!run)
        return -ENOMEM;
    lock_init(&run->buffer_lock);
    run->transfer.url = file->url;
    run->transfer.data = data_came;
    run->transfer.end = run_end;
    run->transfer.grow = run_grow;
    run->file = file;
    run->first = first;
    run->n = n;
    atomic_store(&run->why, (int)why);
    run->when = STAGE_NEVER;
    run->made = monotonic_ns();
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
            any = is_to_fetch(file, b, why, steal);
        if (any && !file->whole)
            r = make_run_locked(file, 0, file->blocks, why, steal);
        return r;
    }
    while (first < end && r == 0) {
        uint64_t n = 0;

        while (first + n < end && n < blocks && is_to_fetch(file, first + n, why, steal))
            n++;
        if (n)
            r = make_run_locked(file, first, n, why, steal);
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
        runs_hurry_locked(file, from, to, why); /* those that were made for another wait */
        if (runs_make_locked(file, from, to, DEMAND_BYTES, why, false) < 0)
            wait_end_locked(w, ret_over);
    }
}

static void hurry_locked(struct run *run, enum run_why why)
{
    uint64_t soon = (uint64_t)(monotonic_ns() + BACKOFF_MS * NS_PER_MS);
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

/* ---- the end of a run ---- */

/* Blocks that will not come by this run. Their waits end with error; 0: they go on, with another
 * run. The claims end before that can make its own. What the run has brought may have been dropped
 * meanwhile, and be on its way by another run. */
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

/* Buffers are kept while there are runs: fresh ones cost a page fault for every 4 KiB. */
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

/* Let go of a run; the last who does frees it. No lock held. */
static void run_let_go(struct run *run)
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

/* The run leaves its list; the caller lets it go, without the lock. Whoever waits still has the
 * blocks come by another run. While there was one for the whole file none was made for what this
 * one has passed, or another process has let go of. */
static void run_leave_locked(struct run *run, int error, struct wait **over)
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

static int64_t backoff_ns(const struct run *run, uint64_t retry_ms)
{
    uint64_t ms = BACKOFF_MS, jitter = (uint64_t)run->made ^ (uint64_t)(uintptr_t)run;

    for (unsigned i = 1; i < run->failures && ms < BACKOFF_MOST_MS; i++)
        ms *= 2;
    ms = min_u64(ms, BACKOFF_MOST_MS);
    ms += (jitter >> 12) % (ms / 2 + 1); /* not all at the same time */
    return (int64_t)max_u64(ms, retry_ms) * NS_PER_MS;
}

bool is_waited_for_locked(const struct run *run)
{
    return wait_first_locked(run->file, run->first, run->first + run->n) != NULL;
}

/* Would anybody have what comes and is not kept? */
static bool is_wanted(const struct run *run)
{
    LOCK_SCOPE(&run->file->stage->lock);

    return run->why == RUN_DEMAND || is_waited_for_locked(run);
}

/* It may have been one too many. Then that is no failure of the remote. */
static void note_refusal_locked(struct run *run, int64_t now)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&stage->lock);
    if (run->began <= stage->refused_at) /* with those that were refused before */
        return;
    if (now - stage->refused_at > FORGET_S * NS_PER_S)
        stage->refusals = 0;
    stage->refusals += stage->refusals < 16;
    stage->refused_at = now;
}

/* A transfer has failed and may work later. True: the run goes. */
static bool fail_once_locked(struct run *run, uint64_t retry_ms)
{
    struct stage *stage = run->file->stage;
    int64_t now = monotonic_ns();

    if (run->crowded) {
        note_refusal_locked(run, now);
        retry_ms = min_u64(retry_ms, CROWDED_MS);
    } else {
        run->failures++;
    }
    if (run->whole) { /* it begins at the first byte again, and claims again what it has let go */
        staged_unclaim(&run->file->staged, run->first, run->claimed);
        run->claimed = 0;
        run->done = 0;
        run->fill = 0;
    }
    if (run->failures >= GIVE_UP && !is_waited_for_locked(run)) {
        run->file->rest_until = now + REST_S * NS_PER_S;
        return true;
    }
    sleep_locked(run, now + backoff_ns(run, retry_ms));
    atomic_fetch_add_explicit(&stage->counters.retries, 1, memory_order_relaxed);
    return false;
}

static int error_of(enum transfer_end how)
{
    return how == TRANSFER_CHANGED ? -ESTALE : how == TRANSFER_STOPPED ? -EINTR : -EREMOTEIO;
}

/* The run has ended with how. 0: it sleeps; 1: it has gone. */
static int settle_locked(struct run *run, enum transfer_end how, uint64_t retry_ms, int *ret_error,
                         struct wait **over)
{
    struct file *file = run->file;
    enum run_why why = (enum run_why)run->why;

    run->phase = RUN_OVER;
    *ret_error = 0;
    if (run->done == run->n)
        how = TRANSFER_DONE;
    else if (how == TRANSFER_DONE || (how == TRANSFER_WHOLE && run->whole))
        how = TRANSFER_AGAIN; /* a transport that gives less than it says, or says nonsense */
    switch (how) {
    case TRANSFER_DONE:
        break;
    case TRANSFER_AGAIN:
        if (!run->stopping && !fail_once_locked(run, retry_ms))
            return 0;
        *ret_error = run->over_error;
        break;
    case TRANSFER_WHOLE:
        file->version.whole_only = true;
        run_leave_locked(run, 0, over); /* who waits has it come as a whole now */
        if (!run->stopping && !file->whole)
            make_run_locked(file, 0, file->blocks, why, false);
        return 1;
    case TRANSFER_STOPPED: /* by us, or there was no room for what nobody waits for */
        *ret_error = run->stopping ? run->over_error : file->stage->ending ? -EINTR : 0;
        break;
    case TRANSFER_CHANGED:
        atomic_store(&file->failed, -ESTALE);
        *ret_error = -ESTALE;
        break;
    default:
        file->rest_until = monotonic_ns() + REST_S * NS_PER_S;
        *ret_error = run->stopping ? run->over_error : error_of(how);
        break;
    }
    run_leave_locked(run, *ret_error, over);
    return 1;
}

/* How long the first byte took, and how fast the others came: what is planned is fetched in pieces
 * for which that is worth while. */
static void measure_locked(struct stage *stage, const struct run *run, int64_t now)
{
    uint64_t bytes = run->bytes - run->first_bytes;
    double wait = (double)(run->first_at - run->began), each;

    if (!run->bytes || run->was_paused || run->crowded || wait < 0)
        return;
    stage->wait_ns += (wait - stage->wait_ns) / (stage->wait_ns > 0 ? 8 : 1);
    if (bytes < SPEED_BYTES || now <= run->first_at)
        return;
    each = (double)(now - run->first_at) / (double)bytes;
    stage->byte_ns += (each - stage->byte_ns) / 4;
}

uint64_t runs_worth_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return (uint64_t)(stage->wait_ns / stage->byte_ns);
}

/* How fast it was decides how long the next one in the background is: so short that who comes to
 * wait for its last block need not wait long. */
static void adapt_locked(struct stage *stage, const struct run *run, int64_t now)
{
    const uint64_t least = 2 * (uint64_t)run->file->block_bytes, most = UINT64_C(8) << 20;
    int64_t ns = now - run->began;
    uint64_t wish;

    if (ns <= 0 || run->bytes < run->file->block_bytes)
        return;
    wish = (uint64_t)((double)run->bytes / (double)ns * 0.2e9);
    stage->run_bytes = (stage->run_bytes * 3 + min_u64(max_u64(wish, least), most)) / 4;
}

static void run_end(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                    const struct diag *d)
{
    struct run *run = (struct run *)transfer;
    struct stage *stage = run->file->stage;
    struct wait *over = NULL;
    struct diag reason = DIAG_INIT;
    bool fails = how != TRANSFER_DONE && how != TRANSFER_STOPPED && how != TRANSFER_WHOLE, answers;
    int gone, error;

    publish_ready(run); /* what has come stays, whatever has happened */

    if (d && d->set)
        reason = *d;
    lock_take(&stage->lock);
    answers = how == TRANSFER_DONE && stage->trouble_error;
    if (how == TRANSFER_DONE) {
        adapt_locked(stage, run, monotonic_ns());
        measure_locked(stage, run, monotonic_ns());
        stage->trouble_error = 0;
    } else if (fails) {
        stage->trouble = reason;
        stage->trouble_error = error_of(how);
    }
    gone = settle_locked(run, how, retry_ms, &error, &over);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
    if (fails || answers)
        stage_tell(stage, fails ? error_of(how) : 0, &reason);
    waits_tell(stage, over, error, &reason);
    if (!gone)
        return; /* it is not ours any more */
    runs_start(stage);
    run_let_go(run); /* last: the stage may be freed then */
}

/* ---- bytes come ---- */

/* Something has come that counts for patience. */
static void note_progress(struct run *run)
{
    run->unheard = 0;
    atomic_store_explicit(&run->progress, run->came_at, memory_order_relaxed);
    atomic_store_explicit(&run->file->stage->progress, run->came_at, memory_order_relaxed);
}

static void count_bytes(struct run *run, size_t n)
{
    struct stage_counters *c = &run->file->stage->counters;
    int64_t now = monotonic_ns();

    run->came_at = now;
    run->unheard += n;
    if (run->unheard >= run->share)
        note_progress(run);
    if (!run->bytes) {
        run->first_at = now;
        run->first_bytes = n;
    }
    run->bytes += n;
    atomic_fetch_add_explicit(run->why == RUN_DEMAND ? &c->demand_bytes : &c->background_bytes, n,
                              memory_order_relaxed);
}

/* When what the run brings is needed: only what is needed later than that makes room for it. 0:
 * somebody waits. */
static uint64_t needed_when(const struct run *run)
{
    const struct file *file = run->file;
    const struct stage_needs *needs = atomic_load(&file->stage->guided.needs);
    uint64_t off = run->first * file->block_bytes;

    if (file->stage->options.keep != STAGE_PLAN || !needs)
        return STAGE_NEVER;
    if (is_wanted(run))
        return 0;
    return run->why == RUN_BACKGROUND
               ? run->when
               : needs->when(needs->ctx, &file->blob, off,
                             min_u64(run->n * file->block_bytes, file->blob.size - off));
}

/* Room for what is written next: a run that has grown to the whole file, or has to write blocks
 * again, has not taken enough. 0, KEEP_IN_MEMORY or -errno. */
static int take_more_quota(struct run *run, uint64_t bytes)
{
    uint64_t more = bytes > run->taken ? bytes + RUN_OVERHEAD - run->taken : 0;
    int r = more ? keep_take_quota(run->file->stage, more, needed_when(run)) : 0;

    run->taken += r == 0 ? more : 0;
    return r;
}

/* Disk space that n blocks take beside their bytes: for records where none were, and for a new
 * piece of the file; where the block was before, it is a piece already, or soon one again. */
static uint64_t disk_beside(const struct run *run, uint64_t first, uint64_t n)
{
    bool is_new =
        !(atomic_load_explicit(&run->file->state[first], memory_order_relaxed) & BLOCK_FETCHED);

    return staged_publish_takes(&run->file->staged, first, n) + (is_new ? EXTENT_BYTES : 0);
}

/* Write the first n blocks of the buffer to disk. 0; KEEP_IN_MEMORY: not there; -ENOSPC, -EDQUOT:
 * there is no room; -EAGAIN: another process drops blocks, and some of ours are not claimed; or
 * -errno. */
static int write_blocks(struct run *run, uint64_t n, uint64_t bytes)
{
    struct file *file = run->file;
    uint64_t first = run->first + run->done, records[256], beside;
    AUTO_CLOSE int excludes = -1;
    const uint8_t *at = run->buffer;
    int r;

    assert(n <= ARRAY_LEN(records));
    beside = disk_beside(run, first, n);
    r = take_more_quota(run, bytes + beside);
    if (r == KEEP_IN_MEMORY)
        return r;
    if (r == 0 && run->done + n > run->claimed)
        r = excludes = staged_exclude_drops(&file->staged);
    if (r < 0)
        return r;
    for (uint64_t i = 0; i < n; i++) {
        records[i] = staged_checksum(&file->staged, first + i, at);
        at += file_block_len(file, first + i);
    }
    r = staged_write(&file->staged, run->buffer, (size_t)bytes, first * file->block_bytes);
    if (r == 0)
        r = staged_publish(&file->staged, first, (size_t)n, records);
    if (r < 0)
        return r;
    beside = min_u64(beside, run->taken - bytes);
    quota_settle(file->stage->quota, bytes + beside);
    run->taken -= bytes + beside;
    return 0;
}

static void keep_overflow(struct run *run, uint64_t n)
{
    struct file *file = run->file;
    const uint8_t *at = run->buffer;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t block = run->first + run->done + i;

        overflow_add(&file->stage->overflow, file, block, at, file_block_len(file, block));
        at += file_block_len(file, block);
    }
}

static void note_fetched_locked(struct file *file, uint64_t block)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);

    if (state & BLOCK_FETCHED)
        return;
    atomic_store_explicit(&file->state[block], state | BLOCK_FETCHED, memory_order_release);
    atomic_fetch_add_explicit(&file->stage->counters.distinct_bytes, file_block_len(file, block),
                              memory_order_relaxed);
}

/* What comes cannot be kept: the background rests for a while. */
static void note_full(struct stage *stage, int error)
{
    LOCK_SCOPE(&stage->lock);

    stage->full_error = error;
    stage->full_until = monotonic_ns() + (error == -EAGAIN ? BUSY_S : FULL_S) * NS_PER_S;
    pthread_cond_broadcast(&stage->gone);
}

/* The first n blocks of the buffer, of so many bytes, are complete. */
static void publish_blocks(struct run *run, uint64_t n, uint64_t bytes)
{
    struct file *file = run->file;
    uint64_t first = run->first + run->done, drops = file_drops_to_write(file);
    struct wait *over = NULL;
    int r = run->refused ? -ENOSPC : drops == UINT64_MAX ? -EIO : write_blocks(run, n, bytes);

    if (r < 0) {
        if (!run->refused) {
            quota_give_back(file->stage->quota, run->taken);
            run->taken = 0;
            note_full(file->stage, r);
        }
        run->refused = true;
        atomic_fetch_add_explicit(&file->stage->counters.refused, n, memory_order_relaxed);
    }
    if (r != 0)
        keep_overflow(run, n);
    if (run->claimed > run->done) /* before anybody here may claim them again */
        staged_unclaim(&file->staged, first, min_u64(n, run->claimed - run->done));
    note_progress(run); /* before anybody hears of it */
    lock_take(&file->stage->lock);
    for (uint64_t b = first; b < first + n; b++) {
        note_fetched_locked(file, b);
        file_set_locked(file, b, r == 0 ? file_here(file, drops) : BLOCK_ABSENT);
    }
    waits_over_locked(file, first, first + n, 0, &over);
    run->failures = 0;
    lock_drop(&file->stage->lock);
    waits_tell(file->stage, over, 0, NULL);
    run->done += n;
    run->published = run->came_at;
    run->fill -= bytes;
    memmove(run->buffer, run->buffer + bytes, run->fill);
}

/* Complete blocks at the front of the buffer, and their bytes. */
static uint64_t complete_blocks(const struct run *run, uint64_t *ret_bytes)
{
    uint64_t n = 0, bytes = 0;

    while (run->done + n < run->n) {
        uint32_t len = file_block_len(run->file, run->first + run->done + n);

        if (bytes + len > run->fill)
            break;
        bytes += len;
        n++;
    }
    *ret_bytes = bytes;
    return n;
}

/* Of a file that comes as a whole: was the block at the front of the buffer here before? */
static bool is_known(const struct run *run)
{
    return run->whole && file_state(run->file, run->first + run->done) == BLOCK_HERE;
}

/* Is a wait over with the n blocks at the front of the buffer? */
static bool ends_a_wait(const struct run *run, uint64_t n)
{
    uint64_t first = run->first + run->done, end = first + n;
    LOCK_SCOPE(&run->file->stage->lock);

    for (const struct wait *w = wait_first_locked(run->file, first, end); w;
         w = wait_next_locked(w, first, end))
        if (w->left <= min_u64(end, w->blocks.end) - max_u64(first, w->blocks.first))
            return true;
    return false;
}

/* Shall n complete blocks be published at once? To write blocks one by one takes its time, too. */
static bool is_urgent(const struct run *run, uint64_t n, uint64_t bytes)
{
    int64_t since = run->came_at - run->published;

    if (run->whole || run->fill == run->buffer_capacity || since > PUBLISH_MS * NS_PER_MS)
        return true;
    return atomic_load_explicit(&run->why, memory_order_relaxed) == RUN_DEMAND &&
           (bytes >= DEMAND_GROUP || ends_a_wait(run, n));
}

/* Whatever is complete. */
static void publish_ready(struct run *run)
{
    LOCK_SCOPE(&run->buffer_lock);
    uint64_t bytes, n = complete_blocks(run, &bytes);

    if (n && !run->whole)
        publish_blocks(run, n, bytes);
    atomic_store(&run->ready_at, 0);
}

void runs_flush(struct stage *stage)
{
    int64_t since = monotonic_ns() - PUBLISH_MS * NS_PER_MS, ready_at;

    for (;;) {
        struct run *run;

        lock_take(&stage->lock);
        for (run = stage->active.first; run; run = run->next) {
            ready_at = atomic_load(&run->ready_at);
            if (ready_at && ready_at < since && run->phase == RUN_RUNNING)
                break;
        }
        if (run)
            run->references++;
        lock_drop(&stage->lock);
        if (!run)
            return;
        publish_ready(run);
        run_let_go(run);
    }
}

static bool data_came(struct transfer *transfer, const void *bytes, size_t n)
{
    struct run *run = (struct run *)transfer;
    const uint8_t *at = bytes;
    uint64_t ready_bytes;
    bool refused;

    lock_take(&run->buffer_lock);
    count_bytes(run, n);
    while (n && run->done < run->n) {
        size_t take = (size_t)min_u64(n, run->buffer_capacity - run->fill);
        uint64_t ready;

        if (run->whole) /* one by one: some may be known */
            take = (size_t)min_u64(take, file_block_len(run->file, run->done) - run->fill);
        memcpy(run->buffer + run->fill, at, take);
        run->fill += take;
        at += take;
        n -= take;
        ready = complete_blocks(run, &ready_bytes);
        if (ready && is_known(run)) {
            if (run->done < run->claimed)
                staged_unclaim(&run->file->staged, run->first + run->done, 1);
            run->done++;
            run->fill = 0;
        } else if (ready && (run->done + ready == run->n || is_urgent(run, ready, ready_bytes))) {
            publish_blocks(run, ready, ready_bytes);
        }
    }
    refused = run->refused;
    atomic_store(&run->ready_at, complete_blocks(run, &ready_bytes) ? run->came_at : 0);
    lock_drop(&run->buffer_lock);
    if (refused && !is_wanted(run))
        return false;
    return !atomic_load_explicit(&run->file->stage->ending, memory_order_relaxed);
}

/* The remote gives no parts: the run becomes that of the whole file, if there is none. */
static bool run_grow(struct transfer *transfer)
{
    struct run *run = (struct run *)transfer;
    struct file *file = run->file;
    LOCK_SCOPE(&file->stage->lock);

    file->version.whole_only = true;
    if (file->whole || run->first || run->done || run->fill || run->stopping)
        return false;
    for (uint64_t b = run->n; b < file->blocks; b++)
        if (is_to_fetch(file, b, RUN_BACKGROUND, true))
            file_set_locked(file, b, BLOCK_COMING);
    if (run->claimed == run->n) /* what another process has claimed, too, comes twice */
        run->claimed += staged_claim(&file->staged, run->n, file->blocks - run->n);
    file->whole = run;
    run->whole = true;
    run->small = false;
    set_blocks_locked(run, 0, file->blocks);
    transfer->len = file->blob.size;
    return true;
}

/* ---- starting ---- */

/* Of a run that is being started: blocks that this process need not fetch after all. */
static void trim_locked(struct run *run, uint64_t n, enum block_state state)
{
    struct file *file = run->file;

    lock_assert_held(&file->stage->lock);
    for (uint64_t b = run->first + n; b < run->first + run->n; b++)
        if (file_state(file, b) == BLOCK_COMING)
            file_set_locked(file, b, state);
    set_blocks_locked(run, run->first, n);
}

/* Claim the blocks of the run: what another process has claimed it fetches. Returns false if
 * nothing is left. */
static bool claim_blocks(struct run *run)
{
    struct file *file = run->file;
    uint64_t n;

    if (run->claimed || run->steals)
        return true;
    n = staged_claim(&file->staged, run->first, run->n);
    if (run->whole && n && n < run->n) { /* all of it or nothing */
        staged_unclaim(&file->staged, run->first, n);
        n = 0;
    }
    lock_take(&file->stage->lock);
    run->claimed = n;
    if (n < run->n) {
        trim_locked(run, n, BLOCK_ELSEWHERE);
        if (!file->in_elsewhere) {
            file->in_elsewhere = true;
            file->next_elsewhere = file->stage->elsewhere;
            file->stage->elsewhere = file;
        }
        file->elsewhere_since = monotonic_ns();
        stage_kick_locked(file->stage); /* it looks when they have come */
    }
    lock_drop(&file->stage->lock);
    return n > 0;
}

/* Of blocks that were claimed: has another process fetched it meanwhile? One that is not what its
 * record says is fetched again. */
static bool has_come(const struct run *run, uint64_t block, uint64_t record, uint8_t *buf)
{
    const uint64_t none = 0;

    if (!record)
        return false;
    if (buf && file_block_is_good(run->file, block, record, buf))
        return true;
    staged_publish(&run->file->staged, block, 1, &none);
    return false;
}

/* How many of the claimed blocks have come, and of how many behind them that is not so. */
static void count_come(const struct run *run, uint8_t *buf, uint64_t *ret_come, uint64_t *ret_keep)
{
    uint64_t record[64], come = 0, keep = 0;

    for (uint64_t b = 0; b < run->n; b++) {
        if (b % ARRAY_LEN(record) == 0)
            staged_records(&run->file->staged, run->first + b,
                           (size_t)min_u64(ARRAY_LEN(record), run->n - b), record);
        if (!has_come(run, run->first + b, record[b % ARRAY_LEN(record)], buf))
            keep++;
        else if (keep)
            break;
        else
            come++;
    }
    *ret_come = come;
    *ret_keep = keep;
}

/* After the claim: keep the first blocks that are to be fetched; others are looked at, and made to
 * runs again. Returns false if nothing is left. */
static bool pass_what_came(struct run *run)
{
    struct file *file = run->file;
    AUTO_FREE uint8_t *buf = NULL;
    uint64_t first = run->first, n = run->n, come, keep;
    struct wait *over = NULL;

    if (run->whole || run->steals || run->begun > 1 || atomic_load(&file->drops) == UINT64_MAX)
        return true;
    buf = malloc(file->block_bytes);
    count_come(run, buf, &come, &keep);
    if (keep == n)
        return true;
    lock_take(&file->stage->lock);
    for (uint64_t b = first; b < first + n; b++)
        if (b < first + come || b >= first + come + keep)
            file_set_locked(file, b, BLOCK_UNKNOWN);
    staged_unclaim(&file->staged, first, come);
    staged_unclaim(&file->staged, first + come + keep, n - come - keep);
    set_blocks_locked(run, first + come, keep);
    run->claimed = keep;
    lock_drop(&file->stage->lock);
    look_at_blocks(file, first, first + n); /* it wakes who waits for them */
    lock_take(&file->stage->lock);
    if (runs_make_locked(file, first, first + n, UINT64_MAX, (enum run_why)run->why, false) < 0)
        runs_make_for_waits_locked(file, first, first + n, &over);
    lock_drop(&file->stage->lock);
    waits_tell(file->stage, over, 0, NULL);
    return keep > 0;
}

/* Has another process made something else of the whole file? Asked with the claims: before it drops
 * a block the other one has published what it has made, so what is missing now was not dropped for
 * that. Who waits for bytes of it has them all the same. */
static bool is_done_elsewhere(const struct run *run)
{
    const struct stage *stage = run->file->stage;

    if (!stage->options.is_done || !stage->options.is_done(&run->file->blob, stage->cache))
        return false;
    LOCK_SCOPE(&run->file->stage->lock);

    return !is_waited_for_locked(run);
}

static uint64_t bytes_left(const struct run *run)
{
    const struct file *file = run->file;
    uint64_t end = min_u64((run->first + run->n) * file->block_bytes, file->blob.size);

    return end - (run->first + run->done) * file->block_bytes;
}

/* Could blocks without a claim be written now? If not there is no need to fetch them. */
static int try_to_exclude_drops(const struct run *run)
{
    AUTO_CLOSE int excludes = run->steals ? staged_exclude_drops(&run->file->staged) : -1;

    return run->steals && excludes < 0 ? excludes : 0;
}

/* Room on disk for what is to come. False: there is none, and nobody waits for it. */
static bool take_quota(struct run *run)
{
    struct stage *stage = run->file->stage;
    uint64_t want = bytes_left(run) + RUN_OVERHEAD;
    int r;

    if (run->taken || run->refused)
        return true;
    r = try_to_exclude_drops(run);
    if (r == 0)
        r = keep_take_quota(stage, want, needed_when(run));
    if (r >= 0) {
        LOCK_SCOPE(&stage->lock);

        run->taken = r == 0 ? want : 0;
        if (run->why != RUN_DEMAND) /* that may be less than others need */
            stage->full_error = 0;
        return true;
    }
    run->refused = true;
    note_full(stage, r);
    return is_wanted(run);
}

static int get_buffer(struct run *run)
{
    struct stage *stage = run->file->stage;

    if (run->buffer)
        return 0;
    run->buffer_capacity = (size_t)min_u64(GROUP_BYTES, max_u64(bytes_left(run), 1));
    lock_take(&stage->lock);
    if (stage->n_buffers)
        run->buffer = stage->buffer[--stage->n_buffers];
    lock_drop(&stage->lock);
    if (!run->buffer)
        run->buffer = malloc(GROUP_BYTES);
    return run->buffer ? 0 : -ENOMEM;
}

/* A run that cannot be started. */
static void drop_run(struct run *run, int error, const struct diag *reason)
{
    struct stage *stage = run->file->stage;
    struct wait *over = NULL;

    lock_take(&stage->lock);
    stage->starting--;
    if (run->stopping)
        error = run->over_error;
    run_leave_locked(run, error, &over);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
    waits_tell(stage, over, error, reason);
    run_let_go(run);
}

/* Get ready for a transfer. 0, or -errno. */
static int prepare_transfer(struct run *run)
{
    struct file *file = run->file;
    struct stage *stage = file->stage;
    int r = get_buffer(run);
    LOCK_SCOPE(&stage->lock);

    run->version = file->version;
    run->transfer.version = &run->version;
    run->transfer.off = (run->first + run->done) * file->block_bytes + run->fill;
    run->transfer.len = bytes_left(run) - run->fill;
    run->bytes = 0;
    run->share = transfer_share(stage->options.retry_limit_s, stage->active.n);
    run->was_paused = false;
    run->began = run->published = monotonic_ns();
    run->references++;
    return run->stopping || stage->ending ? -EINTR : r;
}

/* It is in the transport, and may have ended by now. */
static void note_started(struct run *run, unsigned begun)
{
    struct stage *stage = run->file->stage;

    lock_take(&stage->lock);
    if (run->begun == begun && run->phase == RUN_STARTING) {
        run->phase = RUN_RUNNING;
        if (run->stopping)
            transport_stop(stage->transport, &run->transfer);
    }
    stage->starting--;
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
    run_let_go(run);
}

/* Start a run that was just made ACTIVE. */
static void run_begin(struct run *run, unsigned begun)
{
    struct stage *stage = run->file->stage;
    struct diag reason = DIAG_INIT;
    int r;

    if (!claim_blocks(run) || !pass_what_came(run) || is_done_elsewhere(run) || !take_quota(run)) {
        drop_run(run, 0, NULL);
        return;
    }
    r = prepare_transfer(run);
    if (r == 0) {
        atomic_fetch_add_explicit(&stage->counters.requests, 1, memory_order_relaxed);
        r = transport_start(stage->transport, &run->transfer);
    }
    if (r == 0) {
        note_started(run, begun);
        return;
    }
    diag_set(&reason, r, "%s: %s", run->file->blob.name, strerror(-r));
    drop_run(run, r == -EINTR ? r : -EREMOTEIO, &reason);
    run_let_go(run);
}

/* Does the run take longer to begin than to come? In the background the others are made so long
 * that they do not. */
static bool is_small_locked(struct stage *stage, const struct run *run)
{
    uint64_t worth = runs_worth_locked(stage) / (run->why == RUN_BACKGROUND ? SMALL_SHARE : 1);

    return stage->wait_ns >= stage->options.far_ms * 1e6 &&
           bytes_left(run) <= min_u64(worth, SMALL_MOST);
}

/* Transfers at once, small ones and others. */
static unsigned most_at_once_locked(const struct stage *stage, int64_t now)
{
    unsigned jobs = stage->options.jobs, most = stage->options.small_jobs;
    int64_t since = now - stage->refused_at;

    if (stage->refusals && since < CALM_S * NS_PER_S)
        most = jobs;
    else if (stage->refusals && since < FORGET_S * NS_PER_S)
        most >>= stage->refusals;
    return most > jobs ? most : jobs;
}

/* Runs under way, for one of that kind: those whose places it may have, and how many these are. */
struct places {
    size_t taken, most;
};

static struct places places_locked(const struct stage *stage, enum run_why why, bool small)
{
    unsigned all = most_at_once_locked(stage, monotonic_ns()), jobs = stage->options.jobs;
    struct places ret = {.taken = stage->active.n, .most = all};

    if (why == RUN_BACKGROUND && small && all / 2 > jobs)
        ret.most = all / 2;
    if (small || all == jobs)
        return ret;
    ret = (struct places){.most = jobs};
    for (const struct run *run = stage->active.first; run; run = run->next)
        ret.taken += !run->small && !run->paused;
    if (stage->active.n >= all)
        ret.taken = ret.most;
    return ret;
}

/* One place is for demands only. */
static bool has_place_locked(const struct stage *stage, enum run_why why, bool small)
{
    struct places places = places_locked(stage, why, small);

    return places.taken + (why != RUN_DEMAND) < places.most;
}

bool runs_have_place_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return has_place_locked(stage, RUN_BACKGROUND, false) &&
           has_place_locked(stage, RUN_BACKGROUND, true);
}

/* The next run that may be started; it is ACTIVE then. */
static struct run *next_locked(struct stage *stage)
{
    struct run *run = NULL;
    bool small = false;

    lock_assert_held(&stage->lock);
    if (stage->ending)
        return NULL;
    for (unsigned why = 0; why < RUN_WHYS && !run; why++) {
        run = stage->queued[why].first;
        small = run && is_small_locked(stage, run);
        if (run && !has_place_locked(stage, (enum run_why)why, small))
            run = NULL;
    }
    if (run) {
        run->small = small;
        run->crowded = stage->active.n >= stage->options.jobs;
        atomic_store_explicit(&run->progress, run_progress_locked(run), memory_order_relaxed);
        list_move(run, RUN_ACTIVE);
        run->phase = RUN_STARTING;
        run->begun++;
        stage->starting++;
    }
    return run;
}

/* While somebody waits, the background has one connection; others of it rest. Returns whether one
 * begins to: then there may be a place. */
static bool share_locked(struct stage *stage)
{
    bool demand = stage->queued[RUN_DEMAND].n > 0, first = true, any = false;

    for (const struct run *run = stage->active.first; run; run = run->next)
        demand = demand || run->why == RUN_DEMAND;
    for (struct run *run = stage->active.first; run; run = run->next) {
        bool pause = demand && run->why == RUN_BACKGROUND && !first;

        first = first && run->why != RUN_BACKGROUND;
        if (pause != run->paused && !run->stopping && run->phase == RUN_RUNNING) {
            run->paused = pause;
            run->was_paused = true;
            any = any || pause;
            transport_pause(stage->transport, &run->transfer, pause);
        }
    }
    return any;
}

void runs_start(struct stage *stage)
{
    struct run *run;

    for (;;) {
        unsigned begun = 0;

        lock_take(&stage->lock);
        run = next_locked(stage);
        if (!run && share_locked(stage))
            run = next_locked(stage);
        if (run)
            begun = run->begun;
        lock_drop(&stage->lock);
        if (!run)
            return;
        run_begin(run, begun);
    }
}

/* ---- giving up ---- */

static void let_go_all(struct run *gone)
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
    let_go_all(gone);
}

/* error: for those who wait then. */
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
        stop_locked(run, 0); /* later readers get another run */
        return;
    }
    run_leave_locked(run, -EREMOTEIO, over);
    run->next = *gone;
    *gone = run;
}

/* Queue what has slept enough. Returns when to do that again. */
static int64_t wake_asleep_locked(struct stage *stage, int64_t now)
{
    struct range *alarm;

    while ((alarm = ranges_least(&stage->alarms)) && (int64_t)alarm->first <= now)
        wake_locked((struct run *)((char *)alarm - offsetof(struct run, alarm)));
    return alarm ? (int64_t)alarm->first : INT64_MAX;
}

int64_t runs_wake_locked(struct stage *stage, int64_t now, struct wait **ret_over)
{
    struct run *gone = NULL;
    int64_t give_up = waits_give_up_locked(stage, now, ret_over, &gone),
            wake = wake_asleep_locked(stage, now), next = give_up < wake ? give_up : wake;
    bool waited = stage->quiet.n > 0;

    runs_stop_late_locked(stage, now);
    for (const struct run *run = stage->active.first; run && !waited; run = run->next)
        waited = run->why != RUN_BACKGROUND;
    if (waited && now + LOOK_MS * NS_PER_MS < next) /* runs_flush() */
        next = now + LOOK_MS * NS_PER_MS;
    if (gone) {
        lock_drop(&stage->lock);
        let_go_all(gone);
        lock_take(&stage->lock);
    }
    return next;
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
    let_go_all(gone);
    lock_take(&stage->lock);
}
