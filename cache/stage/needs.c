/* Needs: which blocks must be fetched for readers, and which readers wait for them.
 *
 * A need is a range of blocks in one of two queues: demands, and what is fetched ahead. Every wait
 * of a reader is a need, and each file has one for what a reader in sequence will want. Producers
 * only queue needs. need_next_locked() gives the blocks that the next run of a need brings, when a
 * connection is free for one: so blocks that wait for a connection have no run, and there is
 * nothing to take back when they are not needed any more.
 *
 * The background has no needs here: it looks for one at a time (cache/stage/background.c).
 *
 * A need leaves its queue when all its blocks are here or have runs. If some of these blocks do not
 * come, needs_again_locked() queues the waits for them again.
 *
 * The waits of a file are found by their blocks, so the cost of an event depends only on the waits
 * it concerns. */
#include "cache/stage/needs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/ranges.h"
#include "base/scope.h"
#include "cache/stage/blocks.h"
#include "cache/stage/runs.h"
#include "cache/stage/transport.h"

#define RUN_BYTES   (UINT64_C(4) << 20) /* of a run for readers */
#define GAVE_UP_MS  1000
#define AHEAD_FIRST (UINT64_C(256) << 10)
#define AHEAD_LEAST (UINT64_C(1) << 20) /* bytes */
#define AHEAD_MOST  (UINT64_C(32) << 20)
#define SURE        2                   /* reads in sequence before a window opens */
#define SLACK       (UINT64_C(4) << 20) /* how far reads in sequence may be out of order */

/* Blocks of a file that are needed, in the queue of those with the same `why` while some of them
 * may have no run. Guarded by stage->lock, as all here. */
struct need {
    TAILQ_ENTRY(need) link;
    struct file *file;
    uint64_t at, end;  /* the blocks that may have no run */
    uint64_t from, to; /* bytes that are needed of them */
    int64_t since;     /* when it was first queued */
    enum run_why why;  /* never RUN_BACKGROUND */
    bool is_queued;
};

/* A range of blocks that a reader waits for. */
struct wait {
    struct range blocks; /* first member: in file_needs->waits */
    struct range quiet;  /* in needs->quiet: [stage_now() of the last progress, as of the last look;
                            that + 1) */
    struct need need;
    int64_t early;         /* it began that much earlier, as the retry limit counts */
    uint64_t left;         /* blocks that are not here */
    struct waiter *waiter; /* NULL: none is told when it is over */
    char *reason;          /* why it was given up; NULL: it was not */
    struct wait *next;     /* when it is over: in a list of waits to report */
};

struct needs {
    TAILQ_HEAD(need_queue, need) queue[RUN_BACKGROUND]; /* of blocks that have no run yet */
    struct ranges quiet; /* waits, by their last progress as of the last look */
    /* The remote is silent: the retry limit has ended a wait, and nothing has come since then. */
    int64_t silent_since;   /* 0: never */
    unsigned silent_waits;  /* that were ended since then, */
    struct diag silent_why; /* and why the first was */
};

struct file_needs {
    struct ranges waits; /* struct wait, by their blocks */
    int64_t gave_up;     /* when the retry limit last ended a wait for blocks; 0: never */
    uint64_t gave_up_first, gave_up_end;
    uint64_t last_end;    /* byte after the last demand */
    unsigned in_sequence; /* reads that went on where the previous one ended */
    uint64_t ahead_end;   /* byte up to which blocks were fetched ahead */
    uint64_t ahead_bytes; /* how far to fetch ahead; 0: reads are not in sequence */
    struct need ahead;    /* the blocks up to there */
};

int needs_init(struct stage *stage)
{
    stage->needs = calloc(1, sizeof(*stage->needs));
    if (!stage->needs)
        return -ENOMEM;
    stage->needs->silent_why = DIAG_INIT;
    for (unsigned why = 0; why < RUN_BACKGROUND; why++)
        TAILQ_INIT(&stage->needs->queue[why]);
    return 0;
}

int file_needs_init(struct file *file)
{
    file->needs = calloc(1, sizeof(*file->needs));
    if (!file->needs)
        return -ENOMEM;
    file->needs->ahead = (struct need){.file = file, .to = UINT64_MAX, .why = RUN_AHEAD};
    atomic_store(&file->ahead_at, UINT64_MAX);
    return 0;
}

/* ---- the queues ---- */

static struct need_queue *queue_of(const struct need *need)
{
    return &need->file->stage->needs->queue[need->why];
}

/* Queue a need, or change it in its queue: its blocks from `from` on may have no run. */
static void need_queue_locked(struct need *need, uint64_t from)
{
    lock_assert_held(&need->file->stage->lock);
    need->at = need->is_queued ? min_u64(need->at, from) : from;
    if (!need->is_queued)
        TAILQ_INSERT_TAIL(queue_of(need), need, link);
    need->is_queued = true;
}

static void need_unqueue_locked(struct need *need)
{
    lock_assert_held(&need->file->stage->lock);
    if (need->is_queued)
        TAILQ_REMOVE(queue_of(need), need, link);
    need->is_queued = false;
}

/* Is what is needed of the block in memory? */
static bool is_in_memory(const struct need *need, uint64_t block)
{
    struct file *file = need->file;
    uint64_t start = block * file->block_bytes, end = start + file_block_len(file, block),
             from = max_u64(start, need->from), to = min_u64(end, need->to);

    return from >= to || overflow_covers(file->stage->overflow, file, block, (size_t)(from - start),
                                         (size_t)(to - from));
}

/* Blocks that memory still has need not come. What a reader in sequence will want does not include
 * what readers have passed. */
static bool is_to_fetch(const struct need *need, uint64_t block)
{
    return file_may_fetch(need->file, block) && !is_in_memory(need, block) &&
           !(need == &need->file->needs->ahead && file_is_for_readers(need->file, block));
}

/* The blocks that the next run of a queued need brings. False: all its blocks are present, or come;
 * it has left its queue. */
static bool need_next_locked(struct need *need, struct wanted *ret)
{
    struct file *file = need->file;
    uint64_t most = max_u64(RUN_BYTES / file->block_bytes, 1), n = 1;

    lock_assert_held(&file->stage->lock);
    while (need->at < need->end && !is_to_fetch(need, need->at))
        need->at++;
    if (need->at == need->end || run_must_wait_locked(file)) {
        need_unqueue_locked(need);
        return false;
    }
    while (n < most && need->at + n < need->end && is_to_fetch(need, need->at + n))
        n++;
    *ret = (struct wanted){file, need->at, n, need->since};
    return true;
}

bool needs_next_locked(struct stage *stage, enum run_why why, struct wanted *ret)
{
    struct need *need = NULL;

    lock_assert_held(&stage->lock);
    while (why < RUN_BACKGROUND && (need = TAILQ_FIRST(&stage->needs->queue[why])) &&
           !need_next_locked(need, ret))
        need = NULL;
    return need;
}

bool needs_any_locked(const struct stage *stage, enum run_why why)
{
    lock_assert_held(&stage->lock);
    return !TAILQ_EMPTY(&stage->needs->queue[why]);
}

/* ---- waits ---- */

/* The first and the next wait of a file for some of the blocks [first, end), in order; NULL: no
 * more. Get the next wait before the current one is over. */
static struct wait *wait_first_locked(const struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    return (struct wait *)ranges_first(&file->needs->waits, first, end);
}

static struct wait *wait_next_locked(const struct wait *wait, uint64_t first, uint64_t end)
{
    struct file *file = wait->need.file;

    lock_assert_held(&file->stage->lock);
    return (struct wait *)ranges_next(&file->needs->waits, &wait->blocks, first, end);
}

#define EACH_WAIT(w, file, first, end)                                                             \
    struct wait *w = wait_first_locked(file, first, end);                                          \
    w;                                                                                             \
    w = wait_next_locked(w, first, end)

void needs_again_locked(struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    for (EACH_WAIT(w, file, first, end))
        need_queue_locked(&w->need, max_u64(first, w->blocks.first));
}

bool needs_wait_locked(const struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    return wait_first_locked(file, first, end);
}

size_t needs_waits_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return stage->needs->quiet.n;
}

bool needs_end_a_wait_locked(struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    for (EACH_WAIT(w, file, first, end))
        if (w->left <= min_u64(end, w->blocks.end) - max_u64(first, w->blocks.first))
            return true;
    return false;
}

void needs_bytes_locked(struct file *file, uint64_t first, uint64_t end, uint64_t *ret_from,
                        uint64_t *ret_to)
{
    uint64_t start = first * file->block_bytes,
             stop = min_u64(end * file->block_bytes, file->blob.size), from = stop, to = start;

    lock_assert_held(&file->stage->lock);
    for (EACH_WAIT(w, file, first, end)) {
        from = min_u64(from, max_u64(start, w->need.from));
        to = max_u64(to, min_u64(stop, w->need.to));
    }
    *ret_from = from;
    *ret_to = to;
}

uint64_t needs_unwanted_locked(struct file *file, uint64_t at, uint64_t end, uint64_t *ret_bytes)
{
    uint64_t pieces = 0;

    lock_assert_held(&file->stage->lock);
    *ret_bytes = 0;
    for (EACH_WAIT(w, file, at, end)) {
        if (w->need.why != RUN_DEMAND)
            continue;
        if (w->blocks.first > at) {
            *ret_bytes += (w->blocks.first - at) * file->block_bytes;
            pieces++;
        }
        at = max_u64(at, min_u64(w->blocks.end, end));
        if (at == end)
            break;
    }
    return pieces;
}

static void wait_begin_locked(struct wait *wait)
{
    struct stage *stage = wait->need.file->stage;
    int64_t now = stage_now(stage);

    lock_assert_held(&stage->lock);
    if (wait->waiter)
        waiter_add(wait->waiter);
    wait->need.end = wait->blocks.end;
    wait->need.since = now;
    wait->quiet.first = now > wait->early ? (uint64_t)(now - wait->early) : 0;
    wait->quiet.end = wait->quiet.first + 1;
    ranges_add(&wait->need.file->needs->waits, &wait->blocks);
    ranges_add(&stage->needs->quiet, &wait->quiet);
    need_queue_locked(&wait->need, wait->blocks.first);
}

/* The wait is over: move it to *ret_over. */
static void wait_end_locked(struct wait *wait, struct wait **ret_over)
{
    struct file *file = wait->need.file;

    lock_assert_held(&file->stage->lock);
    need_unqueue_locked(&wait->need);
    ranges_remove(&file->needs->waits, &wait->blocks);
    ranges_remove(&file->stage->needs->quiet, &wait->quiet);
    wait->next = *ret_over;
    *ret_over = wait;
}

void waits_over_locked(struct file *file, uint64_t first, uint64_t end, int error,
                       struct wait **ret_over)
{
    struct wait *next;

    lock_assert_held(&file->stage->lock);
    for (struct wait *w = wait_first_locked(file, first, end); w; w = next) {
        uint64_t from = max_u64(first, w->blocks.first), to = min_u64(end, w->blocks.end);

        next = wait_next_locked(w, first, end);
        w->left -= min_u64(w->left, to - from);
        if (error < 0 || !w->left)
            wait_end_locked(w, ret_over);
    }
}

void wait_explain_locked(const struct file *file, struct diag *ret)
{
    const struct stage *stage = file->stage;
    unsigned s = stage->options.retry_limit_s;

    lock_assert_held(&file->stage->lock);
    if (file->trouble)
        diag_set(ret, -EREMOTEIO, "%.300s; waited %u s", file->trouble, s);
    else if (stage->trouble_error)
        diag_set(ret, -EREMOTEIO,
                 "%s: the remote sends nothing; another request failed: %.300s; waited %u s",
                 file->blob.name, stage->trouble.text, s);
    else
        diag_set(ret, -EREMOTEIO, "%s: the remote sends nothing; waited %u s", file->blob.name, s);
}

void waits_tell(struct stage *stage, struct wait *over, int error, const struct diag *reason)
{
    while (over) {
        struct diag why = DIAG_INIT;
        struct wait *w = over;

        over = w->next;
        if (w->reason)
            diag_set(&why, error, "%s", w->reason);
        if (error < 0 && error != -EINTR && w->waiter && !w->waiter->ahead)
            atomic_fetch_add(&stage->counters.errors, 1);
        if (w->waiter)
            waiter_done(w->waiter, error, why.set ? &why : reason);
        free(w->reason);
        free(w);
    }
}

static struct wait *quietest_locked(struct stage *stage)
{
    struct range *range = ranges_least(&stage->needs->quiet);

    lock_assert_held(&stage->lock);
    return range ? (struct wait *)((char *)range - offsetof(struct wait, quiet)) : NULL;
}

void waits_stop_locked(struct stage *stage, struct wait **ret_over)
{
    struct wait *w;

    lock_assert_held(&stage->lock);
    while ((w = quietest_locked(stage)))
        wait_end_locked(w, ret_over);
    while (!TAILQ_EMPTY(&stage->needs->queue[RUN_AHEAD]))
        need_unqueue_locked(TAILQ_FIRST(&stage->needs->queue[RUN_AHEAD]));
}

/* ---- the retry limit (`patience=`) ----
 *
 * needs->quiet has all waits of the stage, in the order of their last progress as of the last look.
 * So only the first ones are looked at, and each once per retry limit.
 *
 * The progress of a wait is that of the run of its blocks that made progress longest ago; see
 * run_progress_locked(). While some of its blocks have no run yet, bytes of any run count: the
 * queue moves. Blocks that another process fetches (STEAL_S), or that are being dropped, do not
 * count.
 *
 * While the remote is silent, a brief wait lasts a quarter of the limit, because its reader has
 * waited for another file before. After a whole limit of silence brief waits fail at once, so that
 * a command ends. After one more the remote is tried again, for as long as the first time. */

static int64_t wait_progress_locked(struct wait *w, int64_t now)
{
    const struct stage *stage = w->need.file->stage;
    struct wanted unused;
    int64_t least = now;

    lock_assert_held(&stage->lock);
    if (w->need.is_queued && need_next_locked(&w->need, &unused)) {
        least = atomic_load(&stage->progress);
        least = least > w->need.since ? least : w->need.since;
    }
    return runs_progress_locked(w->need.file, w->blocks.first, w->blocks.end, least);
}

static int64_t limit_ns(const struct stage *stage)
{
    return stage->options.retry_limit_s * NS_PER_S;
}

/* How long the remote has been silent, since that time; -1: it is not, or it is time to try again.
 */
static int64_t silence_locked(const struct stage *stage, int64_t since, int64_t now)
{
    int64_t silent = now - since;

    lock_assert_held(&stage->lock);
    return since && silent <= 2 * limit_ns(stage) && atomic_load(&stage->progress) < since ? silent
                                                                                           : -1;
}

/* May a brief wait begin (struct waiter)? -EREMOTEIO: the remote has been silent for too long. */
static int wait_brief_locked(struct wait *wait, int64_t now)
{
    const struct stage *stage = wait->need.file->stage;
    const _Atomic int64_t *texts = stage->transport->gave_up;
    int64_t silent = silence_locked(stage, stage->needs->silent_since, now),
            longer = texts ? silence_locked(stage, atomic_load(texts), now) : -1;

    lock_assert_held(&stage->lock);
    silent = longer > silent ? longer : silent;
    wait->early = silent < 0 ? 0 : limit_ns(stage) * 3 / 4;
    return silent > limit_ns(stage) ? -EREMOTEIO : 0;
}

unsigned stage_silent(struct stage *stage, struct diag *d)
{
    LOCK_SCOPE(&stage->lock);

    if (silence_locked(stage, stage->needs->silent_since, stage_now(stage)) < 0)
        return 0;
    diag_set(d, -EREMOTEIO, "%s", stage->needs->silent_why.text);
    return stage->needs->silent_waits;
}

/* End the wait, and the runs that it caused if no other reader waits for them. */
static void give_up_locked(struct wait *w, int64_t now, struct wait **over)
{
    uint64_t first = w->blocks.first, end = w->blocks.end;
    struct file *file = w->need.file;
    struct needs *needs = file->stage->needs;
    struct diag reason = DIAG_INIT;

    lock_assert_held(&file->stage->lock);
    wait_explain_locked(file, &reason);
    w->reason = strdup(reason.text);
    if (w->need.why == RUN_DEMAND) {
        file->needs->gave_up = now;
        file->needs->gave_up_first = first;
        file->needs->gave_up_end = end;
        if (silence_locked(file->stage, needs->silent_since, now) < 0) {
            needs->silent_since = now;
            needs->silent_waits = 0;
            needs->silent_why = reason;
        }
        needs->silent_waits++;
    }
    wait_end_locked(w, over);
    runs_give_up_locked(file, first, end, now - limit_ns(file->stage), over);
}

int64_t waits_give_up_locked(struct stage *stage, int64_t now, struct wait **ret_over)
{
    int64_t patience = limit_ns(stage);
    struct wait *w;

    lock_assert_held(&stage->lock);
    while ((w = quietest_locked(stage))) {
        int64_t since = (int64_t)w->quiet.first, progress;

        if (now - since <= patience)
            return since + patience + 1;
        progress = wait_progress_locked(w, now);
        if (atomic_load(&stage->progress) < w->need.since)
            progress -= w->early;
        if (now - progress > patience) {
            give_up_locked(w, now, ret_over);
        } else {
            progress = progress > 0 ? progress : 0;
            ranges_move(&stage->needs->quiet, &w->quiet, (uint64_t)progress,
                        (uint64_t)progress + 1);
        }
    }
    return INT64_MAX;
}

/* ---- asking ---- */

/* Has the retry limit just ended a wait here, and has nothing come since? The kernel repeats a read
 * that fails once; its reader need not wait twice. */
static bool has_given_up(const struct wait *w)
{
    const struct file_needs *needs = w->need.file->needs;
    const struct stage *stage = w->need.file->stage;

    return needs->gave_up && w->blocks.first < needs->gave_up_end &&
           needs->gave_up_first < w->blocks.end &&
           stage_now(stage) - needs->gave_up < GAVE_UP_MS * NS_PER_MS &&
           atomic_load(&stage->progress) < needs->gave_up;
}

int needs_ask_locked(struct file *file, uint64_t off, uint64_t len, struct waiter *waiter)
{
    AUTO_FREE struct wait *w = calloc(1, sizeof(*w));
    struct stage *stage = file->stage;

    lock_assert_held(&stage->lock);
    if (!w)
        return -ENOMEM;
    if (stage->ending || stage->resting) /* no thread would end the wait */
        return -EINTR;
    if (atomic_load(&file->failed) < 0)
        return atomic_load(&file->failed);
    w->blocks.first = off / file->block_bytes;
    w->blocks.end = ceil_div(off + len, file->block_bytes);
    w->need = (struct need){.file = file, .from = off, .to = off + len};
    w->need.why = waiter && waiter->ahead ? RUN_AHEAD : RUN_DEMAND;
    w->waiter = waiter;
    for (uint64_t b = w->blocks.first; b < w->blocks.end; b++)
        w->left += file_state(file, b) != BLOCK_HERE && !is_in_memory(&w->need, b);
    if (!w->left)
        return 0;
    if (has_given_up(w) || (waiter && waiter->brief && wait_brief_locked(w, stage_now(stage)) < 0))
        return -EREMOTEIO;
    runs_hurry_locked(file, w->blocks.first, w->blocks.end, w->need.why);
    wait_begin_locked(w);
    if (w->need.why == RUN_DEMAND)
        needs_ahead_locked(file, off, len);
    w = NULL; /* it is in the lists */
    stage_kick_locked(stage);
    return 1;
}

/* ---- readers in sequence: a window ahead of them that doubles while the sequence goes on ---- */

/* Does the read go on where the previous one ended? It may be one read further. Once reads are
 * known to be in sequence, they may be more out of order. */
static bool is_in_sequence(const struct file *file, uint64_t off, uint64_t end)
{
    const struct file_needs *needs = file->needs;
    uint64_t gap = needs->ahead_bytes ? SLACK : max_u64(end - off, file->block_bytes);

    return needs->last_end && off <= needs->last_end + gap && end + gap >= needs->last_end;
}

void needs_ahead_locked(struct file *file, uint64_t off, uint64_t len)
{
    struct file_needs *needs = file->needs;
    uint64_t end = off + len, size = file->blob.size, from, to;

    lock_assert_held(&file->stage->lock);
    if (file->stage->options.no_ahead)
        return;
    if (!is_in_sequence(file, off, end)) { /* the reader has moved */
        needs->ahead_bytes = needs->ahead_end = needs->in_sequence = 0;
        needs->last_end = end;
        need_unqueue_locked(&needs->ahead);
        atomic_store_explicit(&file->ahead_at, UINT64_MAX, memory_order_relaxed);
        return;
    }
    if (end <= needs->last_end)
        return; /* a read asked for it before */
    needs->last_end = end;
    if (++needs->in_sequence < SURE)
        return; /* two neighbours may be chance */
    if (off + AHEAD_LEAST <= needs->ahead_end && end <= atomic_load(&file->ahead_at))
        return;
    needs->ahead_bytes = min_u64(max_u64(2 * needs->ahead_bytes, AHEAD_FIRST), AHEAD_MOST);
    from = max_u64(end, needs->ahead_end);
    to = min_u64(end + needs->ahead_bytes, size);
    if (from < to) {
        needs->ahead.end = ceil_div(to, file->block_bytes);
        needs->ahead.since = stage_now(file->stage);
        need_queue_locked(&needs->ahead, from / file->block_bytes);
        needs->ahead_end = to;
    }
    atomic_store_explicit(&file->ahead_at,
                          to < size ? needs->ahead_end - needs->ahead_bytes / 2 : UINT64_MAX,
                          memory_order_relaxed);
}

void needs_ahead_ended_locked(struct file *file, uint64_t first, uint64_t end, bool again)
{
    struct need *ahead = &file->needs->ahead;

    lock_assert_held(&file->stage->lock);
    if (again && first < ahead->end)
        need_queue_locked(ahead, first);
    else if (!again && ahead->is_queued && ahead->at >= first && ahead->at < end)
        ahead->at = min_u64(end, ahead->end);
}
