#include "base/read_context.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/blob.h"
#include "base/checked.h"
#include "base/clock.h"

void read_context_init(struct read_context *ret, bool collects)
{
    *ret = (struct read_context){.collects = collects};
    lock_init(&ret->lock);
}

void read_context_peek(struct read_context *ret, const struct read_context *rc)
{
    read_context_init(ret, true);
    if (!rc)
        return;
    ret->cancelled = rc->cancelled;
    ret->ctx = rc->ctx;
    ret->clock = rc->clock;
}

void read_context_release(struct read_context *rc)
{
    free(rc->range);
    free(rc->slot);
    lock_release(&rc->lock);
}

bool used_note(struct read_context *rc, const struct blob *blob)
{
    LOCK_SCOPE(&rc->lock);
    unsigned i = rc->n_used;

    if (!rc->checks_late)
        return false;
    while (i && rc->used[i - 1] != blob)
        i--;
    if (!i && rc->n_used < USED_MAX)
        rc->used[rc->n_used++] = blob;
    else if (!i)
        return false;
    return true;
}

unsigned used_noted(struct read_context *rc, const struct blob *ret[static USED_MAX])
{
    LOCK_SCOPE(&rc->lock);

    memcpy(ret, rc->used, rc->n_used * sizeof(rc->used[0]));
    return rc->n_used;
}

static bool is_full_locked(struct read_context *rc)
{
    lock_assert_held(&rc->lock);
    return rc->n >= MISSING_MAX || rc->bytes >= MISSING_BYTES;
}

bool missing_full(struct read_context *rc)
{
    LOCK_SCOPE(&rc->lock);

    return is_full_locked(rc);
}

/* Where to note the number of a range that has byte piece * MISSING_GAP of the blob, or one close
 * behind it. Other ranges may share the place: then ranges stay apart, which does no harm. */
static uint16_t *near_locked(struct read_context *rc, const struct blob *blob, uint64_t piece)
{
    uint64_t h =
        ((uintptr_t)blob ^ piece * UINT64_C(0xbf58476d1ce4e5b9)) * UINT64_C(0x9e3779b97f4a7c15);

    lock_assert_held(&rc->lock);
    return &rc->slot[(h >> 32) % MISSING_SLOTS];
}

/* Are there few bytes between a range and [off, end)? */
static bool is_near(const struct missing_range *range, uint64_t off, uint64_t end)
{
    uint64_t want_end = range->off + range->len;
    uint64_t gap = range->blob->ops->gap ? range->blob->ops->gap(range->blob) : MISSING_GAP;

    return off <= want_end ? end >= range->off || range->off - end <= gap : off - want_end <= gap;
}

/* A noted range near [off, end), or NULL. */
static struct missing_range *read_context_find_locked(struct read_context *rc,
                                                      const struct blob *blob, uint64_t off,
                                                      uint64_t len)
{
    uint64_t first = off / MISSING_GAP, last = (off + len - 1) / MISSING_GAP;
    const uint64_t pieces[] = {first, last, first ? first - 1 : 0, last + 1};

    lock_assert_held(&rc->lock);
    for (size_t i = 0; rc->slot && i < ARRAY_LEN(pieces); i++) {
        uint16_t number = *near_locked(rc, blob, pieces[i]);
        struct missing_range *range = number ? &rc->range[number - 1] : NULL;

        if (range && range->blob == blob && is_near(range, off, off + len))
            return range;
    }
    return NULL;
}

static void read_context_grow_locked(struct read_context *rc, struct missing_range *range,
                                     uint64_t off, uint64_t len)
{
    uint64_t end = max_u64(off + len, range->off + range->len);

    lock_assert_held(&rc->lock);
    rc->bytes -= range->len;
    range->off = min_u64(off, range->off);
    range->len = end - range->off;
    rc->bytes += range->len;
}

int missing_add(struct read_context *rc, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct missing_range *range;
    LOCK_SCOPE(&rc->lock);

    if (is_full_locked(rc) || !len)
        return -EAGAIN;
    if (!rc->slot) /* without memory ranges just stay apart */
        rc->slot = calloc(MISSING_SLOTS, sizeof(*rc->slot));
    range = read_context_find_locked(rc, blob, off, len);
    if (range) {
        read_context_grow_locked(rc, range, off, len);
    } else {
        if (array_capacity(&rc->range, rc->n, sizeof(*rc->range)) < 0)
            return -ENOMEM;
        range = &rc->range[rc->n++];
        *range = (struct missing_range){.blob = blob, .off = off, .len = len};
        rc->bytes += len;
    }
    if (rc->slot) {
        uint16_t number = (uint16_t)(range - rc->range + 1);

        *near_locked(rc, blob, off / MISSING_GAP) = number;
        *near_locked(rc, blob, (off + len - 1) / MISSING_GAP) = number;
    }
    return -EAGAIN;
}

void waiter_add(struct waiter *waiter)
{
    atomic_fetch_add(&waiter->pending, 1);
}

void waiter_done(struct waiter *waiter, int error, const struct diag *reason)
{
    int none = 0;

    /* The first error counts; its reason is written before the last one is done. */
    if (error < 0 && atomic_compare_exchange_strong(&waiter->error, &none, error) && reason)
        waiter->reason = *reason;
    if (atomic_fetch_sub(&waiter->pending, 1) == 1)
        waiter->done(waiter);
}

/* One thing is pending: the requests themselves. So it is not done before all are made. */
static void waiter_begin(struct waiter *waiter)
{
    atomic_store(&waiter->error, 0);
    waiter->reason = DIAG_INIT;
    atomic_store(&waiter->pending, 1);
}

void missing_fetch(struct read_context *rc, struct waiter *waiter)
{
    struct missing_range *range = rc->range;
    size_t n = rc->n;

    rc->range = NULL;
    free(rc->slot);
    rc->slot = NULL;
    rc->n = 0;
    rc->bytes = 0;
    waiter_begin(waiter);
    for (size_t i = 0; i < n; i++)
        blob_fetch(range[i].blob, range[i].off, range[i].len, waiter);
    free(range);
    waiter_done(waiter, 0, NULL);
}

/* ---- waiting ---- */

#define LOOK_NS INT64_C(50000000) /* between two looks whether a read was cancelled */

/* Lives until the reader has left and the wait is over: a cancelled reader does not stay for its
 * bytes. */
struct sync_wait {
    struct waiter waiter; /* first: sync_wait_done() finds the rest */
    struct lock lock;
    pthread_cond_t changed;
    bool over, left; /* guarded by lock: the wait is over; the reader has stopped waiting */
};

static void sync_wait_free(struct sync_wait *w)
{
    pthread_cond_destroy(&w->changed);
    lock_release(&w->lock);
    free(w);
}

static void sync_wait_done(struct waiter *waiter)
{
    struct sync_wait *w = (struct sync_wait *)waiter;
    bool left;

    lock_take(&w->lock);
    left = w->left;
    w->over = true;
    pthread_cond_signal(&w->changed);
    lock_drop(&w->lock);
    if (left)
        sync_wait_free(w);
}

static struct sync_wait *sync_wait_new(bool ahead)
{
    struct sync_wait *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    lock_init(&w->lock);
    condition_init(&w->changed);
    w->waiter.done = sync_wait_done;
    w->waiter.ahead = ahead;
    return w;
}

/* Wait until all that was requested is present, or the read is cancelled. Frees w, or leaves that
 * to sync_wait_done(). */
static int sync_wait_end(struct sync_wait *w, struct read_context *rc, struct diag *d)
{
    const struct clock *clock = clock_or_real(read_clock(rc));
    bool asks = rc && rc->cancelled, cancelled = false;
    int r;

    lock_take(&w->lock);
    while (!w->over && !cancelled) {
        cancelled = read_cancelled(rc);
        if (!cancelled)
            clock_wait(clock, &w->lock, &w->changed,
                       asks ? clock_monotonic(clock) + LOOK_NS : CLOCK_NEVER);
    }
    w->left = cancelled;
    lock_drop(&w->lock);
    if (cancelled)
        return -EINTR; /* w may be gone already */
    r = atomic_load(&w->waiter.error);
    if (r < 0 && w->waiter.reason.set)
        diag_set(d, r, "%s", w->waiter.reason.text);
    sync_wait_free(w);
    return r;
}

int missing_wait(struct read_context *rc, bool ahead, struct diag *d)
{
    struct sync_wait *w = sync_wait_new(ahead);

    if (!w)
        return -ENOMEM;
    missing_fetch(rc, &w->waiter);
    return sync_wait_end(w, rc, d);
}

int blob_wait(struct read_context *rc, const struct blob *blob, uint64_t off, uint64_t len,
              struct diag *d)
{
    struct sync_wait *w = sync_wait_new(false);

    if (!w)
        return -ENOMEM;
    w->waiter.brief = !rc;
    waiter_begin(&w->waiter);
    blob_fetch(blob, off, len, &w->waiter);
    waiter_done(&w->waiter, 0, NULL);
    return sync_wait_end(w, rc, d);
}
