#include "format/records/shards.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/search.h"
#include "base/thread.h"

#define STEP_NS 100000000 /* duration of a step of files side by side, if none waits for bytes */

int shards_init(struct shards *ret, unsigned n)
{
    struct shards s = {.failed_at = UINT_MAX};

    s.file = calloc(n, sizeof(struct record_file *));
    s.byte = calloc((size_t)n + 1, sizeof(*s.byte));
    s.first = calloc((size_t)n + 1, sizeof(*s.first));
    if (!s.file || !s.byte || !s.first) {
        shards_release(&s);
        return -ENOMEM;
    }
    *ret = s;
    return 0;
}

void shards_add(struct shards *s, struct record_file *file)
{
    s->file[s->n] = file;
    s->byte[s->n + 1] = s->byte[s->n] + file->blob->size;
    s->is_far = s->is_far || (file->blob->ops && file->blob->ops->fetch);
    s->n++;
}

void shards_release(struct shards *s)
{
    for (unsigned i = 0; i < s->n; i++)
        record_file_drop(s->file[i]);
    free(s->file);
    free(s->byte);
    free(s->first);
    *s = (struct shards){0};
}

/* ---- preparing ---- */

/* A step of several files side by side. */
struct step {
    struct shards *s;
    int64_t until;
    struct lock lock;
    /* Guarded by lock: */
    unsigned next; /* the next file to look at */
    unsigned at;   /* the first file that got no further; UINT_MAX: none */
    int failed;    /* -errno */
    struct diag reason;
};

static bool shards_is_over(const struct step *step)
{
    return clock_monotonic(clock_or_real(step->s->clock)) > step->until;
}

/* Take the next file that is not ready. Those behind a bad one are of no use. false: there is none,
 * or the step is over. */
static bool shards_take_file(struct step *step, unsigned *ret)
{
    LOCK_SCOPE(&step->lock);
    const struct shards *s = step->s;

    while (step->next < s->n && prepared_is_ready(&s->file[step->next]->prepared))
        step->next++;
    if (step->next >= s->n || step->next > step->at || step->next > s->failed_at ||
        shards_is_over(step))
        return false;
    *ret = step->next++;
    return true;
}

static void file_stopped(struct step *step, unsigned i, int r, const struct diag *reason)
{
    LOCK_SCOPE(&step->lock);

    if (r < 0 && i < step->at) {
        step->at = i;
        step->failed = r;
        step->reason = *reason;
    }
}

static void *step_files(void *arg)
{
    struct step *step = arg;
    unsigned i;

    while (shards_take_file(step, &i)) {
        struct diag reason = DIAG_INIT;
        int r;

        do
            r = prepared_step(&step->s->file[i]->prepared, &reason);
        while (r == 0 && !shards_is_over(step));
        file_stopped(step, i, r, &reason);
    }
    return NULL;
}

/* How many threads the step gets, this one included. */
static unsigned threads_for(const struct shards *s)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned most =
        !s->is_far && processors > 0 && processors < SHARDS_FAR ? (unsigned)processors : SHARDS_FAR;

    return s->n - s->ready < most ? s->n - s->ready : most;
}

static void run_step(struct step *step)
{
    pthread_t thread[SHARDS_FAR];
    unsigned n = 0, helpers = threads_for(step->s) - 1;

    while (n < helpers && thread_start(&thread[n], step_files, step) == 0)
        n++;
    step_files(step);
    while (n > 0)
        pthread_join(thread[--n], NULL);
}

/* Count the files that are ready from the first on. */
static void count_ready(struct shards *s)
{
    for (; s->ready < s->n && prepared_is_ready(&s->file[s->ready]->prepared); s->ready++)
        s->first[s->ready + 1] = s->first[s->ready] + s->file[s->ready]->prepared.index.rows;
}

static int prepare_side_by_side(struct shards *s, struct diag *d)
{
    struct step step = {.s = s,
                        .next = s->ready,
                        .at = UINT_MAX,
                        .until = clock_monotonic(clock_or_real(s->clock)) + STEP_NS};

    if (s->ready == s->failed_at)
        return prepared_step(&s->file[s->ready]->prepared, d); /* the same error again */
    lock_init(&step.lock);
    run_step(&step);
    lock_release(&step.lock);
    count_ready(s);
    if (step.at == s->ready && s->ready < s->n)
        return diag_set(d, step.failed, "%s", diag_text(&step.reason, step.failed));
    if (step.at < s->failed_at && !blob_says_nothing(step.failed))
        s->failed_at = step.at;
    return s->ready == s->n;
}

int shards_prepare(struct shards *s, struct diag *d)
{
    while (s->ready < s->n) {
        int r;

        if (s->n - s->ready > 1 && s->file[s->ready]->ops->side_by_side) {
            r = prepare_side_by_side(s, d);
            if (r != 1)
                return r;
            continue;
        }
        r = prepared_step(&s->file[s->ready]->prepared, d);
        if (r != 1)
            return r;
        count_ready(s);
    }
    return 1;
}

void shards_progress(const struct dataset *ds, uint64_t *ret_done, uint64_t *ret_total)
{
    const struct shards *s = ds->impl;

    *ret_done = 0;
    for (unsigned i = 0; i < s->n; i++)
        *ret_done += atomic_load_explicit(&s->file[i]->prepared.seen, memory_order_relaxed);
    *ret_total = s->byte[s->n];
}

/* The last file that begins with number at or before; file i begins with start[i]. */
static unsigned shards_of(const struct shards *s, const uint64_t *start, uint64_t at)
{
    return (unsigned)search_last_up_to(start, sizeof(*start), s->n, at);
}

unsigned shards_find(const struct shards *s, uint64_t record, uint64_t *ret_own)
{
    unsigned i = shards_of(s, s->first, record);

    *ret_own = record - s->first[i];
    return i;
}

/* The number of records before byte at of the files in sequence. */
static uint64_t records_before(const struct shards *s, uint64_t at)
{
    unsigned i = shards_of(s, s->byte, at);

    if (at >= s->byte[s->n])
        return s->first[s->n];
    return s->first[i] + record_file_cut(s->file[i], at - s->byte[i]);
}

void shards_share(const struct dataset *ds, uint64_t part, uint64_t parts, uint64_t *ret_start,
                  uint64_t *ret_length)
{
    const struct shards *s = ds->impl;
    uint64_t total = s->byte[s->n], step = ceil_div(total, parts), begin, end;

    if (!checked_mul(step, part, &begin) || begin > total)
        begin = total;
    end = min_u64(begin + step, total);
    *ret_start = records_before(s, begin);
    *ret_length = records_before(s, end) - *ret_start;
}

int shards_join(size_t n, struct finds *finds)
{
    int r;

    if (n + finds->n_unread < 2 || !n)
        return 0;
    if (!finds->n_unread)
        return 1;
    r = finds_incomplete(finds, SHARDS_ALL, &finds->unread[0]);
    return r < 0 ? r : 0;
}
