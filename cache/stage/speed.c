/* Measures how long a transfer waits for its first byte and how fast the rest comes; from that, how
 * many bytes a background run may have, and which runs keep a reader waiting too long.
 *
 * The background fetches long runs, because each request costs. When a reader needs a block of such
 * a run, the run is hurried, and the reader waits for all bytes before that block. By the measured
 * speed that wait is short, but speeds change: a remote may send the first second of each transfer
 * at once and then limit its rate.
 *
 * So this file watches each hurried run. It stops the run if passing over the bytes that no reader
 * waits for would take much longer than new transfers for the rest. The run keeps what it has
 * brought, to the byte; it goes on with the block that it was in. New runs fetch the blocks that
 * readers wait for, and the background fetches the others later.
 *
 * A run made for readers has no unwanted bytes, so none is stopped twice for this, and staging
 * without readers never is. */
#include <errno.h>
#include <stdlib.h>

#include "cache/stage/run.h"

#define FIRST_RUN    (UINT64_C(1) << 20)
#define BYTE_NS      50                    /* of a connection with no measured speed yet */
#define SPEED_BYTES  (UINT64_C(64) << 10)  /* fewer bytes give no speed */
#define SMALL_MOST   (UINT64_C(256) << 10) /* bytes of a small transfer, */
#define SMALL_SHARE  8   /* in the background: this part of the bytes worth a transfer */
#define NEAR_NS      1e6 /* of bytes that a request to a near remote brings: it costs a fifth */
#define QUEUE_MOST   4   /* times the least time of a byte that is our own queue, or processor */
#define YIELDING_RUN (UINT64_C(1) << 20)
#define WATCH_MS     50  /* measured at least: as often as the thread looks, */
#define WATCH_FAR    2   /* or this many times the wait for a first byte */
#define LATE_MS      200 /* how much longer than new transfers: as long as runs are meant to be */

/* Guarded by stage->lock. */
struct speed {
    int64_t budget_ns;  /* rate=: the background waits until then */
    uint64_t run_bytes; /* bytes of a run, adapted to the speed */
    double wait_ns;     /* wait for the first byte of a transfer, without that for our own
                           processor; 0: not measured yet */
    double byte_ns;     /* time for each byte after the first ones, on one connection */
    double wait_least, byte_least; /* of what was measured lately; 0: nothing was */
};

int speed_init(struct stage *stage)
{
    stage->speed = calloc(1, sizeof(*stage->speed));
    if (!stage->speed)
        return -ENOMEM;
    *stage->speed = (struct speed){.run_bytes = FIRST_RUN, .byte_ns = BYTE_NS};
    return 0;
}

/* What the remote and the way to it take when nothing else is in the queue; some thousand measures
 * later nearly three times that counts as well. */
static void least_add(double *least, double measured)
{
    *least *= 1 + 1.0 / 8192;
    if (measured > 0 && (measured < *least || !*least))
        *least = measured;
}

/* The speed decides how long the next background run is: so short that a reader that begins to wait
 * for its last block need not wait long. */
static void adapt_locked(struct stage *stage, const struct run *run, int64_t now)
{
    const uint64_t least = 2 * (uint64_t)run->file->block_bytes, most = UINT64_C(8) << 20;
    int64_t ns = now - run->began;
    uint64_t wish;

    lock_assert_held(&stage->lock);
    if (ns <= 0 || run->bytes < run->file->block_bytes)
        return;
    wish = (uint64_t)((double)run->bytes / (double)ns * 0.2e9);
    stage->speed->run_bytes =
        (stage->speed->run_bytes * 3 + min_u64(max_u64(wish, least), most)) / 4;
}

/* Measure the wait for the first byte and the speed of the others: planned fetches come in pieces
 * that are worth that wait. */
void speed_measure_locked(struct stage *stage, const struct run *run, int64_t now)
{
    uint64_t bytes = run->bytes - run->first_bytes;
    double wait = (double)(run->first_at - run->began), each = 0,
           idle = run->waited > 0 ? (double)run->waited : 1;

    lock_assert_held(&stage->lock);
    adapt_locked(stage, run, now);
    if (!run->bytes || run->was_paused || wait < 0)
        return;
    if (bytes >= SPEED_BYTES && now > run->first_at)
        each = (double)(now - run->first_at) / (double)bytes;
    least_add(&stage->speed->wait_least, wait);
    least_add(&stage->speed->byte_least, each);
    if (!run->crowded || idle < stage->speed->wait_ns)
        stage->speed->wait_ns +=
            (idle - stage->speed->wait_ns) / (stage->speed->wait_ns > 0 ? 8 : 1);
    if (each > 0 && !run->crowded)
        stage->speed->byte_ns += (each - stage->speed->byte_ns) / 4;
}

uint64_t runs_worth_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return (uint64_t)(stage->speed->wait_ns / stage->speed->byte_ns);
}

uint64_t speed_near_worth_locked(const struct stage *stage, bool far_too)
{
    double wait = stage->speed->wait_least, each = stage->speed->byte_least;
    double usual = stage->speed->byte_ns / QUEUE_MOST; /* a burst says nothing of what follows */

    lock_assert_held(&stage->lock);
    wait = wait < stage->speed->wait_ns ? wait : stage->speed->wait_ns;
    if (wait <= 0 || (!far_too && wait >= stage->options.far_ms * 1e6))
        return 0;
    if (each <= 0)
        return 2 * SPEED_BYTES; /* so that it is measured */
    return (uint64_t)(NEAR_NS / (each > usual ? each : usual));
}

/* Bytes of the next run: with rate= at most what comes in a quarter of a second, and few between
 * pauses. */
uint64_t run_bytes_locked(const struct stage *stage, bool yields)
{
    uint64_t bytes = min_u64(stage->speed->run_bytes, yields ? YIELDING_RUN : UINT64_MAX);

    lock_assert_held(&stage->lock);
    return stage->options.rate ? min_u64(bytes, stage->options.rate / 4) : bytes;
}

void speed_spend_locked(struct stage *stage, int64_t now, uint64_t bytes)
{
    lock_assert_held(&stage->lock);
    if (stage->options.rate)
        stage->speed->budget_ns =
            (int64_t)max_u64((uint64_t)stage->speed->budget_ns, (uint64_t)(now - NS_PER_S)) +
            (int64_t)((double)bytes * 1e9 / (double)stage->options.rate);
}

int64_t speed_budget_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return stage->speed->budget_ns;
}

bool speed_is_small_locked(const struct stage *stage, enum run_why why, uint64_t bytes)
{
    uint64_t worth = runs_worth_locked(stage) / (why == RUN_BACKGROUND ? SMALL_SHARE : 1);

    lock_assert_held(&stage->lock);
    return stage->speed->wait_ns >= stage->options.far_ms * 1e6 &&
           bytes <= min_u64(worth, SMALL_MOST);
}

/* ---- late runs ---- */

/* Judges by what has come since the last look. */
static bool is_late_locked(struct run *run, int64_t now)
{
    struct stage *stage = run->file->stage;
    uint64_t bytes = atomic_load(&run->bytes);
    double came = (double)(bytes - run->watched_bytes), ns = (double)(now - run->watched_at), again;
    uint64_t unwanted, pieces;

    lock_assert_held(&run->file->stage->lock);
    if (ns < (double)(WATCH_MS * NS_PER_MS) || ns < WATCH_FAR * stage->speed->wait_ns)
        return false;
    run_watch_from_locked(run, now);
    pieces = needs_unwanted_locked(run->file, (run->transfer.off + bytes) / run->file->block_bytes,
                                   run->blocks.end, &unwanted);
    if (!pieces)
        return false;
    again = stage->speed->wait_ns * (1 + (double)pieces / stage->options.jobs);
    return (double)unwanted * ns > came * ((double)(LATE_MS * NS_PER_MS) + again);
}

void runs_stop_late_locked(struct stage *stage, int64_t now)
{
    struct run *run;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->runs->active, link) {
        if (!run->watched_at || run->file->version.whole_only || run->steals || run->stopping ||
            run->why != RUN_DEMAND)
            continue;
        if (run->state != RUN_RUNNING || !atomic_load(&run->bytes))
            run_watch_from_locked(run, now); /* new transfers would wait for the same */
        else if (is_late_locked(run, now)) {
            run->is_late = true;
            run_give_up_locked(run, NULL); /* the run is active, so this only stops it */
        }
    }
}
