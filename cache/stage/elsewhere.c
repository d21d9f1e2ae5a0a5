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

/* How many of n blocks nobody claims any more. */
static uint64_t count_let_go(const struct file *file, uint64_t first, uint64_t n)
{
    uint64_t claimed = staged_claim(&file->staged, first, n);

    staged_unclaim(&file->staged, first, claimed);
    return claimed;
}

/* Look at the file's blocks that others fetch: some may have come, or their claims may have ended.
 * Returns false if there are none left. */
static bool look_elsewhere(struct file *file, int64_t now)
{
    struct stage *stage = file->stage;
    bool left = false, came = false;

    if (file_take(file, NULL) < 0)
        return true;
    for (uint64_t b = next_elsewhere(file, 0); b < file->blocks && !stage->ending;
         b = next_elsewhere(file, b + 1)) {
        look_at_blocks(file, b, b + 1);
        came = came || file_state(file, b) == BLOCK_HERE;
    }
    lock_take(&stage->lock);
    if (came) /* blocks that we steal are no sign of life */
        file->elsewhere_since = now;
    file->steals = now - file->elsewhere_since > STEAL_S * NS_PER_S;
    for (uint64_t b = next_elsewhere(file, 0); b < file->blocks; b = next_elsewhere(file, b + 1)) {
        uint64_t n = 1, free;

        while (b + n < file->blocks && n < 32 && file_state(file, b + n) == BLOCK_ELSEWHERE)
            n++;
        free = count_let_go(file, b, n);
        for (uint64_t i = 0; i < free; i++)
            file_set_locked(file, b + i, BLOCK_UNKNOWN);
        needs_again_locked(file, b, b + (file->steals ? n : free));
        left = left || free < n;
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
