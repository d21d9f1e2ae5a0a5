/* Measures how long a transfer waits for its first byte and how fast the rest comes; from that, how
 * many bytes a background run may have. */
#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_S     INT64_C(1000000000)
#define SPEED_BYTES  (UINT64_C(64) << 10) /* fewer bytes give no speed */
#define NEAR_NS      300e3 /* of processors, here and there, for a request to a near remote */
#define WINDOW_NS    (60 * NS_PER_S)
#define YIELDING_RUN (UINT64_C(1) << 20)

/* What the remote and the way to it take when nothing else is in the queue: the least of what was
 * measured in this window and the one before. */
static void least_add(struct least *least, double measured, int64_t now)
{
    if (measured <= 0)
        return;
    if (now - least->since > WINDOW_NS || !least->now) {
        least->before = least->now;
        least->now = measured;
        least->since = now;
    }
    least->now = measured < least->now ? measured : least->now;
}

static double least_of(const struct least *least)
{
    return least->before > 0 && least->before < least->now ? least->before : least->now;
}

/* Measure the wait for the first byte and the speed of the others: planned fetches come in pieces
 * that are worth that wait. */
void speed_measure_locked(struct stage *stage, const struct run *run, int64_t now)
{
    uint64_t bytes = run->bytes - run->first_bytes;
    double wait = (double)(run->first_at - run->began), each = 0;

    lock_assert_held(&stage->lock);
    if (!run->bytes || run->was_paused || wait < 0)
        return;
    if (bytes >= SPEED_BYTES && now > run->first_at)
        each = (double)(now - run->first_at) / (double)bytes;
    least_add(&stage->least_wait_ns, wait, now);
    least_add(&stage->least_byte_ns, each, now);
    if (run->crowded)
        return;
    stage->wait_ns += (wait - stage->wait_ns) / (stage->wait_ns > 0 ? 8 : 1);
    if (each > 0)
        stage->byte_ns += (each - stage->byte_ns) / 4;
}

uint64_t runs_worth_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return (uint64_t)(stage->wait_ns / stage->byte_ns);
}

uint64_t speed_near_worth_locked(const struct stage *stage)
{
    double wait = least_of(&stage->least_wait_ns), each = least_of(&stage->least_byte_ns);

    lock_assert_held(&stage->lock);
    if (wait <= 0 || wait >= stage->options.far_ms * 1e6)
        return 0;
    return each > 0 ? (uint64_t)(NEAR_NS / each) : 2 * SPEED_BYTES; /* so that it is measured */
}

/* The speed decides how long the next background run is: so short that a reader that begins to wait
 * for its last block need not wait long. */
void speed_adapt_locked(struct stage *stage, const struct run *run, int64_t now)
{
    const uint64_t least = 2 * (uint64_t)run->file->block_bytes, most = UINT64_C(8) << 20;
    int64_t ns = now - run->began;
    uint64_t wish;

    lock_assert_held(&stage->lock);
    if (ns <= 0 || run->bytes < run->file->block_bytes)
        return;
    wish = (uint64_t)((double)run->bytes / (double)ns * 0.2e9);
    stage->run_bytes = (stage->run_bytes * 3 + min_u64(max_u64(wish, least), most)) / 4;
}

/* Bytes of the next run: with rate= at most what comes in a quarter of a second, and few between
 * pauses. */
uint64_t run_bytes_locked(const struct stage *stage)
{
    uint64_t bytes =
        yield_is_taken(&stage->yield) ? min_u64(stage->run_bytes, YIELDING_RUN) : stage->run_bytes;

    lock_assert_held(&stage->lock);
    return stage->options.rate ? min_u64(bytes, stage->options.rate / 4) : bytes;
}

void spend_locked(struct stage *stage, int64_t now, uint64_t bytes)
{
    lock_assert_held(&stage->lock);
    if (stage->options.rate)
        stage->budget_ns =
            (int64_t)max_u64((uint64_t)stage->budget_ns, (uint64_t)(now - NS_PER_S)) +
            (int64_t)((double)bytes * 1e9 / (double)stage->options.rate);
}
