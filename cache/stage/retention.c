/* When there is no space, drop the blocks that are needed last (Belady's rule).
 *
 * Disk and memory (cache/stage/overflow.h) are one cache for this. A victim is needed last of all
 * blocks in both; a new block takes its place, on disk or in memory. Blocks never move between the
 * two.
 *
 * Victims are listed in passes: a pass looks at all blocks on disk and lists the few that are
 * needed latest. Drops take victims from the list until it is used up; then the next pass begins. A
 * listed block can only be needed later than the list says, unless a reader jumps: then the list is
 * discarded. The list has one flaw: blocks used since might be better victims. So it is short.
 *
 * The stage asks the forecast of needs as seldom as it can. Its answer for a block stays right
 * until that time has passed, so the answers that have passed are the smallest remembered times. A
 * pass asks for a few sample blocks to find how far the past reaches, then for all blocks below
 * that. Every ASK_ALL passes it asks for all blocks.
 *
 * A reader that waits always gets space. A block fetched ahead may displace only blocks needed
 * later than itself, and only so many bytes at a time until they are used. Without such a limit,
 * look-ahead fills the cache with what is needed soonest: each used block is displaced by one
 * needed sooner than it, and of a large set little lasts from one epoch to the next. By Belady's
 * rule most of the cache is what lasts.
 *
 * The forecast of needs is called with no lock held. stage->lock guards the list; `listing` lets
 * one thread at a time make it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "cache/stage/latest.h"
#include "cache/stage/parts.h"

#define LIST_SHARE  512 /* the list has this part of the blocks on disk, the latest, ... */
#define LIST_LEAST  4   /* ... or at least this many */
#define GROUP       256 /* victims dropped together, ... */
#define GROUP_BYTES (UINT64_C(1) << 20) /* ... at least this many bytes more than needed, ... */
#define GROUP_SHARE 1024                /* ... but at most this part of the bytes on disk */
#define ASK_ALL     256                 /* every so many passes, ask for all blocks */
#define TRIES       16
#define AHEAD_MOST  4096 /* runs */
#define AHEAD_SHARE 32   /* part of the bytes on disk that look-ahead may displace, at least ... */
#define AHEAD_LIMIT 8    /* ... and at most */
#define SECOND      INT64_C(1000000000)

struct displaced {
    struct stage_need need;
    uint64_t when, bytes;
};

static const struct stage_needs *needs_of(struct stage *stage)
{
    return stage->options.keep != STAGE_PIN ? atomic_load(&stage->forecast.needs) : NULL;
}

/* ---- the list ---- */

static bool is_kept(const struct victim *v)
{
    return v->in_memory ? overflow_has(&v->file->stage->overflow, v->file, v->block)
                        : file_is_on_disk(v->file, v->block);
}

static int by_place(const void *a, const void *b)
{
    return latest_by_place(a, b);
}

/* Make a new list, or wait for the thread that makes one. all: ignore remembered times. */
static void list_victims(struct stage *stage, const struct stage_needs *needs, bool all)
{
    struct keeping *k = &stage->keeping;
    struct victim *list;
    struct file *files;
    uint64_t jumps;
    size_t on_disk, capacity, n = 0;

    lock_take(&stage->lock);
    if (k->listing) {
        while (k->listing)
            lock_wait(&stage->lock, &stage->gone);
        lock_drop(&stage->lock);
        return;
    }
    k->listing = true;
    jumps = stage->forecast.jumps;
    files = stage->files;
    all = all || jumps != k->jumps || k->passes++ % ASK_ALL == 0;
    lock_drop(&stage->lock);
    on_disk = latest_count(files);
    capacity =
        (size_t)max_u64((on_disk + overflow_count(&stage->overflow)) / LIST_SHARE, LIST_LEAST);
    list = calloc(capacity, sizeof(*list));
    if (list)
        n = latest_find(stage, needs, files, all ? 0 : on_disk, list, capacity);
    lock_take(&stage->lock);
    free(k->victim);
    k->victim = list;
    k->n = n;
    k->at = 0;
    k->jumps = jumps;
    k->listed_at = stage_now(stage);
    k->listing = false;
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
}

/* ---- victims ---- */

/* Bytes that must be dropped from disk, or from memory: what comes gets its place in one of
 * them. */
struct wanted {
    uint64_t on_disk, in_memory; /* in_memory UINT64_MAX: memory is too small */
};

static struct wanted wanted_for(struct stage *stage, uint64_t bytes)
{
    uint64_t left = overflow_left(&stage->overflow);

    return (struct wanted){
        .on_disk = bytes,
        .in_memory = bytes > stage->overflow.most ? UINT64_MAX : bytes - min_u64(bytes, left),
    };
}

/* Take victims needed later than `when` from the list, until there is a place. *ret_old: a new list
 * may have some, or better ones. */
static size_t take_listed(struct stage *stage, struct wanted wanted, uint64_t when,
                          struct victim ret[static GROUP], bool *ret_old)
{
    struct keeping *k = &stage->keeping;
    size_t n = 0;
    LOCK_SCOPE(&stage->lock);

    if (k->jumps != stage->forecast.jumps)
        k->at = k->n;
    while (k->at < k->n && n < GROUP && wanted.on_disk && wanted.in_memory &&
           k->victim[k->at].when > when) {
        const struct victim *v = &k->victim[k->at++];
        uint64_t *bytes = v->in_memory ? &wanted.in_memory : &wanted.on_disk;

        if (*bytes == UINT64_MAX || !is_kept(v))
            continue;
        ret[n++] = *v;
        *bytes -= min_u64(*bytes, file_block_len(v->file, v->block));
    }
    *ret_old = k->at == k->n || stage_now(stage) - k->listed_at > SECOND;
    return n;
}

/* Remove victims that are needed sooner than listed: they stay. */
static size_t check_again(const struct stage_needs *needs, struct victim *group, size_t n)
{
    uint64_t when[LATEST_TOGETHER];
    size_t left = 0;

    for (size_t from = 0, some; from < n; from += some) {
        some = (size_t)min_u64(n - from, LATEST_TOGETHER);
        latest_times(needs, some, group + from, when);
        for (size_t i = 0; i < some; i++)
            if (when[i] >= group[from + i].when)
                group[left++] = group[from + i];
    }
    return left;
}

/* Drop the victims in memory at once; return how many are left. */
static size_t drop_from_memory(struct stage *stage, struct victim *group, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        if (group[i].in_memory)
            overflow_remove(&stage->overflow, group[i].file, group[i].block);
        else
            group[left++] = group[i];
    }
    return left;
}

static void drop_of_file(struct stage *stage, const struct victim *group, size_t n)
{
    struct file *file = group->file;
    struct staged_range range[GROUP];
    size_t ranges = 0;

    for (size_t i = 0; i < n; i++) {
        if (ranges && range[ranges - 1].first + range[ranges - 1].n == group[i].block)
            range[ranges - 1].n++;
        else
            range[ranges++] = (struct staged_range){group[i].block, 1};
    }
    if (file_take(file, NULL) < 0)
        return;
    if (file_drop_ranges(file, range, ranges) == -EOPNOTSUPP) {
        LOCK_SCOPE(&stage->lock);

        stage->keeping.cannot = true;
    }
    file_put(file);
}

static void drop_group(struct stage *stage, struct victim *group, size_t n)
{
    n = drop_from_memory(stage, group, n);
    qsort(group, n, sizeof(*group), by_place);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && group[to].file == group[from].file; to++)
            continue;
        drop_of_file(stage, group + from, to - from);
    }
}

/* Drop `bytes` bytes of disk or of memory, in blocks needed later than `when`. False: there are
 * none. */
static bool make_room(struct stage *stage, const struct stage_needs *needs, uint64_t bytes,
                      uint64_t when)
{
    struct victim group[GROUP];
    unsigned tries = 0;
    bool old;
    size_t n;

    for (;;) {
        size_t listed = take_listed(stage, wanted_for(stage, bytes), when, group, &old);

        n = check_again(needs, group, listed);
        if (n)
            break;
        if (listed) /* needed sooner than the list says; it may have others */
            continue;
        if (!old || tries == 2)
            return false;
        list_victims(stage, needs, tries++);
    }
    drop_group(stage, group, n);
    return true;
}

/* What this stage's blocks may take. */
static uint64_t own_limit(const struct stage *stage)
{
    uint64_t limit = quota_limit(stage->quota);

    return stage->options.own_limit ? min_u64(limit, stage->options.own_limit) : limit;
}

/* Blocks that are coming are not counted in own_limit: they are few. */
static int take_quota(struct stage *stage, uint64_t bytes)
{
    uint64_t staged = atomic_load_explicit(&stage->counters.staged_bytes, memory_order_relaxed);

    if (stage->options.own_limit && staged + bytes > stage->options.own_limit)
        return -ENOSPC;
    return quota_take(stage->quota, bytes);
}

/* Take a place on disk, or in memory. */
static int take_place(struct stage *stage, uint64_t bytes)
{
    int r = take_quota(stage, bytes);

    return r == -ENOSPC && overflow_left(&stage->overflow) >= bytes ? KEEP_IN_MEMORY : r;
}

int keep_take_quota(struct stage *stage, uint64_t bytes, uint64_t when)
{
    const struct stage_needs *needs = needs_of(stage);
    uint64_t staged, more;
    int r;

    if (!needs || when == STAGE_NEVER)
        return take_quota(stage, bytes);
    r = take_place(stage, bytes);
    if (r != -ENOSPC)
        return r;
    staged = atomic_load_explicit(&stage->counters.staged_bytes, memory_order_relaxed);
    more = min_u64(GROUP_BYTES, staged / GROUP_SHARE);
    if (bytes > own_limit(stage) / 2)
        return r;
    for (unsigned i = 0; i < TRIES && r == -ENOSPC; i++) {
        bool may;

        lock_take(&stage->lock);
        stage->keeping.is_full = true;
        may = !stage->keeping.cannot && !stage->ending;
        lock_drop(&stage->lock);
        if (!may || !make_room(stage, needs, bytes + more, when))
            break;
        r = take_place(stage, bytes);
    }
    return r;
}

void keep_prepare(struct stage *stage)
{
    const struct stage_needs *needs = needs_of(stage);
    struct keeping *k = &stage->keeping;
    bool low;

    if (!needs)
        return;
    lock_take(&stage->lock);
    low = k->is_full && !k->cannot && !stage->ending &&
          (k->jumps != stage->forecast.jumps || k->n - k->at < k->n / 4);
    lock_drop(&stage->lock);
    if (low)
        list_victims(stage, needs, false);
}

void keep_release(struct keeping *keeping)
{
    free(keeping->victim);
    free(keeping->ahead);
}

/* ---- ahead ---- */

bool keep_holds_all(struct stage *stage, int64_t now)
{
    struct keeping *k = &stage->keeping;
    uint64_t total, staged, used, others;
    bool holds;

    if (!atomic_load(&stage->forecast.needs))
        return true;
    lock_take(&stage->lock);
    holds = k->holds_all;
    if (k->holds_at && now - k->holds_at < SECOND) {
        lock_drop(&stage->lock);
        return holds;
    }
    lock_drop(&stage->lock);
    total = atomic_load(&stage->counters.total_bytes);
    staged = atomic_load(&stage->counters.staged_bytes);
    used = quota_used(stage->quota);
    others = used > staged ? used - staged : 0;
    holds = total + total / 32 + others <= quota_limit(stage->quota) &&
            total + total / 32 <= own_limit(stage);
    LOCK_SCOPE(&stage->lock);

    k->holds_all = holds;
    k->holds_at = now;
    return holds;
}

/* Forget displacements whose bytes readers have used since: the forecast of needs gives a later
 * time for them. */
static void pass_used(struct stage *stage, const struct stage_needs *needs)
{
    struct keeping *k = &stage->keeping;
    uint64_t jumps;

    lock_take(&stage->lock);
    jumps = stage->forecast.jumps;
    lock_drop(&stage->lock);
    if (jumps != k->ahead_jumps)
        k->ahead_n = k->ahead_bytes = 0;
    k->ahead_jumps = jumps;
    while (k->ahead_n) {
        const struct displaced *d = &k->ahead[k->ahead_at];

        if (needs->when(needs->ctx, d->need.blob, d->need.off, d->need.len) <= d->when)
            break;
        k->ahead_bytes -= d->bytes;
        k->ahead_at = (k->ahead_at + 1) % AHEAD_MOST;
        k->ahead_n--;
    }
}

uint64_t keep_ahead_left(struct stage *stage)
{
    const struct stage_needs *needs = needs_of(stage);
    struct keeping *k = &stage->keeping;
    uint64_t staged = atomic_load(&stage->counters.staged_bytes), most, worth;
    bool is_full;

    if (!needs)
        return UINT64_MAX;
    lock_take(&stage->lock);
    is_full = k->is_full;
    worth = runs_worth_locked(stage);
    lock_drop(&stage->lock);
    if (!is_full)
        return UINT64_MAX;
    pass_used(stage, needs);
    most = max_u64(staged / AHEAD_SHARE, 2 * stage->options.jobs * worth);
    most = max_u64(min_u64(most, staged / AHEAD_LIMIT), 1);
    return k->ahead_bytes < most && k->ahead_n < AHEAD_MOST ? most - k->ahead_bytes : 0;
}

int keep_take_ahead(struct stage *stage, const struct stage_need *need, uint64_t bytes)
{
    const struct stage_needs *needs = needs_of(stage);
    struct keeping *k = &stage->keeping;
    uint64_t when;
    bool is_full;
    int r;

    if (!needs)
        return take_quota(stage, bytes);
    if (!k->ahead)
        k->ahead = calloc(AHEAD_MOST, sizeof(*k->ahead));
    if (!k->ahead)
        return -ENOMEM;
    when = needs->when(needs->ctx, need->blob, need->off, need->len);
    r = keep_take_quota(stage, bytes, need->when);
    lock_take(&stage->lock);
    is_full = k->is_full;
    lock_drop(&stage->lock);
    if (r >= 0 && is_full && k->ahead_n < AHEAD_MOST) {
        k->ahead[(k->ahead_at + k->ahead_n++) % AHEAD_MOST] =
            (struct displaced){.need = *need, .when = when, .bytes = bytes - RUN_OVERHEAD};
        k->ahead_bytes += bytes - RUN_OVERHEAD;
    }
    return r;
}
