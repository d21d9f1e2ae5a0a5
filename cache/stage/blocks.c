/* Which of a file's blocks are cached, as far as we know; its staged file, open or closed; and the
 * blocks that other processes fetch.
 *
 * Invariants:
 *  1. A HERE block was on disk with the right checksum when the staged file's count of drops was
 *     store->drops. So bytes that were read are valid if the count is the same after the read.
 *  2. Where the count is unknown (UINT64_MAX: the file was cut short, and could not be begun again,
 *     or others use it for another key) no block is HERE: fetched blocks become overflow blocks.
 *  3. is_open changes with stage->lock held, and to false only while users is 0. So a thread that
 *     adds a user and then sees is_open may use `staged`; see file_take() and close_locked().
 *  4. When a file is closed its blocks become UNKNOWN: another process may change it. */
#include "cache/stage/blocks.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>

#include "base/scope.h"
#include "cache/stage/needs.h"

#define OPEN_MOST    1024
#define DROP_MS      20 /* how long a reader waits for this process to end a drop */
#define RECORDS      512
#define ELSEWHERE_MS 5  /* between two looks at the blocks that others fetch */
#define UNWAITED_MS  50 /* the same, if no reader here waits for them */
#define STEAL_S      5  /* how long others may give no sign of life */
#define AGAIN_S      5  /* how long a file is in memory before the disk is tried again */

struct block_store {
    struct file *file;
    _Atomic uint64_t drops;   /* drops of the staged file when the states were right */
    _Atomic uint64_t counted; /* bytes of blocks that are BLOCK_COUNTED */
    _Atomic unsigned users;   /* threads and runs that use `staged` */
    _Atomic bool is_open;
    _Atomic bool recent;  /* used since close_some_locked() last looked at it */
    _Atomic bool steals;  /* the other process shows no sign of life: we fetch its blocks */
    struct staged staged; /* constant while it is open */
    /* Guarded by stage->lock: */
    bool opening, in_elsewhere;
    int open_error;                     /* of the last try to open its staged file, */
    int64_t opened_at;                  /* and when that was */
    TAILQ_ENTRY(block_store) open_link; /* in open_files, while it is open */
    TAILQ_ENTRY(block_store) elsewhere_link;
    uint64_t coming, elsewhere; /* blocks in that state */
    unsigned dropping;          /* drops under way */
    int64_t elsewhere_since;    /* when an ELSEWHERE block last came */
};

TAILQ_HEAD(store_list, block_store);

struct open_files {
    unsigned most; /* descriptors; constant */
    /* Guarded by stage->lock: */
    unsigned n;
    struct store_list open;      /* the least recently looked at first: close_some_locked() */
    struct store_list elsewhere; /* files with blocks that other processes fetch */
};

int open_files_init(struct stage *stage)
{
    struct open_files *open_files = stage->open_files = calloc(1, sizeof(*open_files));
    struct rlimit files = {.rlim_cur = 64};

    if (!open_files)
        return -ENOMEM;
    getrlimit(RLIMIT_NOFILE, &files);
    open_files->most = (unsigned)max_u64(min_u64(OPEN_MOST, (uint64_t)files.rlim_cur / 8), 4);
    TAILQ_INIT(&open_files->open);
    TAILQ_INIT(&open_files->elsewhere);
    return 0;
}

int block_store_init(struct file *file)
{
    file->state = calloc(file->blocks ? file->blocks : 1, sizeof(*file->state));
    file->store = calloc(1, sizeof(*file->store));
    if (!file->state || !file->store)
        return -ENOMEM;
    file->store->file = file;
    return 0;
}

/* Remove the staged file of a closed file that has no version: no later mount can use it. Stays if
 * another process uses it. */
static void remove_unversioned(const struct file *file)
{
    char path[PATH_MAX];

    if (!remote_version_is_known(&file->version) && !file->has_sha256 && *file->store->staged.id &&
        snprintf(path, sizeof(path), "%s/staged/%s", file->stage->cache->path,
                 file->store->staged.id) < (int)sizeof(path))
        staged_remove(&file->stage->cache->group, path);
}

void block_store_release(struct file *file)
{
    if (file->store && file->store->is_open)
        staged_close(&file->store->staged);
    if (file->store)
        remove_unversioned(file);
    free(file->store);
    free((void *)file->state);
}

const struct staged *file_staged(const struct file *file)
{
    return &file->store->staged;
}

uint64_t file_drops(const struct file *file)
{
    return atomic_load(&file->store->drops);
}

int file_open_error_locked(const struct file *file)
{
    lock_assert_held(&file->stage->lock);
    return file->store->open_error;
}

uint64_t file_counted(const struct file *file)
{
    return atomic_load(&file->store->counted);
}

/* ---- states ---- */

bool file_may_fetch(const struct file *file, uint64_t block)
{
    enum block_state state = file_state(file, block);

    return state == BLOCK_UNKNOWN || state == BLOCK_ABSENT ||
           (state == BLOCK_ELSEWHERE && file->store->steals);
}

void file_flag_locked(struct file *file, uint64_t block, uint8_t flag, bool on)
{
    uint8_t state = atomic_load(&file->state[block]);

    lock_assert_held(&file->stage->lock);
    state = (uint8_t)(on ? state | flag : state & ~flag);
    atomic_store_explicit(&file->state[block], state, memory_order_release);
}

static void count_staged_locked(struct file *file, uint64_t block, bool is_staged)
{
    uint8_t state = atomic_load(&file->state[block]);
    struct stage_counters *c = &file->stage->counters;
    uint64_t n = file_block_len(file, block), len = is_staged ? n : -n;

    lock_assert_held(&file->stage->lock);
    if (!(state & BLOCK_COUNTED) == !is_staged)
        return;
    file_flag_locked(file, block, BLOCK_COUNTED, is_staged);
    atomic_fetch_add(&c->staged_bytes, len);
    atomic_fetch_add(&file->store->counted, len);
}

void file_set_locked(struct file *file, uint64_t block, enum block_state state)
{
    uint8_t old = atomic_load(&file->state[block]);

    lock_assert_held(&file->stage->lock);
    file->store->coming += state == BLOCK_COMING;
    file->store->coming -= (old & BLOCK_STATE) == BLOCK_COMING;
    file->store->elsewhere += state == BLOCK_ELSEWHERE;
    file->store->elsewhere -= (old & BLOCK_STATE) == BLOCK_ELSEWHERE;
    atomic_store_explicit(&file->state[block], (uint8_t)((old & BLOCK_FLAGS) | state),
                          memory_order_release);
    file->stage->missed += state == BLOCK_ABSENT || state == BLOCK_UNKNOWN;
    if (state == BLOCK_HERE)
        count_staged_locked(file, block, true);
    else if (state == BLOCK_ABSENT)
        count_staged_locked(file, block, false);
}

enum block_state file_here(const struct file *file, uint64_t drops)
{
    if (drops == UINT64_MAX)
        return BLOCK_ABSENT;
    return atomic_load(&file->store->drops) == drops ? BLOCK_HERE : BLOCK_UNKNOWN;
}

/* Forget the states of all blocks except those that are coming. Those of which nothing is known are
 * not written, so that they take no memory. */
static void forget_blocks_locked(struct file *file)
{
    lock_assert_held(&file->stage->lock);
    for (uint64_t b = 0; b < file->blocks; b++)
        if (file_state(file, b) == BLOCK_HERE || file_state(file, b) == BLOCK_ABSENT)
            file_set_locked(file, b, BLOCK_UNKNOWN);
    file->stage->missed++;
}

/* ---- open and closed ---- */

static struct staged_key staged_key_of(const struct file *file)
{
    return (struct staged_key){file->blob.source, file->version_text, file->blob.size,
                               file->block_bytes};
}

/* A drop by this process ends in a moment: after that there is nothing to forget. */
static void await_drops_locked(struct file *file)
{
    const struct clock *clock = file->stage->options.clock;
    int64_t until = clock_monotonic(clock) + DROP_MS * NS_PER_MS;

    lock_assert_held(&file->stage->lock);
    while (file->store->dropping && clock_monotonic(clock) < until)
        clock_wait(clock, &file->stage->lock, &file->stage->gone, until);
}

void file_forget(struct file *file, uint64_t drops)
{
    const struct staged_key key = staged_key_of(file);
    uint64_t now = staged_mend(&file->store->staged, &key);
    LOCK_SCOPE(&file->stage->lock);

    await_drops_locked(file);
    if (atomic_load(&file->store->drops) != drops || now == drops)
        return;                 /* another thread was faster, or this process dropped the blocks */
    forget_blocks_locked(file); /* before: a HERE block is valid for the number in store->drops */
    atomic_store(&file->store->drops, now);
}

uint64_t file_drops_to_write(struct file *file)
{
    uint64_t drops = atomic_load(&file->store->drops);

    if (drops != UINT64_MAX && staged_drops(&file->store->staged) == UINT64_MAX)
        file_forget(file, drops);
    return atomic_load(&file->store->drops);
}

static void close_locked(struct file *file)
{
    lock_assert_held(&file->stage->lock);
    atomic_store(&file->store->is_open, false);
    if (atomic_load(&file->store->users)) { /* a user came in between */
        atomic_store(&file->store->is_open, true);
        return;
    }
    TAILQ_REMOVE(&file->stage->open_files->open, file->store, open_link);
    file->stage->open_files->n--;
    staged_close(&file->store->staged);
    forget_blocks_locked(file);
}

static bool is_in_use_locked(const struct file *file)
{
    lock_assert_held(&file->stage->lock);
    return atomic_load(&file->store->users) || file->store->coming ||
           needs_wait_locked(file, 0, file->blocks);
}

/* Close files that were not used lately if too many are open. */
static void close_some_locked(struct stage *stage)
{
    struct open_files *files = stage->open_files;
    unsigned looks = files->n;

    lock_assert_held(&stage->lock);
    while (files->n >= files->most && looks--) {
        struct file *file = TAILQ_FIRST(&files->open)->file;

        if (atomic_exchange(&file->store->recent, false) || is_in_use_locked(file)) {
            TAILQ_REMOVE(&stage->open_files->open, file->store, open_link);
            TAILQ_INSERT_TAIL(&stage->open_files->open, file->store, open_link);
        } else {
            close_locked(file);
        }
    }
}

void file_try_disk(struct file *file)
{
    LOCK_SCOPE(&file->stage->lock);

    if (atomic_load(&file->store->is_open) && file->store->staged.is_in_memory &&
        stage_now(file->stage) - file->store->opened_at >= AGAIN_S * NS_PER_S &&
        !is_in_use_locked(file))
        close_locked(file);
}

static int open_staged(struct file *file, struct diag *d)
{
    struct stage *stage = file->stage;
    const struct staged_key key = staged_key_of(file);
    struct diag why = DIAG_INIT;
    int r = staged_open(&file->store->staged, stage->cache, &key, &why);

    if (r == -EBUSY || r == -ETIMEDOUT)
        stage_tell_early(stage, r, &why);
    if (r == -ENOSPC || r == -EDQUOT || r == -ETIMEDOUT || r == -EBUSY) /* served, not staged */
        r = staged_open_in_memory(&file->store->staged, &key, &why);
    if (r == 0)
        atomic_store(&file->store->drops, staged_drops(&file->store->staged));
    lock_take(&stage->lock);
    if (r < 0 || file->store->open_error < 0)
        file_set_trouble_locked(file, r < 0 ? diag_text(&why, r) : NULL);
    file->store->open_error = r;
    file->store->opened_at = stage_now(stage);
    if (r == 0) {
        close_some_locked(stage);
        TAILQ_INSERT_TAIL(&stage->open_files->open, file->store, open_link);
        stage->open_files->n++;
        atomic_store(&file->store->is_open, true);
    }
    file->store->opening = false;
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : 0;
}

int file_take(struct file *file, struct diag *d)
{
    struct stage *stage = file->stage;
    bool must_open;
    int r;

    atomic_fetch_add(&file->store->users, 1);
    if (!atomic_load(&file->store->recent))
        atomic_store_explicit(&file->store->recent, true, memory_order_relaxed);
    if (atomic_load(&file->store->is_open))
        return 0;
    lock_take(&stage->lock);
    while (file->store->opening)
        lock_wait(&stage->lock, &stage->gone);
    must_open = !atomic_load(&file->store->is_open);
    file->store->opening = must_open;
    lock_drop(&stage->lock);
    if (!must_open)
        return 0;
    r = open_staged(file, d);
    if (r < 0)
        file_put(file);
    return r;
}

void file_keep(struct file *file)
{
    atomic_fetch_add(&file->store->users, 1);
}

void file_put(struct file *file)
{
    atomic_fetch_sub(&file->store->users, 1);
}

/* ---- looking ---- */

bool file_block_is_good(const struct file *file, uint64_t block, uint64_t record, uint8_t *buf)
{
    int r = staged_read(&file->store->staged, buf, file_block_len(file, block),
                        block * file->block_bytes);

    return r == 0 && staged_checksum(&file->store->staged, block, buf) == record;
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
    if (atomic_load(&file->store->drops) == UINT64_MAX)
        memset(ret, 0, n * sizeof(*ret));
    else
        staged_records(&file->store->staged, first, n, ret);
}

static bool is_known(const struct file *file, uint64_t block)
{
    enum block_state state = file_state(file, block);

    return state == BLOCK_HERE || state == BLOCK_COMING;
}

static void note_drop_locked(struct file *file, const struct staged_dropped *dropped)
{
    lock_assert_held(&file->stage->lock);
    if (dropped->before != UINT64_MAX && atomic_load(&file->store->drops) == dropped->before)
        atomic_store(&file->store->drops, dropped->after);
}

void file_drops_locked(struct file *file, int change, const struct staged_dropped *what)
{
    lock_assert_held(&file->stage->lock);
    if (what)
        note_drop_locked(file, what);
    file->store->dropping += (unsigned)change;
    pthread_cond_broadcast(&file->stage->gone);
}

/* The block does not match its record: drop it, unless it is being written right now. */
static void drop_bad(struct file *file, uint64_t block)
{
    struct stage *stage = file->stage;
    uint64_t mark = quota_mark(stage->quota);
    struct staged_dropped dropped;

    atomic_fetch_add(&stage->counters.bad_blocks, 1);
    if (staged_drop_bad(&file->store->staged, block, &dropped) < 0)
        return;
    quota_freed(stage->quota, dropped.freed, mark);
    LOCK_SCOPE(&stage->lock);

    /* It may have been fetched again, and found good by another thread, before it was dropped. */
    if (file_state(file, block) == BLOCK_HERE)
        file_set_locked(file, block, BLOCK_UNKNOWN);
    note_drop_locked(file, &dropped);
}

/* Look at a block whose state is uncertain. drops: file->store->drops before the record was read.
 * buf: space for one block, allocated when it is needed. */
static void look_at_block(struct file *file, uint64_t block, uint64_t record, uint64_t drops,
                          uint8_t **buf)
{
    bool here = false;
    uint64_t again;

    if (record) {
        if (!*buf)
            *buf = malloc(file->block_bytes);
        here = *buf && file_block_is_good(file, block, record, *buf);
        if (*buf && !here) /* another record: it was dropped while it was read, and is not bad */
            staged_records(&file->store->staged, block, 1, &again);
        if (*buf && !here && again == record)
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
        drops = atomic_load(&file->store->drops);
        read_records(file, first, n, record);
        for (size_t i = 0; i < n; i++)
            if (!is_known(file, first + i))
                look_at_block(file, first + i, record[i], drops, &buf);
        first += n;
    }
}

uint64_t find_missing(struct file *file, uint64_t from, uint64_t to, bool *ret_others)
{
    uint64_t record[RECORDS];

    for (uint64_t at = from; at < to && !file->stage->ending; at += RECORDS) {
        size_t n = (size_t)min_u64(RECORDS, to - at);

        read_records(file, at, n, record);
        LOCK_SCOPE(&file->stage->lock);

        for (size_t i = 0; i < n; i++) {
            enum block_state state = file_state(file, at + i);

            if (ret_others && !record[i] && file_is_free(file, at + i))
                return at + i;
            if (record[i] && state != BLOCK_COMING)
                count_staged_locked(file, at + i, true);
            if (ret_others && (state == BLOCK_COMING || state == BLOCK_ELSEWHERE))
                *ret_others = true;
        }
    }
    return to;
}

bool file_count(struct file *file)
{
    if (!file->blocks || file_take(file, NULL) < 0)
        return false;
    find_missing(file, 0, file->blocks, NULL);
    file_put(file);
    return true;
}

/* ---- what other processes fetch ---- */

/* Until they have come, or the others' claims have ended, or the others have given no sign of life
 * for too long. */
void file_leave_to_others_locked(struct file *file, uint64_t first, uint64_t end)
{
    struct block_store *store = file->store;

    lock_assert_held(&file->stage->lock);
    if (!store->elsewhere) { /* else the others are watched already */
        store->elsewhere_since = stage_now(file->stage);
        store->steals = false;
    }
    for (uint64_t b = first; b < end; b++)
        if (file_state(file, b) == BLOCK_COMING)
            file_set_locked(file, b, BLOCK_ELSEWHERE);
    if (!store->in_elsewhere) {
        store->in_elsewhere = true;
        TAILQ_INSERT_HEAD(&file->stage->open_files->elsewhere, store, elsewhere_link);
    }
    stage_kick_locked(file->stage); /* the thread watches for these blocks */
}

static uint64_t next_elsewhere(const struct file *file, uint64_t from)
{
    while (from < file->blocks && file_state(file, from) != BLOCK_ELSEWHERE)
        from++;
    return from;
}

/* Look at the file's blocks that others fetch: some may have come, or claims may have ended. */
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
        file->store->elsewhere_since = now;
    file->store->steals = now - file->store->elsewhere_since > STEAL_S * NS_PER_S;
    lock_drop(&stage->lock);
    for (uint64_t b = next_elsewhere(file, 0), n; b < file->blocks;
         b = next_elsewhere(file, b + n)) {
        uint64_t free;

        for (n = 1; n < 32 && b + n < file->blocks && file_state(file, b + n) == BLOCK_ELSEWHERE;)
            n++;
        free = staged_unclaimed(&file->store->staged, b, n);
        LOCK_SCOPE(&stage->lock);

        for (uint64_t i = 0; i < free; i++)
            if (file_state(file, b + i) == BLOCK_ELSEWHERE)
                file_set_locked(file, b + i, BLOCK_UNKNOWN);
        needs_again_locked(file, b, b + (file->store->steals ? n : free));
    }
    file_put(file);
}

/* Look at all files. Returns when to look again. Others only add files, in front. */
int64_t look_at_others(struct stage *stage, int64_t now)
{
    struct store_list *elsewhere = &stage->open_files->elsewhere;
    bool waited = false, any;
    struct block_store *next;

    lock_take(&stage->lock);
    for (struct block_store *store = TAILQ_FIRST(elsewhere); store; store = next) {
        lock_drop(&stage->lock);
        look_elsewhere(store->file, now);
        lock_take(&stage->lock);
        next = TAILQ_NEXT(store, elsewhere_link);
        waited = waited || needs_wait_locked(store->file, 0, store->file->blocks);
        if (!store->elsewhere) {
            TAILQ_REMOVE(elsewhere, store, elsewhere_link);
            store->in_elsewhere = false;
        }
    }
    any = !TAILQ_EMPTY(elsewhere);
    lock_drop(&stage->lock);
    return any ? now + (waited ? ELSEWHERE_MS : UNWAITED_MS) * NS_PER_MS : INT64_MAX;
}
