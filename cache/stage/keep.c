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

#include "base/scope.h"
#include "cache/stage/blocks.h"
#include "cache/stage/policy.h"
#include "cache/stage/runs.h"

#define LIST_SHARE  512 /* the list has this part of the blocks on disk, the latest, ... */
#define LIST_LEAST  4   /* ... or at least this many */
#define GROUP       256 /* victims dropped together, ... */
#define GROUP_BYTES (UINT64_C(1) << 20) /* ... at least this many bytes more than needed, ... */
#define GROUP_SHARE 1024                /* ... but at most this part of the bytes on disk */
#define ASK_ALL     256                 /* every so many passes, ask for all blocks */
#define TRIES       16
#define AHEAD_RUNS  4096 /* runs */
#define AHEAD_SHARE 32   /* part of the bytes on disk that look-ahead may displace, at least ... */
#define AHEAD_LIMIT 8    /* ... and at most */
#define TOGETHER    64   /* blocks whose times are asked for together */
#define SAMPLES     256  /* blocks asked for to find which times have passed */

struct victim {
    struct file *file;
    uint64_t block, when;
    bool in_memory; /* otherwise on disk */
};

struct displaced {
    struct stage_need need;
    uint64_t when, bytes;
};

struct keeping {
    _Atomic bool is_full;   /* a block had to be dropped */
    _Atomic bool cannot;    /* the file system cannot drop blocks */
    _Atomic bool holds_all; /* the cache has space for all of the source */
    /* Guarded by stage->lock: */
    struct victim *victim; /* [n], the latest need first; those before `at` have been taken */
    size_t n, at;
    uint64_t jumps;    /* jumps of the forecast of needs when the victims were listed */
    int64_t listed_at; /* stage_now() */
    unsigned passes;   /* lists made */
    bool listing;      /* a thread makes the list */
    /* Belong to the stage's thread: when holds_all was computed; blocks that it fetched in the
     * place of others, not used yet; the next of these, if its run starts. */
    int64_t holds_at;
    struct displaced *ahead; /* [AHEAD_RUNS], a ring; NULL: none */
    struct displaced next;
    size_t ahead_at, ahead_n;
    uint64_t ahead_bytes, ahead_jumps;
};

static const struct stage_needs *needs_of(struct stage *stage)
{
    return stage->options.keep != STAGE_PIN ? atomic_load(&stage->forecast) : NULL;
}

/* ---- the blocks that are needed latest, of those on disk and in memory ---- */

/* Count the blocks on disk. Blocks that this process has not looked at may be there as well: each
 * file is looked at once, by the thread that makes the list. */
static size_t latest_count(struct stage *stage)
{
    size_t n = 0;

    for (struct file *file = stage->files; file; file = file->next) {
        file->surveyed = file->surveyed || file_count(file);
        for (uint64_t b = 0; b < file->blocks; b++)
            n += file_is_on_disk(file, b);
    }
    return n;
}

static int by_place(const void *a, const void *b)
{
    const struct victim *va = a, *vb = b;

    if (va->file != vb->file)
        return (uintptr_t)va->file < (uintptr_t)vb->file ? -1 : 1;
    return va->block < vb->block ? -1 : va->block > vb->block;
}

static int latest_first(const void *a, const void *b)
{
    const struct victim *va = a, *vb = b;

    return va->when != vb->when ? (va->when > vb->when ? -1 : 1) : by_place(a, b);
}

/* Blocks with remembered times smaller than this must be asked for again. */
static uint64_t passed_before(const struct stage_needs *needs, struct stage *stage, size_t on_disk)
{
    struct victim sample[SAMPLES];
    size_t step = on_disk / SAMPLES + 1, i = 0, n = 0, low = 0, high;

    for (struct file *file = stage->files; file; file = file->next)
        for (uint64_t b = 0; b < file->blocks && n < SAMPLES; b++)
            if (file_is_on_disk(file, b) && i++ % step == 0)
                sample[n++] = (struct victim){.file = file, .block = b, .when = file->when[b]};
    qsort(sample, n, sizeof(*sample), latest_first);
    for (high = n; low < high;) { /* unchanged before `low`, changed from `high` on */
        size_t middle = low + (high - low) / 2;
        const struct victim *v = &sample[middle];

        if (stage_when(needs, &v->file->blob, v->block * v->file->block_bytes,
                       file_block_len(v->file, v->block)) == v->when)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? sample[low - 1].when : UINT64_MAX;
}

/* The latest blocks so far, and some whose times have to be asked for. */
struct latest {
    const struct stage_needs *needs;
    uint64_t passed;       /* remembered times below this may have passed */
    uint64_t least;        /* those that are needed no later are not among them; 0: all are */
    struct victim *victim; /* [2 * capacity] */
    size_t n, capacity;
    struct victim asked[TOGETHER];
    size_t n_asked;
};

/* Put the latest ones in order, and drop the others. */
static void latest_cull(struct latest *l)
{
    qsort(l->victim, l->n, sizeof(*l->victim), latest_first);
    if (l->n < l->capacity)
        return;
    l->n = l->capacity;
    l->least = l->victim[l->n - 1].when;
}

static void latest_offer(struct latest *l, struct victim v)
{
    if (l->least && v.when <= l->least)
        return;
    l->victim[l->n++] = v;
    if (l->n == 2 * l->capacity)
        latest_cull(l);
}

/* Ask for the times of n <= TOGETHER blocks. */
static void latest_times(const struct stage_needs *needs, size_t n, const struct victim *v,
                         uint64_t ret[static TOGETHER])
{
    struct stage_need need[TOGETHER];

    for (size_t i = 0; i < n; i++)
        need[i] = (struct stage_need){.blob = &v[i].file->blob,
                                      .off = v[i].block * v[i].file->block_bytes,
                                      .len = file_block_len(v[i].file, v[i].block)};
    needs->when(needs->ctx, n, need);
    for (size_t i = 0; i < n; i++)
        ret[i] = need[i].when;
}

static void ask_latest(struct latest *l)
{
    uint64_t when[TOGETHER];

    latest_times(l->needs, l->n_asked, l->asked, when);
    for (size_t i = 0; i < l->n_asked; i++) {
        struct victim *v = &l->asked[i];

        v->file->when[v->block] = v->when = when[i];
        latest_offer(l, *v);
    }
    l->n_asked = 0;
}

/* Take a block into account; ask for its time only if the remembered one may have passed. */
static void add_latest(struct latest *l, struct victim v)
{
    v.when = v.file->when[v.block];
    if (v.when && v.when >= l->passed && l->passed != UINT64_MAX) {
        latest_offer(l, v);
        return;
    }
    l->asked[l->n_asked++] = v;
    if (l->n_asked == TOGETHER)
        ask_latest(l);
}

/* List the capacity >= 1 blocks that are needed latest, the latest first; ret has space for twice
 * as many. remembered: how many blocks are on disk; 0: ask for all times again. Returns how many
 * are listed. */
static size_t latest_find(struct stage *stage, const struct stage_needs *needs, size_t remembered,
                          struct victim *ret, size_t capacity)
{
    AUTO_FREE struct overflow_place *place = NULL;
    size_t places = overflow_list(stage->overflow, &place);
    struct latest latest = {.needs = needs, .victim = ret, .capacity = capacity};

    latest.passed = remembered ? passed_before(needs, stage, remembered) : UINT64_MAX;
    for (struct file *file = stage->files; file && !stage->ending; file = file->next)
        for (uint64_t b = 0; b < file->blocks; b++)
            if (file_is_on_disk(file, b))
                add_latest(&latest, (struct victim){.file = file, .block = b});
    for (size_t i = 0; i < places && !stage->ending; i++)
        add_latest(&latest, (struct victim){.file = (struct file *)(uintptr_t)place[i].owner,
                                            .block = place[i].block,
                                            .in_memory = true});
    ask_latest(&latest);
    latest_cull(&latest);
    return latest.n;
}

/* ---- the list ---- */

static bool is_kept(const struct victim *v)
{
    return v->in_memory ? overflow_has(v->file->stage->overflow, v->file, v->block)
                        : file_is_on_disk(v->file, v->block);
}

/* Make a new list, or wait for the thread that makes one. all: ignore remembered times. */
static void list_victims(struct stage *stage, const struct stage_needs *needs, bool all)
{
    struct keeping *k = stage->keeping;
    struct victim *list;
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
    jumps = stage->jumps;
    all = all || jumps != k->jumps || k->passes++ % ASK_ALL == 0;
    lock_drop(&stage->lock);
    on_disk = latest_count(stage);
    capacity =
        (size_t)max_u64((on_disk + overflow_count(stage->overflow)) / LIST_SHARE, LIST_LEAST);
    list = calloc(2 * capacity, sizeof(*list));
    if (list)
        n = latest_find(stage, needs, all ? 0 : on_disk, list, capacity);
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
struct room_wanted {
    uint64_t on_disk, in_memory; /* in_memory UINT64_MAX: memory is too small */
};

static struct room_wanted wanted_for(struct stage *stage, uint64_t bytes)
{
    uint64_t left = overflow_left(stage->overflow);

    return (struct room_wanted){
        .on_disk = bytes,
        .in_memory =
            bytes > overflow_most(stage->overflow) ? UINT64_MAX : bytes - min_u64(bytes, left),
    };
}

/* Take victims needed later than `when` from the list, until there is a place. *ret_old: a new list
 * may have some, or better ones. */
static size_t take_listed(struct stage *stage, struct room_wanted wanted, uint64_t when,
                          struct victim ret[static GROUP], bool *ret_old)
{
    struct keeping *k = stage->keeping;
    size_t n = 0;
    LOCK_SCOPE(&stage->lock);

    if (k->jumps != stage->jumps)
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
    *ret_old = k->at == k->n || stage_now(stage) - k->listed_at > NS_PER_S;
    return n;
}

/* Remove victims that are needed sooner than listed. */
static size_t check_again(const struct stage_needs *needs, struct victim *group, size_t n)
{
    uint64_t when[TOGETHER];
    size_t left = 0;

    for (size_t from = 0, some; from < n; from += some) {
        some = (size_t)min_u64(n - from, TOGETHER);
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
            overflow_remove(stage->overflow, group[i].file, group[i].block);
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

    for (size_t i = 0; i < n; i++)
        ranges = ranges_of_blocks_add(range, ranges, group[i].block);
    if (file_take(file, NULL) < 0)
        return;
    if (file_drop_ranges(file, range, ranges) == -EOPNOTSUPP)
        stage->keeping->cannot = true;
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
    uint64_t staged = atomic_load(&stage->counters.staged_bytes);

    if (stage->options.own_limit && staged + bytes > stage->options.own_limit)
        return -ENOSPC;
    return quota_take(stage->quota, bytes);
}

/* Take a place on disk, or in memory. */
static int keep_take_place(struct stage *stage, uint64_t bytes)
{
    int r = take_quota(stage, bytes);

    return r == -ENOSPC && overflow_left(stage->overflow) >= bytes ? KEEP_IN_MEMORY : r;
}

int keep_take_quota(struct stage *stage, uint64_t bytes, uint64_t when)
{
    const struct stage_needs *needs = needs_of(stage);
    uint64_t more;
    int r;

    if (!needs || when == STAGE_NEVER)
        return take_quota(stage, bytes);
    r = keep_take_place(stage, bytes);
    if (r != -ENOSPC)
        return r;
    more = min_u64(GROUP_BYTES, atomic_load(&stage->counters.staged_bytes) / GROUP_SHARE);
    if (bytes > own_limit(stage) / 2)
        return r;
    for (unsigned i = 0; i < TRIES && r == -ENOSPC; i++) {
        stage->keeping->is_full = true;
        if (stage->keeping->cannot || stage->ending || !make_room(stage, needs, bytes + more, when))
            break;
        r = keep_take_place(stage, bytes);
    }
    return r;
}

void keep_prepare(struct stage *stage)
{
    const struct stage_needs *needs = needs_of(stage);
    struct keeping *k = stage->keeping;
    bool low;

    if (!needs)
        return;
    lock_take(&stage->lock);
    low = k->is_full && !k->cannot && !stage->ending &&
          (k->jumps != stage->jumps || k->n - k->at < k->n / 4);
    lock_drop(&stage->lock);
    if (low)
        list_victims(stage, needs, false);
}

/* ---- ahead ---- */

void keep_look(struct stage *stage, int64_t now)
{
    struct keeping *k = stage->keeping;
    uint64_t total, staged, used, others;

    if (!atomic_load(&stage->forecast) || (k->holds_at && now - k->holds_at < NS_PER_S))
        return;
    total = atomic_load(&stage->counters.total_bytes);
    staged = atomic_load(&stage->counters.staged_bytes);
    used = quota_used(stage->quota);
    others = used > staged ? used - staged : 0;
    k->holds_all = total + total / 32 + others <= quota_limit(stage->quota) &&
                   total + total / 32 <= own_limit(stage);
    k->holds_at = now;
}

/* Forget displacements whose bytes readers have used since: the forecast of needs gives a later
 * time for them. */
static void pass_used(struct stage *stage, const struct stage_needs *needs)
{
    struct keeping *k = stage->keeping;
    uint64_t jumps = stage->jumps;

    if (jumps != k->ahead_jumps)
        k->ahead_n = k->ahead_bytes = 0;
    k->ahead_jumps = jumps;
    while (k->ahead_n) {
        const struct displaced *d = &k->ahead[k->ahead_at];

        if (stage_when(needs, d->need.blob, d->need.off, d->need.len) <= d->when)
            break;
        k->ahead_bytes -= d->bytes;
        k->ahead_at = (k->ahead_at + 1) % AHEAD_RUNS;
        k->ahead_n--;
    }
}

uint64_t keep_ahead_left(struct stage *stage)
{
    const struct stage_needs *needs = needs_of(stage);
    struct keeping *k = stage->keeping;
    uint64_t staged = atomic_load(&stage->counters.staged_bytes), most, worth;

    if (!needs || !k->is_full)
        return UINT64_MAX;
    lock_take(&stage->lock);
    worth = runs_worth_locked(stage);
    lock_drop(&stage->lock);
    pass_used(stage, needs);
    most = max_u64(staged / AHEAD_SHARE, 2 * stage->options.jobs * worth);
    most = max_u64(min_u64(most, staged / AHEAD_LIMIT), 1);
    return k->ahead_bytes < most && k->ahead_n < AHEAD_RUNS ? most - k->ahead_bytes : 0;
}

int keep_take_ahead(struct stage *stage, const struct stage_need *need, uint64_t bytes)
{
    const struct stage_needs *needs = needs_of(stage);
    struct keeping *k = stage->keeping;

    if (!needs)
        return take_quota(stage, bytes);
    if (!k->ahead)
        k->ahead = calloc(AHEAD_RUNS, sizeof(*k->ahead));
    /* Asked before the run starts: its reader may have passed as soon as it has. */
    k->next.need = *need;
    k->next.when = stage_when(needs, need->blob, need->off, need->len);
    return k->ahead ? keep_take_quota(stage, bytes, need->when) : -ENOMEM;
}

void keep_note_ahead(struct stage *stage, uint64_t bytes)
{
    struct keeping *k = stage->keeping;

    if (!needs_of(stage) || !k->is_full || k->ahead_n == AHEAD_RUNS)
        return;
    k->next.bytes = bytes;
    k->ahead[(k->ahead_at + k->ahead_n++) % AHEAD_RUNS] = k->next;
    k->ahead_bytes += bytes;
}

bool keep_is_full(const struct stage *stage)
{
    return stage->keeping->is_full;
}

bool keep_holds_all(const struct stage *stage)
{
    return stage->keeping->holds_all;
}

int keep_init(struct stage *stage)
{
    stage->keeping = calloc(1, sizeof(*stage->keeping));
    return stage->keeping ? 0 : -ENOMEM;
}

void keep_release(struct stage *stage)
{
    if (stage->keeping) {
        free(stage->keeping->victim);
        free(stage->keeping->ahead);
    }
    free(stage->keeping);
}
