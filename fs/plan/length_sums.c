#include "fs/plan/length_sums.h"

#include <errno.h>
#include <stdlib.h>

void length_sums_init(struct length_sums *s)
{
    lock_init(&s->lock);
}

static void epoch_sums_free(struct epoch_sums *e)
{
    free(e->start);
    free(e);
}

void length_sums_release(struct length_sums *s)
{
    for (struct epoch_sums *e = s->latest, *next; e; e = next) {
        next = e->next;
        epoch_sums_free(e);
    }
    lock_release(&s->lock);
}

static struct epoch_sums *length_sums_take_locked(struct length_sums *s, uint64_t epoch)
{
    lock_assert_held(&s->lock);
    for (struct epoch_sums **at = &s->latest; *at; at = &(*at)->next) {
        struct epoch_sums *e = *at;

        if (e->epoch != epoch)
            continue;
        *at = e->next;
        e->next = s->latest;
        s->latest = e;
        e->users++;
        return e;
    }
    return NULL;
}

/* Forget the one that was used longest ago, and is not in use. */
static void length_sums_drop_oldest_locked(struct length_sums *s)
{
    struct epoch_sums **oldest = NULL, *e;

    lock_assert_held(&s->lock);
    for (struct epoch_sums **at = &s->latest; *at; at = &(*at)->next)
        if (!(*at)->users && !(*at)->is_wanted)
            oldest = at;
    if (s->n <= length_sums_most(s) || !oldest)
        return;
    e = *oldest;
    *oldest = e->next;
    s->n--;
    epoch_sums_free(e);
}

static struct epoch_sums *epoch_sums_new(const struct length_sums *s, uint64_t epoch)
{
    struct epoch_sums *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->epoch = epoch;
    e->users = 1;
    if (!s->is_arithmetic) {
        e->start = calloc(s->windows + 1, sizeof(*e->start));
        if (!e->start) {
            free(e);
            return NULL;
        }
    }
    atomic_init(&e->known, s->is_arithmetic ? s->windows : 0);
    schedule_order(s->places, epoch, &e->order);
    return e;
}

int length_sums_hold(struct length_sums *s, uint64_t epoch, struct epoch_sums **ret)
{
    LOCK_SCOPE(&s->lock);
    struct epoch_sums *e = length_sums_take_locked(s, epoch);

    if (!e) {
        e = epoch_sums_new(s, epoch);
        if (!e)
            return -ENOMEM;
        e->next = s->latest;
        s->latest = e;
        s->n++;
        length_sums_drop_oldest_locked(s);
    }
    *ret = e;
    return 0;
}

void length_sums_let_go(struct length_sums *s, struct epoch_sums *e)
{
    LOCK_SCOPE(&s->lock);

    e->users--;
}

/* Each window has a batch at least, and not more than samples. */
static bool are_good(const struct length_sums *s, const uint32_t *sums)
{
    bool good = sums[0] == 0;

    for (uint64_t w = 0; w < s->windows; w++)
        good = good && sums[w + 1] > sums[w] && sums[w + 1] - sums[w] <= s->window;
    return good;
}

void length_sums_load(struct length_sums *s, struct epoch_sums *e)
{
    uint32_t *sums;
    bool was_loaded;

    lock_take(&s->lock);
    was_loaded = e->was_loaded;
    e->was_loaded = true;
    lock_drop(&s->lock);
    if (was_loaded || !s->keeper.load || length_sums_known(e) == s->windows)
        return;
    sums = malloc((s->windows + 1) * sizeof(*sums));
    if (sums && s->keeper.load(s->keeper.ctx, e->epoch, s->windows + 1, sums) == 0 &&
        are_good(s, sums)) {
        LOCK_SCOPE(&s->lock);
        uint64_t known = length_sums_known(e);

        for (uint64_t w = known + 1; w <= s->windows; w++)
            e->start[w] = sums[w];
        atomic_store_explicit(&e->known, s->windows, memory_order_release);
    }
    free(sums);
}

void length_sums_add(struct length_sums *s, struct epoch_sums *e, uint64_t from, size_t n,
                     const uint32_t *batches)
{
    LOCK_SCOPE(&s->lock);

    if (length_sums_known(e) != from)
        return;
    for (size_t i = 0; i < n; i++)
        e->start[from + i + 1] = e->start[from + i] + batches[i];
    atomic_store_explicit(&e->known, from + n, memory_order_release);
}

void length_sums_finish(struct length_sums *s, struct epoch_sums *e)
{
    bool was_wanted;

    lock_take(&s->lock);
    was_wanted = e->is_wanted;
    e->is_wanted = false;
    lock_drop(&s->lock);
    if (!was_wanted)
        return;
    atomic_fetch_sub(&s->wanted, 1);
    if (s->keeper.save)
        s->keeper.save(s->keeper.ctx, e->epoch, s->windows + 1, e->start);
}

bool length_sums_want(struct length_sums *s, struct epoch_sums *e)
{
    LOCK_SCOPE(&s->lock);

    if (length_sums_known(e) == s->windows)
        return false;
    if (!e->is_wanted)
        atomic_fetch_add(&s->wanted, 1);
    e->is_wanted = true;
    return true;
}

bool length_sums_hold_wanted(struct length_sums *s, struct epoch_sums **ret)
{
    LOCK_SCOPE(&s->lock);

    for (struct epoch_sums *e = s->latest; e; e = e->next) {
        if (!e->is_wanted)
            continue;
        e->users++;
        *ret = e;
        return true;
    }
    return false;
}
