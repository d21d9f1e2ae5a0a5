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

/* Look at the file's blocks that others fetch: some may have come, or their claims may have ended.
 */
static void look_elsewhere(struct file *file, int64_t now)
{
    struct stage *stage = file->stage;
    bool came = false;

    if (file_take(file, NULL) < 0)
        return;
    for (uint64_t b = next_elsewhere(file, 0); b < file->blocks && !stage->ending;
         b = next_elsewhere(file, b + 1)) {
        look_at_blocks(file, b, b + 1);
        came = came || file_state(file, b) == BLOCK_HERE;
    }
    lock_take(&stage->lock);
    if (came) /* blocks that we steal are no sign of life */
        file->elsewhere_since = now;
    file->steals = now - file->elsewhere_since > STEAL_S * NS_PER_S;
    lock_drop(&stage->lock);
    for (uint64_t b = next_elsewhere(file, 0), n; b < file->blocks;
         b = next_elsewhere(file, b + n)) {
        uint64_t free;

        for (n = 1; b + n < file->blocks && n < 32; n++)
            if (file_state(file, b + n) != BLOCK_ELSEWHERE)
                break;
        free = staged_unclaimed(&file->staged, b, n);
        LOCK_SCOPE(&stage->lock);

        for (uint64_t i = 0; i < free; i++)
            if (file_state(file, b + i) == BLOCK_ELSEWHERE)
                file_set_locked(file, b + i, BLOCK_UNKNOWN);
        needs_again_locked(file, b, b + (file->steals ? n : free));
    }
    file_put(file);
}

/* Look at all files. Returns when to look again. Others only add files, in front. */
int64_t look_at_others(struct stage *stage, int64_t now)
{
    bool waited = false, any;
    struct file *next;

    lock_take(&stage->lock);
    for (struct file *file = TAILQ_FIRST(&stage->elsewhere); file; file = next) {
        lock_drop(&stage->lock);
        look_elsewhere(file, now);
        lock_take(&stage->lock);
        next = TAILQ_NEXT(file, elsewhere_link);
        waited = waited || file->waits.n;
        if (!file->elsewhere) {
            TAILQ_REMOVE(&stage->elsewhere, file, elsewhere_link);
            file->in_elsewhere = false;
        }
    }
    any = !TAILQ_EMPTY(&stage->elsewhere);
    lock_drop(&stage->lock);
    return any ? now + (waited ? ELSEWHERE_MS : UNWAITED_MS) * NS_PER_MS : INT64_MAX;
}
