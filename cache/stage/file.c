/* A file of the remote: which of its blocks are here, and the blob that reads them.
 *
 * Invariants:
 *  1. A block that is HERE was on disk with the right checksum when the staged file's count of
 *     drops was file->drops. So bytes that were read count if the count is the same behind them.
 *  2. Where the count cannot be told (UINT64_MAX: the file was cut short, and could not be begun
 *     anew) no block is HERE: what is fetched goes to the overflow blocks.
 *  3. is_open changes with stage->lock held, and to false only while users is 0: whoever adds a
 *     user and then sees is_open may use staged; see file_take() and close_locked().
 *  4. When a file is closed its blocks become UNKNOWN: another process may change it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/disk/sha256.h"
#include "cache/stage/parts.h"

#define LOOK_AT_ONCE 64
#define DROP_AT_ONCE 64 /* ranges: readers of the file wait for a drop to be known */
#define VERIFY_FIRST (UINT64_C(16) << 20) /* smaller files are compared before they are read */
#define TRIES        64
#define DROP_MS      20 /* that a reader waits for a drop of this process */
#define NS_PER_MS    INT64_C(1000000)
#define GAVE_UP_MS   1000

static struct file *file_of(const struct blob *blob)
{
    return (struct file *)(uintptr_t)blob; /* its head is constant, the rest has locks */
}

uint32_t file_block_len(const struct file *file, uint64_t block)
{
    return (uint32_t)min_u64(file->block_bytes, file->blob.size - block * file->block_bytes);
}

/* ---- states ---- */

static void set_flag_locked(struct file *file, uint64_t block, uint8_t flag, bool on)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);

    state = (uint8_t)(on ? state | flag : state & ~flag);
    atomic_store_explicit(&file->state[block], state, memory_order_release);
}

static void count_staged_locked(struct file *file, uint64_t block, bool is_staged)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);
    struct stage_counters *c = &file->stage->counters;
    uint64_t len = file_block_len(file, block);

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
        file->stage->missed++;
        file->stage->guided.all_here = false;
    }
    if (state == BLOCK_HERE)
        count_staged_locked(file, block, true);
    else if (state == BLOCK_ABSENT)
        count_staged_locked(file, block, false);
    if (state == BLOCK_ABSENT && file->used)
        atomic_store_explicit(&file->used[block], 0, memory_order_relaxed);
}

enum block_state file_here(const struct file *file, uint64_t drops)
{
    if (drops == UINT64_MAX)
        return BLOCK_ABSENT;
    return atomic_load(&file->drops) == drops ? BLOCK_HERE : BLOCK_UNKNOWN;
}

/* Nothing is known of the blocks any more, but of those that are coming. */
static void forget_locked(struct file *file)
{
    lock_assert_held(&file->stage->lock);
    for (uint64_t b = 0; b < file->blocks; b++)
        if (file_state(file, b) != BLOCK_COMING && file_state(file, b) != BLOCK_ELSEWHERE)
            file_set_locked(file, b, BLOCK_UNKNOWN);
}

/* ---- open and closed ---- */

static struct staged_key key_of(const struct file *file)
{
    return (struct staged_key){file->key, file->version_text, file->blob.size, file->block_bytes};
}

/* A drop of this process is known to it in a moment: then there is nothing to forget. */
static void await_drops_locked(struct file *file)
{
    int64_t until = monotonic_ns() + DROP_MS * NS_PER_MS, left;

    while (file->dropping && (left = until - monotonic_ns()) > 0)
        lock_wait_for(&file->stage->lock, &file->stage->gone, left);
}

/* Another process has dropped blocks since the count was drops, or the file was cut short. */
static void forget(struct file *file, uint64_t drops)
{
    uint64_t now = staged_drops(&file->staged);

    if (now == UINT64_MAX) {
        const struct staged_key key = key_of(file);

        if (staged_mend(&file->staged, &key) == 0)
            now = staged_drops(&file->staged);
    }
    LOCK_SCOPE(&file->stage->lock);

    await_drops_locked(file);
    if (atomic_load(&file->drops) != drops || now == drops)
        return;          /* another thread was faster, or it was one of ours */
    forget_locked(file); /* first: what is HERE counts with the number that file->drops has */
    atomic_store(&file->drops, now);
}

uint64_t file_drops_to_write(struct file *file)
{
    uint64_t drops = atomic_load(&file->drops);

    if (drops != UINT64_MAX && staged_drops(&file->staged) == UINT64_MAX)
        forget(file, drops);
    return atomic_load(&file->drops);
}

static void open_list_add_locked(struct file *file)
{
    struct stage *stage = file->stage;

    file->newer = NULL;
    file->older = stage->newest;
    *(stage->newest ? &stage->newest->newer : &stage->oldest) = file;
    stage->newest = file;
    stage->n_open++;
}

static void open_list_remove_locked(struct file *file)
{
    struct stage *stage = file->stage;

    *(file->newer ? &file->newer->older : &stage->newest) = file->older;
    *(file->older ? &file->older->newer : &stage->oldest) = file->newer;
    stage->n_open--;
}

static void close_locked(struct file *file)
{
    lock_assert_held(&file->stage->lock);
    atomic_store(&file->is_open, false);
    if (atomic_load(&file->users)) { /* somebody came in between */
        atomic_store(&file->is_open, true);
        return;
    }
    open_list_remove_locked(file);
    staged_close(&file->staged);
    forget_locked(file);
}

/* Close files that were not used lately, if there are too many open ones. */
static void close_some_locked(struct stage *stage)
{
    unsigned looks = stage->n_open;

    while (stage->n_open >= stage->open_most && looks--) {
        struct file *file = stage->oldest;

        if (atomic_exchange(&file->recent, false) || atomic_load(&file->users) || file->coming ||
            file->waits.n) {
            open_list_remove_locked(file);
            open_list_add_locked(file);
        } else {
            close_locked(file);
        }
    }
}

static int open_staged(struct file *file, struct diag *d)
{
    struct stage *stage = file->stage;
    const struct staged_key key = key_of(file);
    int r = staged_open(&file->staged, stage->cache, &key, d);

    if (r == 0)
        atomic_store(&file->drops, staged_drops(&file->staged));
    lock_take(&stage->lock);
    if (r == 0) {
        close_some_locked(stage);
        open_list_add_locked(file);
        atomic_store(&file->is_open, true);
    }
    file->opening = false;
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
    return r;
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

static void set_looked_at(struct file *file, uint64_t block, bool here, uint64_t drops)
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

static bool is_known(const struct file *file, uint64_t block)
{
    enum block_state state = file_state(file, block);

    return state == BLOCK_HERE || state == BLOCK_COMING;
}

/* Blocks were dropped by this process. Unless another one did that, too, the others are as good as
 * they were. */
static void dropped_locked(struct file *file, const struct staged_dropped *dropped)
{
    lock_assert_held(&file->stage->lock);
    if (dropped->before != UINT64_MAX && atomic_load(&file->drops) == dropped->before)
        atomic_store(&file->drops, dropped->after);
}

/* The block is not what its record says: it goes, unless somebody writes it right now. */
static void drop_bad(struct file *file, uint64_t block)
{
    struct stage *stage = file->stage;
    uint64_t mark = quota_mark(stage->quota);
    struct staged_dropped dropped;

    atomic_fetch_add_explicit(&stage->counters.bad_blocks, 1, memory_order_relaxed);
    if (staged_drop(&file->staged, block, 1, &dropped) < 0)
        return;
    quota_freed(stage->quota, dropped.freed, mark);
    LOCK_SCOPE(&stage->lock);

    /* It may have been fetched again, and found good by another thread, before it was dropped. */
    if (file_state(file, block) == BLOCK_HERE)
        file_set_locked(file, block, BLOCK_UNKNOWN);
    dropped_locked(file, &dropped);
}

/* Is that the block's record still? If not, it was dropped while it was read, and is not bad. */
static bool has_record(const struct file *file, uint64_t block, uint64_t record)
{
    uint64_t now;

    staged_records(&file->staged, block, 1, &now);
    return now == record;
}

/* A block whose state is not certain. drops: file->drops before the record was read. buf: room for
 * one, made when it is needed. */
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
        set_looked_at(file, block, here, drops);
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
        staged_records(&file->staged, first, n, record);
        if (drops == UINT64_MAX)
            memset(record, 0, sizeof(record));
        for (size_t i = 0; i < n; i++)
            if (!is_known(file, first + i))
                look_at_block(file, first + i, record[i], drops, &buf);
        first += n;
    }
}

/* ---- dropping ---- */

/* By keep=plan those go, too, that are on disk and were not looked at yet, but none that somebody
 * waits for. */
static bool may_drop_locked(struct file *file, uint64_t block)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);
    bool plan = file->stage->options.keep == STAGE_PLAN;

    if ((state & BLOCK_STATE) == BLOCK_UNKNOWN && atomic_load(&file->done))
        return true;
    if ((state & BLOCK_STATE) != BLOCK_HERE &&
        !((state & BLOCK_STATE) == BLOCK_UNKNOWN && plan && state & BLOCK_COUNTED))
        return false;
    return !plan || !wait_first_locked(file, block, block + 1);
}

/* Blocks that are HERE are COMING while they are dropped, so that no run is made for them. Of a
 * file that is done with, those go that may be here, too. Returns how many ranges of such there
 * are; the rest is left for the next time: *range begins there then, and has none when all is done.
 */
static size_t begin_drop_locked(struct file *file, struct staged_range *range,
                                struct staged_range *ret, size_t capacity)
{
    size_t n = 0;

    lock_assert_held(&file->stage->lock);
    while (range->n && n < capacity) {
        uint64_t here = 0;

        while (here < range->n && may_drop_locked(file, range->first + here))
            file_set_locked(file, range->first + here++, BLOCK_COMING);
        if (here)
            ret[n++] = (struct staged_range){range->first, here};
        range->first += here ? here : 1;
        range->n -= here ? here : 1;
    }
    return n;
}

/* What another process holds a claim of has not been dropped. */
static uint64_t end_drop_range(struct file *file, const struct staged_range *range)
{
    uint64_t record[LOOK_AT_ONCE], dropped = 0;

    for (uint64_t at = 0; at < range->n; at += LOOK_AT_ONCE) {
        size_t some = (size_t)min_u64(LOOK_AT_ONCE, range->n - at);

        staged_records(&file->staged, range->first + at, some, record);
        LOCK_SCOPE(&file->stage->lock);

        for (size_t i = 0; i < some; i++) {
            dropped += !record[i];
            file_set_locked(file, range->first + at + i, record[i] ? BLOCK_UNKNOWN : BLOCK_ABSENT);
        }
    }
    return dropped;
}

/* what: NULL: it has failed. Where the plan decides what goes, the room is for what it needs next,
 * and not for the rest of the files. */
static void end_drop(struct file *file, const struct staged_range *ranges, size_t n,
                     const struct staged_dropped *what)
{
    struct stage *stage = file->stage;
    struct wait *over = NULL;
    uint64_t dropped = 0;

    for (size_t i = 0; i < n; i++)
        dropped += end_drop_range(file, &ranges[i]);
    lock_take(&stage->lock);
    if (!atomic_load(&file->done))
        atomic_fetch_add_explicit(&stage->counters.evictions, dropped, memory_order_relaxed);
    if (what)
        dropped_locked(file, what);
    file->dropping--;
    pthread_cond_broadcast(&stage->gone);
    if (dropped && stage->options.keep != STAGE_PLAN)
        stage->full_error = 0;
    for (size_t i = 0; i < n; i++)
        runs_make_for_waits_locked(file, ranges[i].first, ranges[i].first + ranges[i].n, &over);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
    waits_tell(stage, over, 0, NULL);
}

int file_drop_ranges(struct file *file, const struct staged_range *ranges, size_t n)
{
    struct stage *stage = file->stage;
    struct staged_range some[DROP_AT_ONCE], left = {0, 0};
    int result = 0;

    for (size_t i = 0; i < n || left.n;) {
        size_t begun = 0;

        lock_take(&stage->lock);
        while (begun < DROP_AT_ONCE && (left.n || i < n)) {
            if (!left.n)
                left = ranges[i++];
            begun += begin_drop_locked(file, &left, some + begun, DROP_AT_ONCE - begun);
        }
        file->dropping += begun > 0;
        lock_drop(&stage->lock);
        if (begun) {
            uint64_t mark = quota_mark(stage->quota);
            struct staged_dropped dropped;
            int r = staged_drop_ranges(&file->staged, some, begun, &dropped);

            if (r == 0)
                quota_freed(stage->quota, dropped.freed, mark);
            end_drop(file, some, begun, r == 0 ? &dropped : NULL);
            result = r < 0 ? r : result;
        }
    }
    return result;
}

static void drop_blocks(struct file *file, uint64_t first, uint64_t n)
{
    const struct staged_range range = {first, n};

    file_drop_ranges(file, &range, 1);
}

/* ---- reading ---- */

/* Blocks [first, end), HERE by what we know, could not be read. */
static void lost(struct file *file, uint64_t first, uint64_t end)
{
    LOCK_SCOPE(&file->stage->lock);

    for (uint64_t b = first; b < end; b++)
        if (file_state(file, b) == BLOCK_HERE)
            file_set_locked(file, b, BLOCK_ABSENT);
    atomic_fetch_add_explicit(&file->stage->counters.bad_blocks, 1, memory_order_relaxed);
}

/* Copy what one block has of the range. */
static int read_overflow(struct file *file, uint64_t block, uint8_t *buf, size_t len, uint64_t off)
{
    uint64_t start = block * file->block_bytes, from = max_u64(off, start),
             to = min_u64(off + len, start + file_block_len(file, block));

    return overflow_read(&file->stage->overflow, file, block, buf + (from - off),
                         (size_t)(from - start), (size_t)(to - from))
               ? 0
               : -EAGAIN;
}

/* Blocks from first on that are HERE. */
static uint64_t count_here(const struct file *file, uint64_t first, uint64_t end)
{
    uint64_t n = 0;

    while (first + n < end && file_state(file, first + n) == BLOCK_HERE)
        n++;
    return n;
}

/* Read from disk and overflow blocks. 0, -EAGAIN: something is missing. *ret_overflow: not all is
 * on disk. */
static int read_blocks(struct file *file, uint8_t *buf, size_t len, uint64_t off,
                       bool *ret_overflow)
{
    uint64_t first = off / file->block_bytes, end = ceil_div(off + len, file->block_bytes);

    while (first < end) {
        uint64_t n = count_here(file, first, end), from, to;
        int r;

        if (!n) {
            r = read_overflow(file, first, buf, len, off);
            if (r < 0)
                return r;
            *ret_overflow = true;
            first++;
            continue;
        }
        from = max_u64(off, first * file->block_bytes);
        to = min_u64(off + len, (first + n) * file->block_bytes);
        r = staged_read(&file->staged, buf + (from - off), (size_t)(to - from), from);
        if (r < 0) {
            lost(file, first, first + n);
            return -EAGAIN;
        }
        first += n;
    }
    return 0;
}

/* Whole blocks that are on disk, but were not looked at, as in a new mount: they are read once,
 * into buf, and compared there. False: it is not that simple. */
static bool read_unknown(struct file *file, uint8_t *buf, size_t len, uint64_t off)
{
    uint64_t first = off / file->block_bytes, end = ceil_div(off + len, file->block_bytes);
    uint64_t drops = atomic_load(&file->drops), record[LOOK_AT_ONCE];
    size_t n = (size_t)(end - first);

    if (off % file->block_bytes || n > LOOK_AT_ONCE ||
        off + len != min_u64(end * file->block_bytes, file->blob.size))
        return false;
    staged_records(&file->staged, first, n, record);
    for (size_t i = 0; i < n; i++)
        if (!record[i] || (file_state(file, first + i) != BLOCK_UNKNOWN &&
                           file_state(file, first + i) != BLOCK_HERE))
            return false;
    if (staged_read(&file->staged, buf, len, off) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (staged_checksum(&file->staged, first + i, buf + i * file->block_bytes) != record[i])
            return false;
    for (size_t i = 0; i < n; i++)
        set_looked_at(file, first + i, true, drops);
    return true;
}

/* 0; -EAGAIN: bytes are missing; or -errno. The file has been taken. */
static int read_here(struct file *file, void *buf, size_t len, uint64_t off, bool *ret_overflow)
{
    uint64_t first = off / file->block_bytes, end = ceil_div(off + len, file->block_bytes);

    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t drops = atomic_load(&file->drops), now;
        bool is_read = false;
        int r = 0;

        for (uint64_t b = first; b < end; b++) {
            if (file_state(file, b) == BLOCK_UNKNOWN) {
                is_read = read_unknown(file, buf, len, off);
                if (!is_read)
                    look_at_blocks(file, b, end);
                break;
            }
        }
        *ret_overflow = false;
        if (!is_read)
            r = read_blocks(file, buf, len, off, ret_overflow);
        now = staged_drops(&file->staged);
        if (now == drops || (r < 0 && now != UINT64_MAX))
            return r;
        forget(file, drops);
    }
    return -EAGAIN; /* blocks come and go all the time */
}

int file_verify(struct file *file, struct diag *d)
{
    AUTO_DIGEST struct digest *digest = NULL;
    AUTO_FREE uint8_t *buf = malloc(file->block_bytes);
    uint8_t found[DIGEST_BYTES];
    char want_text[DIGEST_TEXT_SIZE], found_text[DIGEST_TEXT_SIZE];
    uint64_t drops = staged_drops(&file->staged);
    int r = buf ? digest_new(&digest) : -ENOMEM;
    bool overflow_block;

    if (r == 0 && staged_is_marked(&file->staged, file->sha256)) {
        atomic_store(&file->verdict, FILE_GOOD);
        return 0;
    }
    for (uint64_t b = 0; b < file->blocks && r == 0; b++) {
        uint32_t len = file_block_len(file, b);

        r = atomic_load(&file->stage->ending)
                ? -EINTR
                : read_here(file, buf, len, b * file->block_bytes, &overflow_block);
        if (r == 0)
            r = digest_add(digest, buf, len);
    }
    if (r == 0)
        r = digest_finish(digest, found);
    if (r < 0)
        return r;
    if (!memcmp(found, file->sha256, sizeof(found))) {
        atomic_store(&file->verdict, FILE_GOOD);
        if (count_here(file, 0, file->blocks) == file->blocks)
            staged_mark(&file->staged, file->sha256, drops);
        return 0;
    }
    digest_text(file->sha256, want_text);
    digest_text(found, found_text);
    if (atomic_exchange(&file->verdict, FILE_BAD) != FILE_BAD) {
        atomic_fetch_add_explicit(&file->stage->counters.bad_files, 1, memory_order_relaxed);
        atomic_store(&file->failed, -EBADMSG);
        drop_blocks(file, 0, file->blocks);
    }
    return diag_set(d, -EBADMSG, "%s: SHA-256: want %s as SHA256SUMS says, found %s",
                    file->blob.name, want_text, found_text);
}

/* A small file with a known SHA-256 is compared before anybody reads of it. */
static bool is_unverified(const struct file *file)
{
    return file->has_sha256 && file->blob.size <= VERIFY_FIRST &&
           atomic_load_explicit(&file->verdict, memory_order_relaxed) == FILE_NOT_VERIFIED;
}

/* A read whose bytes were all on disk is a hit; those that memory had are none. */
static void count_read(struct file *file, bool hit)
{
    struct stage_counters *c = &file->stage->counters;

    atomic_fetch_add_explicit(hit ? &c->hits : &c->misses, 1, memory_order_relaxed);
}

/* A reader that waits, as wants that do not collect say. */
struct sync_wait {
    struct waiter waiter;
    struct lock lock;
    pthread_cond_t over_now;
    bool over, left; /* guarded by lock: it is done; nobody waits any more */
};

static void sync_wait_free(struct sync_wait *sync_wait)
{
    pthread_cond_destroy(&sync_wait->over_now);
    lock_release(&sync_wait->lock);
    free(sync_wait);
}

static void sync_wait_done(struct waiter *waiter)
{
    struct sync_wait *sync_wait = (struct sync_wait *)waiter;
    bool left;

    lock_take(&sync_wait->lock);
    left = sync_wait->left;
    sync_wait->over = true;
    pthread_cond_signal(&sync_wait->over_now);
    lock_drop(&sync_wait->lock);
    if (left)
        sync_wait_free(sync_wait);
}

/* 0 or -errno. */
static int wait_for(struct file *file, uint64_t off, uint64_t len)
{
    const struct missing_ranges *missing = missing_of_thread();
    struct sync_wait *sync_wait = calloc(1, sizeof(*sync_wait));
    int64_t began = monotonic_ns();
    bool cancelled = false;
    int r;

    if (!sync_wait)
        return -ENOMEM;
    lock_init(&sync_wait->lock);
    condition_init(&sync_wait->over_now);
    sync_wait->waiter.done = sync_wait_done;
    sync_wait->waiter.reason = DIAG_INIT;
    atomic_store(&sync_wait->waiter.pending, 1);
    blob_fetch(&file->blob, off, len, &sync_wait->waiter);
    waiter_done(&sync_wait->waiter, 0, NULL);
    lock_take(&sync_wait->lock);
    while (!sync_wait->over && !cancelled) {
        bool asks = missing && missing->cancelled;

        lock_wait_for(&sync_wait->lock, &sync_wait->over_now, asks ? 50000000 : INT64_MAX);
        cancelled = !sync_wait->over && asks && missing->cancelled(missing->ctx);
    }
    sync_wait->left = cancelled;
    lock_drop(&sync_wait->lock);
    stage_waited(file->stage, monotonic_ns() - began);
    if (cancelled)
        return -EINTR;
    r = atomic_load(&sync_wait->waiter.error);
    if (r < 0 && sync_wait->waiter.reason.set)
        blob_explain("%s", sync_wait->waiter.reason.text);
    sync_wait_free(sync_wait);
    return r;
}

/* Bytes of the file are missing: note that, or wait. 0: read again. */
static int get_missing(struct file *file, size_t len, uint64_t off)
{
    struct missing_ranges *missing = missing_of_thread();
    int failed = atomic_load(&file->failed);

    if (failed < 0)
        return failed;
    if (is_unverified(file)) {
        off = 0;
        len = (size_t)file->blob.size;
    }
    return missing && missing->collects ? missing_add(missing, &file->blob, off, len)
                                        : wait_for(file, off, len);
}

/* May bytes of it be given away? 0; -EAGAIN: not all of it is here. */
static int check_first(struct file *file)
{
    struct diag reason = DIAG_INIT;
    int r = 0;

    if (atomic_load_explicit(&file->verdict, memory_order_relaxed) == FILE_BAD)
        r = diag_set(&reason, -EBADMSG, "%s: its SHA-256 is not what SHA256SUMS says",
                     file->blob.name);
    else if (is_unverified(file))
        r = file_verify(file, &reason);
    if (reason.set)
        blob_explain("%s", reason.text);
    return r;
}

static int stage_pread(const struct blob *blob, void *buf, size_t len, uint64_t off)
{
    struct file *file = file_of(blob);
    const struct missing_ranges *missing = missing_of_thread();
    bool hit = true, again = missing && missing->again, overflow_block = false;
    int r = file_take(file, NULL);

    if (r < 0)
        return r == -ENOENT ? -EIO : r;
    for (;;) {
        r = check_first(file);
        if (r == 0)
            r = read_here(file, buf, len, off, &overflow_block);
        if (r == 0 && off + len > atomic_load_explicit(&file->ahead_at, memory_order_relaxed)) {
            lock_take(&file->stage->lock);
            ahead_locked(file, off, len);
            lock_drop(&file->stage->lock);
            runs_start(file->stage);
        }
        if (r != -EAGAIN)
            break;
        if (hit && !again)
            count_read(file, false);
        hit = false;
        r = get_missing(file, len, off);
        if (r < 0)
            break;
    }
    if (r == 0) {
        if (hit && !again)
            count_read(file, !overflow_block);
        atomic_fetch_add_explicit(&file->stage->counters.served_bytes, len, memory_order_relaxed);
        if (missing && missing->uses)
            r = missing_note_use(missing_of_thread(), blob, off, len);
    }
    file_put(file);
    return r;
}

/* Blocks that are HERE, and nothing to fetch ahead. */
static bool is_simple(const struct file *file, const struct blob_piece *piece)
{
    uint64_t first = piece->off / file->block_bytes,
             end = ceil_div(piece->off + piece->len, file->block_bytes);

    return count_here(file, first, end) == end - first &&
           piece->off + piece->len <= atomic_load_explicit(&file->ahead_at, memory_order_relaxed);
}

/* Bytes of the blocks that are HERE while the count of drops is drops; it is read once, behind all.
 */
static int read_pieces(struct file *file, const struct blob_piece *pieces, size_t n)
{
    uint64_t drops = atomic_load(&file->drops), total = 0;
    struct stage_counters *c = &file->stage->counters;
    struct missing_ranges *missing = missing_of_thread();
    int r = check_first(file);

    for (size_t i = 0; i < n && r == 0; i++) {
        r = is_simple(file, &pieces[i]) ? 0 : -EAGAIN;
        if (r == 0)
            r = staged_read(&file->staged, pieces[i].buf, pieces[i].len, pieces[i].off);
        total += pieces[i].len;
    }
    if (r < 0 || staged_drops(&file->staged) != drops)
        return -EAGAIN;
    for (size_t i = 0; i < n && r == 0 && missing && missing->uses; i++)
        r = missing_note_use(missing, &file->blob, pieces[i].off, pieces[i].len);
    if (!missing || !missing->again)
        atomic_fetch_add_explicit(&c->hits, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->served_bytes, total, memory_order_relaxed);
    return r;
}

/* Every error is met again when they are read one by one. */
static int stage_pread_many(const struct blob *blob, const struct blob_piece *pieces, size_t n)
{
    struct file *file = file_of(blob);
    int r = file_take(file, NULL);

    if (r < 0)
        return -EAGAIN;
    r = read_pieces(file, pieces, n);
    file_put(file);
    return r;
}

/* ---- asking ---- */

static uint64_t count_missing(struct file *file, uint64_t first, uint64_t end)
{
    uint64_t n = 0;

    for (uint64_t b = first; b < end; b++)
        n += file_state(file, b) != BLOCK_HERE && !overflow_has(&file->stage->overflow, file, b);
    return n;
}

/* Has patience just ended, and nothing come since? A read that fails is tried once more by the
 * kernel, and its reader need not wait twice. */
static bool has_given_up(const struct file *file, const struct wait *w)
{
    const struct stage *stage = file->stage;

    return file->gave_up && w->blocks.first < file->gave_up_end &&
           file->gave_up_first < w->blocks.end &&
           monotonic_ns() - file->gave_up < GAVE_UP_MS * NS_PER_MS &&
           atomic_load_explicit(&stage->progress, memory_order_relaxed) < file->gave_up;
}

/* 1: somebody waits from now on; 0: all is here; or -errno. */
static int ask_locked(struct file *file, uint64_t off, uint64_t len, struct waiter *waiter,
                      struct wait *w)
{
    enum run_why why = waiter && waiter->ahead ? RUN_AHEAD : RUN_DEMAND;
    uint64_t first = w->blocks.first, end = w->blocks.end;
    struct stage *stage = file->stage;
    int r;

    lock_assert_held(&stage->lock);
    if (stage->ending)
        return -EINTR;
    if (atomic_load(&file->failed) < 0)
        return atomic_load(&file->failed);
    w->left = count_missing(file, first, end);
    if (!w->left)
        return 0;
    if (has_given_up(file, w))
        return -EREMOTEIO;
    runs_hurry_locked(file, first, end, why);
    r = runs_make_locked(file, first, end, DEMAND_BYTES, why, false);
    if (r < 0)
        return r; /* what was made before that goes on */
    if (waiter)
        wait_begin_locked(w, file, waiter);
    if (why == RUN_DEMAND)
        ahead_locked(file, off, len);
    stage_kick_locked(stage);
    return 1;
}

static void stage_fetch(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter)
{
    struct file *file = file_of(blob);
    struct stage *stage = file->stage;
    struct wait *w = calloc(1, sizeof(*w));
    struct diag reason = DIAG_INIT;
    int r = w && len ? file_take(file, &reason) : len ? -ENOMEM : -EINVAL;

    if (r < 0) {
        free(w);
        if (waiter && len) {
            waiter_add(waiter);
            waiter_done(waiter, r, &reason);
        }
        return;
    }
    w->blocks.first = off / file->block_bytes;
    w->blocks.end = ceil_div(off + len, file->block_bytes);
    look_at_blocks(file, w->blocks.first, w->blocks.end);
    lock_take(&stage->lock);
    r = ask_locked(file, off, len, waiter, w);
    if (r == -EREMOTEIO)
        reason = stage->trouble;
    lock_drop(&stage->lock);
    if (r <= 0 || !waiter)
        free(w);
    if (r < 0 && waiter) {
        waiter_add(waiter);
        waiter_done(waiter, r, reason.set ? &reason : NULL);
    }
    runs_start(stage);
    file_put(file);
}

/* ---- the rest of a blob ---- */

/* All of a block has been used. */
static void pass_block(struct file *file, uint64_t block)
{
    bool is_here;

    lock_take(&file->stage->lock);
    atomic_fetch_or(&file->state[block], BLOCK_PASSED);
    atomic_fetch_and(&file->state[block], (uint8_t)~BLOCK_AGAIN);
    is_here = file_state(file, block) == BLOCK_HERE;
    lock_drop(&file->stage->lock);
    if (is_here)
        drop_blocks(file, block, 1);
}

/* keep=once: these bytes have been used. Of a block that is here only because it was used again
 * nothing is waited for any more. */
static void stage_used(const struct blob *blob, uint64_t off, uint64_t len, bool again)
{
    struct file *file = file_of(blob);

    if (!file->used || file_take(file, NULL) < 0)
        return;
    while (len) {
        uint64_t block = off / file->block_bytes, end = (block + 1) * file->block_bytes;
        uint32_t n = (uint32_t)min_u64(len, end - off), total = file_block_len(file, block);
        uint32_t before = again ? 0 : atomic_fetch_add(&file->used[block], n);

        if (again ? file_was_used_up(file, block) : before < total && before + n >= total)
            pass_block(file, block);
        off += n;
        len -= n;
    }
    file_put(file);
}

/* Unpacked, say: it is not staged any more, and what is there makes room. */
static void stage_done(const struct blob *blob)
{
    struct file *file = file_of(blob);

    if (atomic_exchange(&file->done, true))
        return;
    atomic_fetch_sub(&file->stage->counters.total_bytes, blob->size);
    if (!file->blocks || file_take(file, NULL) < 0)
        return;
    drop_blocks(file, 0, file->blocks);
    file_put(file);
}

static int stage_check(const struct blob *blob)
{
    (void)blob; /* each block is of the one version, or is not here */
    return 0;
}

static int stage_identity(const struct blob *blob, char **ret)
{
    const struct file *file = file_of(blob);

    return asprintf(ret, "%s %s", file->key, file->version_text) < 0 ? -ENOMEM : 0;
}

static void stage_blob_free(struct blob *blob)
{
    (void)blob; /* the stage owns its files: runs may still use them */
}

const struct blob_ops stage_blob_ops = {
    .pread = stage_pread,
    .check = stage_check,
    .identity = stage_identity,
    .free = stage_blob_free,
    .fetch = stage_fetch,
    .used = stage_used,
    .done = stage_done,
    .pread_many = stage_pread_many,
};
