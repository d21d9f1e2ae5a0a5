/* What is fetched next, and the stage's thread, which sees to it.
 *
 * Who waits has his blocks queued by himself; this is about the rest: what a reader in sequence
 * will want soon, what the background brings, what other processes fetch, and what is to be tried
 * again. The background takes what the forecast of needs says; then it goes through the files in
 * their order, round and round, until a whole turn has found nothing missing. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/stage/parts.h"

#define NS_PER_MS    INT64_C(1000000)
#define NS_PER_S     INT64_C(1000000000)
#define AHEAD_FIRST  (UINT64_C(256) << 10)
#define AHEAD_LEAST  (UINT64_C(1) << 20) /* bytes */
#define AHEAD_MOST   (UINT64_C(32) << 20)
#define AHEAD_RUN    (UINT64_C(4) << 20)
#define SURE         2                   /* reads that go on where others ended */
#define SLACK        (UINT64_C(4) << 20) /* that reads in sequence may be out of order */
#define ELSEWHERE_MS 5                   /* between two looks at what others fetch */
#define UNWAITED_MS  50                  /* that nobody here waits for */
#define STEAL_S      5                   /* and how long they may be without a sign of life */
#define RECORDS      512
#define YIELDING_RUN (UINT64_C(1) << 20)
#define TURN_MS      100 /* after a turn in which something was on its way: look again */
#define MANY_TURN_MS 2000
#define MANY_FILES   1000

/* ---- ahead ---- */

/* Does the read go on where the one before has ended? It may be one further. Once it is known that
 * reads are in sequence they may come more out of order. */
static bool is_in_sequence(const struct file *file, uint64_t off, uint64_t end)
{
    uint64_t gap = file->ahead_bytes ? SLACK : max_u64(end - off, file->block_bytes);

    return file->last_end && off <= file->last_end + gap && end + gap >= file->last_end;
}

/* Queue blocks [first, end), but what is used up. */
static void queue_ahead_locked(struct file *file, uint64_t first, uint64_t end)
{
    while (first < end) {
        uint64_t n = 0;

        while (first + n < end && !file_has_passed(file, first + n))
            n++;
        if (n)
            runs_make_locked(file, first, first + n, AHEAD_RUN, RUN_AHEAD, false);
        first += n ? n : 1;
    }
}

void ahead_locked(struct file *file, uint64_t off, uint64_t len)
{
    uint64_t end = off + len, size = file->blob.size, from, to;

    lock_assert_held(&file->stage->lock);
    if (!is_in_sequence(file, off, end)) {
        file->ahead_bytes = 0; /* somewhere else */
        file->ahead_end = 0;
        file->last_end = end;
        file->in_sequence = 0;
        atomic_store_explicit(&file->ahead_at, UINT64_MAX, memory_order_relaxed);
        return;
    }
    if (end <= file->last_end)
        return; /* it was asked for before */
    file->last_end = end;
    if (++file->in_sequence < SURE)
        return; /* two that happen to be neighbours are no sequence */
    if (off + AHEAD_LEAST <= file->ahead_end && file->last_end <= atomic_load(&file->ahead_at))
        return;
    file->ahead_bytes = min_u64(max_u64(2 * file->ahead_bytes, AHEAD_FIRST), AHEAD_MOST);
    from = max_u64(file->last_end, file->ahead_end);
    to = min_u64(file->last_end + file->ahead_bytes, size);
    if (from < to) {
        queue_ahead_locked(file, from / file->block_bytes, ceil_div(to, file->block_bytes));
        file->ahead_end = to;
    }
    atomic_store_explicit(&file->ahead_at,
                          to < size ? file->ahead_end - file->ahead_bytes / 2 : UINT64_MAX,
                          memory_order_relaxed);
}

/* ---- what others fetch ---- */

static uint64_t next_elsewhere(const struct file *file, uint64_t from)
{
    while (from < file->blocks && file_state(file, from) != BLOCK_ELSEWHERE)
        from++;
    return from;
}

/* Can a run have the block now? Of a file that comes as a whole it needs all. */
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

/* Fetch n blocks that another process has let go of, or (steal) gives no sign of life of. False:
 * it cannot be done now. */
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

/* Look at the blocks that others fetch: some may have come, or their claims may have ended. Returns
 * false if there are none left. */
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

/* Of all files. Returns when to look again. */
static int64_t look_at_others(struct stage *stage, int64_t now)
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

/* ---- the background ---- */

/* Runs of that kind that are under way. */
static unsigned count_active(const struct stage *stage, enum run_why why)
{
    unsigned n = 0;

    for (const struct run *run = stage->active.first; run; run = run->next)
        n += run->why == (int)why;
    return n;
}

/* Runs of the background, under way or queued for that. */
static size_t count_background_locked(const struct stage *stage)
{
    return count_active(stage, RUN_BACKGROUND) + stage->queued[RUN_BACKGROUND].n;
}

/* Look whether the processors are taken, if it is time for that. */
static void look_at_processors(struct stage *stage, int64_t now)
{
    size_t under_way;

    if (!stage->options.idle_ns)
        return;
    lock_take(&stage->lock);
    under_way = count_background_locked(stage);
    lock_drop(&stage->lock);
    if (yield_looks(&stage->yield, now, under_way) &&
        yield_look(&stage->yield, now, stage->options.idle_ns()))
        atomic_fetch_add_explicit(&stage->counters.rests, 1, memory_order_relaxed);
}

/* May one more run be started in the background? While somebody waits it has one at a time. */
static bool may_stage_locked(struct stage *stage, int64_t now)
{
    size_t others = stage->queued[RUN_AHEAD].n + stage->queued[RUN_BACKGROUND].n;

    if ((stage->queued[RUN_DEMAND].n || count_active(stage, RUN_DEMAND)) &&
        count_active(stage, RUN_BACKGROUND))
        return false;
    return stage->begun && stage->options.background && !stage->ending && !others &&
           !stage->asleep.n && runs_have_place_locked(stage) && now >= stage->budget_ns &&
           yield_may(&stage->yield, count_background_locked(stage));
}

/* May it go on with the turn through the files? What they have beside what the plan needs is not
 * to push that out. */
static bool may_turn_locked(const struct stage *stage, int64_t now)
{
    return (!stage->full_error || now >= stage->full_until) && now >= stage->look_until &&
           (!stage->keeping.is_full || stage->keeping.holds_all);
}

static int64_t next_look_locked(const struct stage *stage, int64_t now)
{
    int64_t next = yield_next(&stage->yield, count_background_locked(stage));

    if (!stage->begun || !stage->options.background)
        return INT64_MAX;
    if (stage->full_error && stage->full_until > now)
        next = stage->full_until;
    if (stage->look_until > now && stage->look_until < next)
        next = stage->look_until;
    if (stage->budget_ns > now && stage->budget_ns < next)
        next = stage->budget_ns;
    if (stage->guided.hold_until > now && stage->guided.hold_until < next)
        next = stage->guided.hold_until;
    return next;
}

static bool can_be_staged(struct file *file, int64_t now)
{
    LOCK_SCOPE(&file->stage->lock);

    return file->rest_until <= now;
}

uint64_t find_missing(struct file *file, uint64_t from, uint64_t to, uint64_t most, bool again,
                      uint64_t *ret_end, bool *ret_others)
{
    struct stage *stage = file->stage;
    uint64_t record[RECORDS], first = to, end = to;

    for (uint64_t at = from; at < to && end == to; at += RECORDS) {
        size_t n = (size_t)min_u64(RECORDS, to - at);

        staged_records(&file->staged, at, n, record);
        lock_take(&stage->lock);
        for (size_t i = 0; i < n && end == to; i++) {
            enum block_state state = file_state(file, at + i);
            bool missing =
                !record[i] && (state == BLOCK_UNKNOWN || state == BLOCK_ABSENT) &&
                !(again ? file_has_passed(file, at + i) : file_was_used_up(file, at + i));

            if (record[i] && state != BLOCK_COMING)
                file_count_locked(file, at + i);
            *ret_others = *ret_others || state == BLOCK_COMING || state == BLOCK_ELSEWHERE;
            if (missing && first == to)
                first = at + i;
            if (first < to && (!missing || at + i - first >= most))
                end = at + i;
        }
        lock_drop(&stage->lock);
        if (atomic_load_explicit(&stage->ending, memory_order_relaxed))
            break;
    }
    *ret_end = end;
    return first;
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

/* Queue the next run of the background. False: nothing is missing in the rest of this turn. */
static bool stage_more(struct stage *stage, int64_t now)
{
    uint64_t most, from;
    struct file *file;

    lock_take(&stage->lock);
    stage->added = stage->added && stage->at;
    stage->missed_at = stage->at ? stage->missed_at : stage->missed;
    file = stage->at ? stage->at : stage->files;
    from = stage->at ? stage->at_block : 0;
    most = run_bytes_locked(stage);
    lock_drop(&stage->lock);
    for (; file; file = atomic_load(&file->next), from = 0) {
        uint64_t first = file->blocks, end = file->blocks;
        bool others = false;

        if (atomic_load(&file->done) || atomic_load(&file->failed) < 0)
            continue;
        if (!can_be_staged(file, now)) {
            stage->saw_missing = true;
            continue;
        }
        if (!file->blocks)
            continue;
        if (file_take(file, NULL) < 0) { /* of descriptors or memory there may be more later */
            stage->saw_missing = true;
            continue;
        }
        first = find_missing(file, from, file->blocks, max_u64(most / file->block_bytes, 1), false,
                             &end, &others);
        if (first < file->blocks && stage->options.is_done &&
            stage->options.is_done(&file->blob, stage->cache)) {
            blob_done(&file->blob);
            file_put(file);
            continue;
        }
        stage->saw_missing = stage->saw_missing || others || first < file->blocks;
        if (first < file->blocks) {
            LOCK_SCOPE(&stage->lock);

            runs_make_locked(file, first, end, UINT64_MAX, RUN_BACKGROUND, false);
            spend_locked(stage, now, (end - first) * file->block_bytes);
            stage->at = file;
            stage->at_block = end;
            file_put(file);
            return true;
        }
        file_put(file);
        if (atomic_load_explicit(&stage->ending, memory_order_relaxed))
            return true;
    }
    return false;
}

/* Files that have all come are compared with their SHA-256, one at a time. */
static void verify_staged(struct stage *stage)
{
    struct file *file;

    lock_take(&stage->lock);
    file = stage->files;
    lock_drop(&stage->lock);
    for (; file; file = atomic_load(&file->next)) {
        struct diag reason = DIAG_INIT;

        if (!file->has_sha256 || atomic_load(&file->done) ||
            atomic_load(&file->verdict) != FILE_NOT_VERIFIED || file_take(file, NULL) < 0)
            continue;
        if (file_verify(file, &reason) == -EBADMSG) {
            lock_take(&stage->lock);
            stage->trouble = reason;
            stage->trouble_error = -EBADMSG;
            lock_drop(&stage->lock);
            stage_tell(stage, -EBADMSG, &reason);
        }
        file_put(file);
    }
}

static void end_turn(struct stage *stage, int64_t now)
{
    bool all = !stage->saw_missing;

    if (all)
        verify_staged(stage);
    LOCK_SCOPE(&stage->lock);

    all = all && !stage->added;
    stage->at = NULL;
    stage->all_staged = all;
    stage->guided.all_here = all && stage->missed == stage->missed_at;
    if (all)
        runs_free_buffers_locked(stage);
    stage->look_until =
        all ? INT64_MAX : now + (stage->n_files < MANY_FILES ? TURN_MS : MANY_TURN_MS) * NS_PER_MS;
    stage->saw_missing = false;
    pthread_cond_broadcast(&stage->gone);
}

/* Queue the next run: what the forecast of needs says comes first. False: there is none now. */
static bool next_run(struct stage *stage, int64_t now)
{
    enum guided_step step = GUIDED_NONE;
    bool may, planned, turn;

    keep_holds_all(stage, now);
    lock_take(&stage->lock);
    may = may_stage_locked(stage, now);
    planned = may && guided_may_locked(stage, now);
    lock_drop(&stage->lock);
    if (!may)
        return false;
    if (planned)
        step = guided_more(stage, now);
    if (step != GUIDED_NONE)
        return step == GUIDED_MADE;
    lock_take(&stage->lock);
    turn = may_turn_locked(stage, now);
    lock_drop(&stage->lock);
    if (!turn)
        return false;
    if (stage_more(stage, now))
        return true;
    end_turn(stage, now);
    return false;
}

static void stage_in_background(struct stage *stage, int64_t now)
{
    look_at_processors(stage, now);
    while (next_run(stage, now)) {
        yield_begun(&stage->yield);
        runs_start(stage);
    }
    keep_prepare(stage);
}

/* ---- the thread ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void *stage_main(void *arg)
{
    struct stage *stage = arg;

    lock_take(&stage->lock);
    while (!stage->ending && !stage->resting) {
        struct diag reason = DIAG_INIT;
        struct wait *over = NULL;
        int64_t now = monotonic_ns(), next;

        stage->kicked = false;
        next = runs_wake_locked(stage, now, &over);
        if (over)
            diag_set(&reason, -EREMOTEIO, "%.300s; waited %u s",
                     stage->trouble_error ? stage->trouble.text : "the remote sends nothing",
                     stage->options.retry_limit_s);
        lock_drop(&stage->lock);
        waits_tell(stage, over, -EREMOTEIO, &reason);
        runs_flush(stage);
        next = earlier(next, look_at_others(stage, now));
        stage_in_background(stage, now);
        runs_start(stage);
        lock_take(&stage->lock);
        next = earlier(next, next_look_locked(stage, now));
        if (!stage->kicked && !stage->ending && !stage->resting)
            lock_wait_for(&stage->lock, &stage->wake,
                          next == INT64_MAX ? INT64_MAX : earlier(next - now, 3600 * NS_PER_S));
    }
    lock_drop(&stage->lock);
    return NULL;
}
