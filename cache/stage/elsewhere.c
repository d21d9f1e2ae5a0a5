/* Watches blocks that other processes fetch, until they have come, or the others' claims have
 * ended, or the others have given no sign of life for too long. */
#include "cache/stage/parts.h"

#define NS_PER_MS    INT64_C(1000000)
#define NS_PER_S     INT64_C(1000000000)
#define ELSEWHERE_MS 5  /* between two looks at the blocks that others fetch */
#define UNWAITED_MS  50 /* the same, if no reader here waits for them */
#define STEAL_S      5  /* how long others may give no sign of life */

static uint64_t next_elsewhere(const struct file *file, uint64_t from)
{
    while (from < file->blocks && file_state(file, from) != BLOCK_ELSEWHERE)
        from++;
    return from;
}

/* Can a run have the block now? In a file that comes as a whole, the run needs all blocks. */
static bool is_let_go(const struct file *file, uint64_t block)
{
    uint64_t first = file->version.whole_only ? 0 : block, claimed,
             n = file->version.whole_only ? file->blocks : 1;

    if (file->version.whole_only && file->coming) /* these claims are ours */
        return false;
    claimed = staged_claim(&file->staged, first, n);
    staged_unclaim(&file->staged, first, claimed);
    return claimed == n;
}

/* Fetch n blocks whose claims another process has dropped, or (steal) whose claimant gives no sign
 * of life. False: this is not possible now. */
static bool take_over_locked(struct file *file, uint64_t first, uint64_t n, bool steal)
{
    enum run_why why = is_demanded_locked(file, 0, file->blocks) ? RUN_DEMAND : RUN_AHEAD;
    uint64_t end = first + n;

    for (uint64_t b = first; b < end && !steal; b++)
        file_set_locked(file, b, BLOCK_UNKNOWN);
    if (runs_make_locked(file, first, end, AHEAD_RUN, why, steal) == 0)
        return true;
    for (uint64_t b = first; b < end && !steal; b++)
        if (file_state(file, b) == BLOCK_UNKNOWN)
            file_set_locked(file, b, BLOCK_ELSEWHERE);
    return false;
}

/* Look at the file's blocks that others fetch: some may have come, or their claims may have ended.
 * Returns false if there are none left. */
static bool look_elsewhere(struct file *file, int64_t now)
{
    struct stage *stage = file->stage;
    uint64_t before;
    bool left = false, steal;

    if (file_take(file, NULL) < 0)
        return true;
    lock_take(&stage->lock);
    before = file->elsewhere;
    lock_drop(&stage->lock);
    for (uint64_t b = next_elsewhere(file, 0); b < file->blocks && !stage->ending;
         b = next_elsewhere(file, b + 1))
        look_at_blocks(file, b, b + 1);
    lock_take(&stage->lock);
    if (file->elsewhere < before)
        file->elsewhere_since = now;
    steal = now - file->elsewhere_since > STEAL_S * NS_PER_S;
    for (uint64_t b = next_elsewhere(file, 0); b < file->blocks; b = next_elsewhere(file, b + 1)) {
        uint64_t n = 1;

        while (b + n < file->blocks && n < 32 && file_state(file, b + n) == BLOCK_ELSEWHERE)
            n++;
        left = !((steal || is_let_go(file, b)) && take_over_locked(file, b, n, steal)) || left;
        b += n - 1;
    }
    lock_drop(&stage->lock);
    file_put(file);
    return left;
}

/* Look at all files. Returns when to look again. */
int64_t look_at_others(struct stage *stage, int64_t now)
{
    struct file *file, *left = NULL;
    bool waited = false;

    lock_take(&stage->lock);
    file = stage->elsewhere;
    stage->elsewhere = NULL;
    lock_drop(&stage->lock);
    while (file) {
        struct file *next = file->next_elsewhere;

        if (look_elsewhere(file, now)) {
            file->next_elsewhere = left;
            left = file;
        } else {
            lock_take(&stage->lock);
            file->in_elsewhere = false;
            if (file->elsewhere) { /* since we looked */
                file->in_elsewhere = true;
                file->next_elsewhere = stage->elsewhere;
                stage->elsewhere = file;
            }
            lock_drop(&stage->lock);
        }
        file = next;
    }
    lock_take(&stage->lock);
    while (left) {
        struct file *next = left->next_elsewhere;

        waited = waited || left->waits.n;

        left->next_elsewhere = stage->elsewhere;
        stage->elsewhere = left;
        left = next;
    }
    file = stage->elsewhere;
    lock_drop(&stage->lock);
    return file ? now + (waited ? ELSEWHERE_MS : UNWAITED_MS) * NS_PER_MS : INT64_MAX;
}
