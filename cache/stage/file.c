/* A file of the remote: which of its blocks are here, as far as we know.
 *
 * Invariants:
 *  1. A HERE block was on disk with the right checksum when the staged file's count of drops was
 *     file->drops. So bytes that were read are valid if the count is the same after the read.
 *  2. Where the count is unknown (UINT64_MAX: the file was cut short, and could not be begun anew,
 *     or others use it for another key) no block is HERE: fetched blocks become overflow blocks.
 *  3. is_open changes with stage->lock held, and to false only while users is 0. So a thread that
 *     adds a user and then sees is_open may use `staged`; see file_take() and close_locked().
 *  4. When a file is closed its blocks become UNKNOWN: another process may change it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)
#define DROP_MS   20 /* how long a reader waits for this process to end a drop */
#define RECORDS   512

uint32_t file_block_len(const struct file *file, uint64_t block)
{
    return (uint32_t)min_u64(file->block_bytes, file->blob.size - block * file->block_bytes);
}

/* ---- states ---- */

static void set_flag_locked(struct file *file, uint64_t block, uint8_t flag, bool on)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);

    lock_assert_held(&file->stage->lock);
    state = (uint8_t)(on ? state | flag : state & ~flag);
    atomic_store_explicit(&file->state[block], state, memory_order_release);
}

static void count_staged_locked(struct file *file, uint64_t block, bool is_staged)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);
    struct stage_counters *c = &file->stage->counters;
    uint64_t len = file_block_len(file, block);

    lock_assert_held(&file->stage->lock);
    if (!(state & BLOCK_COUNTED) == !is_staged)
        return;
    set_flag_locked(file, block, BLOCK_COUNTED, is_staged);
    if (!is_staged)
        len = -len;
    atomic_fetch_add_explicit(&c->staged_bytes, len, memory_order_relaxed);
    atomic_fetch_add_explicit(&file->counted, len, memory_order_relaxed);
}

void file_count_locked(struct file *file, uint64_t block)
{
    lock_assert_held(&file->stage->lock);
    count_staged_locked(file, block, true);
}

void file_set_locked(struct file *file, uint64_t block, enum block_state state)
{
    uint8_t old = atomic_load_explicit(&file->state[block], memory_order_relaxed);

    lock_assert_held(&file->stage->lock);
    file->coming += state == BLOCK_COMING;
    file->coming -= (old & BLOCK_STATE) == BLOCK_COMING;
    file->elsewhere += state == BLOCK_ELSEWHERE;
    file->elsewhere -= (old & BLOCK_STATE) == BLOCK_ELSEWHERE;
    atomic_store_explicit(&file->state[block], (uint8_t)((old & BLOCK_FLAGS) | state),
                          memory_order_release);
    if (state == BLOCK_ABSENT || state == BLOCK_UNKNOWN) {
        file->stage->turn.missed++;
        file->stage->turn.all_here = false;
    }
    if (state == BLOCK_HERE)
        count_staged_locked(file, block, true);
    else if (state == BLOCK_ABSENT)
        count_staged_locked(file, block, false);
}

enum block_state file_here(const struct file *file, uint64_t drops)
{
    if (drops == UINT64_MAX)
        return BLOCK_ABSENT;
    return atomic_load(&file->drops) == drops ? BLOCK_HERE : BLOCK_UNKNOWN;
}

/* Forget the states of all blocks except those that are coming. Those of which nothing is known are
 * not written, so that they take no memory. */
static void forget_locked(struct file *file)
{
    lock_assert_held(&file->stage->lock);
    for (uint64_t b = 0; b < file->blocks; b++)
        if (file_state(file, b) == BLOCK_HERE || file_state(file, b) == BLOCK_ABSENT)
            file_set_locked(file, b, BLOCK_UNKNOWN);
    file->stage->turn.missed++;
    file->stage->turn.all_here = false;
}

void file_set_trouble_locked(struct file *file, const char *text)
{
    lock_assert_held(&file->stage->lock);
    free(file->trouble);
    file->trouble = text ? strdup(text) : NULL;
}

/* ---- open and closed ---- */

static struct staged_key key_of(const struct file *file)
{
    return (struct staged_key){file->key, file->version_text, file->blob.size, file->block_bytes};
}

/* A drop by this process ends in a moment: after that there is nothing to forget. */
static void await_drops_locked(struct file *file)
{
    const struct clock *clock = file->stage->options.clock;
    int64_t until = clock_monotonic(clock) + DROP_MS * NS_PER_MS;

    lock_assert_held(&file->stage->lock);
    while (file->dropping && clock_monotonic(clock) < until)
        clock_wait(clock, &file->stage->lock, &file->stage->gone, until);
}

/* Another process has dropped blocks since the count was drops, or the file was cut short, or is
 * used for another key. */
void file_forget(struct file *file, uint64_t drops)
{
    const struct staged_key key = key_of(file);
    uint64_t now = staged_mend(&file->staged, &key);
    LOCK_SCOPE(&file->stage->lock);

    await_drops_locked(file);
    if (atomic_load(&file->drops) != drops || now == drops)
        return;          /* another thread was faster, or this process dropped the blocks */
    forget_locked(file); /* before the store: a HERE block is valid for the number in file->drops */
    atomic_store(&file->drops, now);
}

uint64_t file_drops_to_write(struct file *file)
{
    uint64_t drops = atomic_load(&file->drops);

    if (drops != UINT64_MAX && staged_drops(&file->staged) == UINT64_MAX)
        file_forget(file, drops);
    return atomic_load(&file->drops);
}

static void close_locked(struct file *file)
{
    lock_assert_held(&file->stage->lock);
    atomic_store(&file->is_open, false);
    if (atomic_load(&file->users)) { /* a user came in between */
        atomic_store(&file->is_open, true);
        return;
    }
    TAILQ_REMOVE(&file->stage->open, file, open_link);
    file->stage->n_open--;
    staged_close(&file->staged);
    forget_locked(file);
}

/* Close files that were not used lately if too many are open. */
static void close_some_locked(struct stage *stage)
{
    unsigned looks = stage->n_open;

    lock_assert_held(&stage->lock);
    while (stage->n_open >= stage->open_most && looks--) {
        struct file *file = TAILQ_FIRST(&stage->open);

        if (atomic_exchange(&file->recent, false) || atomic_load(&file->users) || file->coming ||
            file->waits.n) {
            TAILQ_REMOVE(&stage->open, file, open_link);
            TAILQ_INSERT_TAIL(&stage->open, file, open_link);
        } else {
            close_locked(file);
        }
    }
}

void file_try_disk(struct file *file)
{
    LOCK_SCOPE(&file->stage->lock);

    if (atomic_load(&file->is_open) && file->staged.is_in_memory && !atomic_load(&file->users) &&
        !file->coming && !file->waits.n)
        close_locked(file);
}

static int open_staged(struct file *file, struct diag *d)
{
    struct stage *stage = file->stage;
    const struct staged_key key = key_of(file);
    struct diag why = DIAG_INIT;
    int r = staged_open(&file->staged, stage->cache, &key, &why);

    if (r == -EBUSY || r == -ETIMEDOUT)
        stage_tell_early(stage, r, &why);
    if (r == -ENOSPC || r == -EDQUOT || r == -ETIMEDOUT || r == -EBUSY) /* served, not staged */
        r = staged_open_in_memory(&file->staged, &key, &why);
    if (r == 0)
        atomic_store(&file->drops, staged_drops(&file->staged));
    lock_take(&stage->lock);
    if (r < 0 || file->open_error < 0)
        file_set_trouble_locked(file, r < 0 ? diag_text(&why, r) : NULL);
    file->open_error = r;
    if (r == 0) {
        close_some_locked(stage);
        TAILQ_INSERT_TAIL(&stage->open, file, open_link);
        stage->n_open++;
        atomic_store(&file->is_open, true);
    }
    file->opening = false;
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : 0;
}

int file_take(struct file *file, struct diag *d)
{
    struct stage *stage = file->stage;
    bool must_open;
    int r;

    atomic_fetch_add(&file->users, 1);
    if (!atomic_load_explicit(&file->recent, memory_order_relaxed))
        atomic_store_explicit(&file->recent, true, memory_order_relaxed);
    if (atomic_load(&file->is_open))
        return 0;
    lock_take(&stage->lock);
    while (file->opening)
        lock_wait(&stage->lock, &stage->gone);
    must_open = !atomic_load(&file->is_open);
    file->opening = must_open;
    lock_drop(&stage->lock);
    if (!must_open)
        return 0;
    r = open_staged(file, d);
    if (r < 0)
        file_put(file);
    return r;
}

void file_put(struct file *file)
{
    atomic_fetch_sub(&file->users, 1);
}

/* ---- looking ---- */

bool file_block_is_good(const struct file *file, uint64_t block, uint64_t record, uint8_t *buf)
{
    int r = staged_read(&file->staged, buf, file_block_len(file, block), block * file->block_bytes);

    return r == 0 && staged_checksum(&file->staged, block, buf) == record;
}

void file_looked_at(struct file *file, uint64_t block, bool here, uint64_t drops)
{
    struct wait *over = NULL;
    enum block_state state;

    lock_take(&file->stage->lock);
    state = file_state(file, block);
    if (state != BLOCK_COMING && state != BLOCK_HERE && here) {
        file_set_locked(file, block, file_here(file, drops));
        waits_over_locked(file, block, block + 1, 0, &over);
    } else if (state == BLOCK_UNKNOWN) {
        file_set_locked(file, block, BLOCK_ABSENT);
    }
    lock_drop(&file->stage->lock);
    waits_tell(file->stage, over, 0, NULL);
}

/* Where the count of drops is unknown, there are none. */
static void read_records(const struct file *file, uint64_t first, size_t n, uint64_t *ret)
{
    if (atomic_load(&file->drops) == UINT64_MAX)
        memset(ret, 0, n * sizeof(*ret));
    else
        staged_records(&file->staged, first, n, ret);
}

static bool is_known(const struct file *file, uint64_t block)
{
    enum block_state state = file_state(file, block);

    return state == BLOCK_HERE || state == BLOCK_COMING;
}

/* This process has dropped blocks. Unless another process did so, too, the other blocks' states
 * stay valid. */
void file_dropped_locked(struct file *file, const struct staged_dropped *dropped)
{
    lock_assert_held(&file->stage->lock);
    if (dropped->before != UINT64_MAX && atomic_load(&file->drops) == dropped->before)
        atomic_store(&file->drops, dropped->after);
}

/* The block does not match its record: drop it, unless it is being written right now. */
static void drop_bad(struct file *file, uint64_t block)
{
    struct stage *stage = file->stage;
    uint64_t mark = quota_mark(stage->quota);
    struct staged_dropped dropped;

    atomic_fetch_add_explicit(&stage->counters.bad_blocks, 1, memory_order_relaxed);
    if (staged_drop_bad(&file->staged, block, &dropped) < 0)
        return;
    quota_freed(stage->quota, dropped.freed, mark);
    LOCK_SCOPE(&stage->lock);

    /* It may have been fetched again, and found good by another thread, before it was dropped. */
    if (file_state(file, block) == BLOCK_HERE)
        file_set_locked(file, block, BLOCK_UNKNOWN);
    file_dropped_locked(file, &dropped);
}

/* Is this still the block's record? If not, the block was dropped while it was read, and is not
 * bad. */
static bool has_record(const struct file *file, uint64_t block, uint64_t record)
{
    uint64_t now;

    staged_records(&file->staged, block, 1, &now);
    return now == record;
}

/* Look at a block whose state is uncertain. drops: file->drops before the record was read. buf:
 * space for one block, allocated when it is needed. */
static void look_at_block(struct file *file, uint64_t block, uint64_t record, uint64_t drops,
                          uint8_t **buf)
{
    bool here = false;

    if (record) {
        if (!*buf)
            *buf = malloc(file->block_bytes);
        here = *buf && file_block_is_good(file, block, record, *buf);
        if (*buf && !here && has_record(file, block, record))
            drop_bad(file, block);
    }
    if (here || file_state(file, block) == BLOCK_UNKNOWN)
        file_looked_at(file, block, here, drops);
}

void look_at_blocks(struct file *file, uint64_t first, uint64_t end)
{
    AUTO_FREE uint8_t *buf = NULL;
    uint64_t record[LOOK_AT_ONCE];

    while (first < end) {
        size_t n = (size_t)min_u64(LOOK_AT_ONCE, end - first);
        uint64_t drops;

        if (is_known(file, first)) {
            first++;
            continue;
        }
        drops = atomic_load(&file->drops);
        read_records(file, first, n, record);
        for (size_t i = 0; i < n; i++)
            if (!is_known(file, first + i))
                look_at_block(file, first + i, record[i], drops, &buf);
        first += n;
    }
}

void file_count(struct file *file)
{
    uint64_t record[RECORDS];

    for (uint64_t at = 0; at < file->blocks && !atomic_load(&file->stage->ending); at += RECORDS) {
        size_t n = (size_t)min_u64(RECORDS, file->blocks - at);

        read_records(file, at, n, record);
        LOCK_SCOPE(&file->stage->lock);

        for (size_t i = 0; i < n; i++)
            if (record[i] && file_state(file, at + i) != BLOCK_COMING)
                file_count_locked(file, at + i);
    }
}

uint64_t find_missing(struct file *file, uint64_t from, uint64_t to, bool *ret_others)
{
    struct stage *stage = file->stage;
    uint64_t record[RECORDS];

    for (uint64_t at = from; at < to; at += RECORDS) {
        size_t n = (size_t)min_u64(RECORDS, to - at);

        if (atomic_load_explicit(&stage->ending, memory_order_relaxed))
            break;
        read_records(file, at, n, record);
        LOCK_SCOPE(&stage->lock);

        for (size_t i = 0; i < n; i++) {
            enum block_state state = file_state(file, at + i);

            if (!record[i] && file_may_fetch(file, at + i) && !file_is_for_readers(file, at + i))
                return at + i;
            if (record[i] && state != BLOCK_COMING)
                file_count_locked(file, at + i);
            *ret_others = *ret_others || state == BLOCK_COMING || state == BLOCK_ELSEWHERE;
        }
    }
    return to;
}
