/* How fast the remote is: how long a transfer waits for its first byte, and how many bytes a run of
 * the background has for that. */
#include "base/checked.h"
#include "base/clock.h"
#include "cache/stage/parts.h"

#define NS_PER_S     INT64_C(1000000000)
#define SPEED_BYTES  (UINT64_C(64) << 10) /* by fewer no speed is told */
#define YIELDING_RUN (UINT64_C(1) << 20)

/* How long the first byte took, and how fast the others came: what is planned is fetched in pieces
 * for which that is worth while. */
void speed_measure_locked(struct stage *stage, const struct run *run, int64_t now)
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
void speed_adapt_locked(struct stage *stage, const struct run *run, int64_t now)
{
    const uint64_t least = 2 * (uint64_t)run->file->block_bytes, most = UINT64_C(8) << 20;
    int64_t ns = now - run->began;
    uint64_t wish;

    if (ns <= 0 || run->bytes < run->file->block_bytes)
        return;
    wish = (uint64_t)((double)run->bytes / (double)ns * 0.2e9);
    stage->run_bytes = (stage->run_bytes * 3 + min_u64(max_u64(wish, least), most)) / 4;
}

/* How long the next run may be: with rate= no more than comes in a quarter of a second, and little
 * between rests. */
uint64_t run_bytes_locked(const struct stage *stage)
{
    uint64_t bytes =
        yield_is_taken(&stage->yield) ? min_u64(stage->run_bytes, YIELDING_RUN) : stage->run_bytes;

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
