/* Batches that are made ahead of their reader.
 *
 * A reader takes one batch after another, or every n-th. Once it has taken the one that was
 * expected, makers make those that come next, in that order, as many as readahead= holds. A reader
 * that goes elsewhere gets its batch made in its own thread, and what was made is given back. */
#include "fs/library/batches.h"

#include <errno.h>

#include "base/checked.h"
#include "base/processors.h"
#include "base/thread.h"

/* How many batches may be made ahead. */
static unsigned ahead_limit(const struct epochfs_batches *b)
{
    uint64_t ahead = b->fs->options.ahead;

    return ahead ? (unsigned)max_u64(min_u64(ahead / max_u64(b->bytes, 1), AHEAD_MOST), 1) : 0;
}

static struct batch_slot *ahead_find_locked(struct epochfs_batches *b, uint64_t k)
{
    lock_assert_held(&b->lock);
    for (unsigned i = 0; i < AHEAD_MOST; i++)
        if (b->slot[i].state != SLOT_FREE && !b->slot[i].is_stale && b->slot[i].k == k)
            return &b->slot[i];
    return NULL;
}

/* A slot for the next batch to make. NULL: nothing is to be made now. */
static struct batch_slot *ahead_next_locked(struct epochfs_batches *b)
{
    struct batch_slot *free_slot = NULL;
    unsigned used = 0, limit = ahead_limit(b);
    uint64_t k = b->last;

    lock_assert_held(&b->lock);
    for (unsigned i = 0; i < AHEAD_MOST; i++)
        if (b->slot[i].state == SLOT_FREE)
            free_slot = &b->slot[i];
        else
            used++;
    if (!b->goes_on || !free_slot || used >= limit)
        return NULL;
    for (unsigned i = 0; i < limit; i++) {
        if (!checked_add(k, b->stride, &k) || k >= b->count)
            return NULL;
        if (!ahead_find_locked(b, k)) {
            *free_slot = (struct batch_slot){.state = SLOT_MAKING, .k = k};
            return free_slot;
        }
    }
    return NULL;
}

static void *ahead_main(void *arg)
{
    struct epochfs_batches *b = arg;
    struct epochfs_batch *batch, *stale;
    struct batch_slot *slot;
    struct diag d;
    int r;

    lock_take(&b->lock);
    while (!b->ending) {
        slot = ahead_next_locked(b);
        if (!slot) {
            lock_wait(&b->lock, &b->wake);
            continue;
        }
        lock_drop(&b->lock);
        batch = stale = NULL;
        d = DIAG_INIT;
        r = batches_make(b, slot->k, &batch, &d); /* while it is MAKING, k is ours */
        lock_take(&b->lock);
        slot->batch = batch;
        slot->error = r;
        slot->reason = d;
        slot->state = SLOT_READY;
        if (slot->is_stale) {
            stale = batch;
            *slot = (struct batch_slot){0};
        }
        pthread_cond_broadcast(&b->wake);
        lock_drop(&b->lock);
        buffers_give(stale);
        lock_take(&b->lock);
    }
    lock_drop(&b->lock);
    return NULL;
}

/* Start makers, once. */
static void ahead_start_locked(struct epochfs_batches *b)
{
    unsigned n = (unsigned)min_u64(min_u64(processors_count(), ahead_limit(b)), MAKERS_MOST);

    lock_assert_held(&b->lock);
    while (!b->ending && b->n_makers < n &&
           thread_start(&b->maker[b->n_makers], ahead_main, b) == 0)
        b->n_makers++;
}

/* The reader is at k now. Batches that it does not want next are moved to ret, which has room for
 * all. Returns how many. */
static unsigned ahead_move_locked(struct epochfs_batches *b, uint64_t k, struct epochfs_batch **ret)
{
    unsigned n = 0;

    lock_assert_held(&b->lock);
    b->goes_on = !b->has_last || k == b->last + b->stride;
    if (!b->goes_on)
        b->stride = k > b->last && k - b->last <= STRIDE_MOST ? k - b->last : 1;
    b->last = k;
    b->has_last = true;
    for (unsigned i = 0; i < AHEAD_MOST; i++) {
        struct batch_slot *slot = &b->slot[i];
        bool is_next = slot->k >= k && (slot->k - k) % b->stride == 0 &&
                       (slot->k - k) / b->stride <= AHEAD_MOST;

        if (slot->state == SLOT_FREE || is_next)
            continue;
        slot->is_stale = true;
        if (slot->state != SLOT_READY)
            continue;
        ret[n++] = slot->batch;
        *slot = (struct batch_slot){0};
    }
    return n;
}

/* Take what was made ahead for batch k, once it is READY. -EAGAIN: nothing was. Other threads may
 * want the same batch, or go elsewhere: then its slot is soon that of another batch. */
static int ahead_take_slot_locked(struct epochfs_batches *b, uint64_t k, struct epochfs_batch **ret,
                                  struct diag *d)
{
    struct batch_slot *slot;
    int r;

    lock_assert_held(&b->lock);
    while ((slot = ahead_find_locked(b, k)) && slot->state == SLOT_MAKING && !b->ending)
        lock_wait(&b->lock, &b->wake);
    if (!slot)
        return -EAGAIN;
    if (slot->state != SLOT_READY)
        return -EINTR;
    r = slot->error;
    if (r == 0)
        *ret = slot->batch;
    else if (slot->reason.set)
        diag_set(d, r, "%s", slot->reason.text);
    *slot = (struct batch_slot){0};
    pthread_cond_broadcast(&b->wake);
    return r;
}

int batches_take(struct epochfs_batches *b, uint64_t k, struct epochfs_batch **ret, struct diag *d)
{
    struct epochfs_batch *stale[AHEAD_MOST];
    unsigned n_stale;
    int r;

    lock_take(&b->lock);
    n_stale = ahead_move_locked(b, k, stale);
    r = ahead_take_slot_locked(b, k, ret, d);
    if (b->goes_on && b->has_last && b->n_makers == 0 && b->bytes)
        ahead_start_locked(b);
    pthread_cond_broadcast(&b->wake);
    lock_drop(&b->lock);
    for (unsigned i = 0; i < n_stale; i++)
        buffers_give(stale[i]);
    return r == -EAGAIN ? batches_make(b, k, ret, d) : r;
}

void batches_stop(struct epochfs_batches *b)
{
    struct epochfs_batch *made[AHEAD_MOST];
    unsigned n = 0;

    lock_take(&b->lock);
    b->ending = true;
    pthread_cond_broadcast(&b->wake);
    lock_drop(&b->lock);
    for (unsigned i = 0; i < b->n_makers; i++) /* none is started after ending */
        pthread_join(b->maker[i], NULL);
    lock_take(&b->lock); /* calls may be under way */
    for (unsigned i = 0; i < AHEAD_MOST; i++) {
        if (b->slot[i].state == SLOT_READY && b->slot[i].batch)
            made[n++] = b->slot[i].batch;
        b->slot[i] = (struct batch_slot){0};
    }
    lock_drop(&b->lock);
    while (n)
        buffers_give(made[--n]);
}
