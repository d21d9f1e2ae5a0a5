#include "base/missing_ranges.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/blob.h"
#include "base/checked.h"

static _Thread_local struct wants *of_thread;

void wants_init(struct wants *ret, bool collects)
{
    *ret = (struct wants){.collects = collects};
    lock_init(&ret->lock);
}

void wants_release(struct wants *wants)
{
    free(wants->want);
    free(wants->used);
    free(wants->near);
    lock_release(&wants->lock);
}

struct wants *wants_of_thread(void)
{
    return of_thread;
}

struct wants *wants_set(struct wants *wants)
{
    struct wants *before = of_thread;

    of_thread = wants;
    return before;
}

static bool is_full_locked(struct wants *wants)
{
    lock_assert_held(&wants->lock);
    return wants->n >= WANTS_MAX || wants->bytes >= WANTS_BYTES;
}

bool wants_full(struct wants *wants)
{
    LOCK_SCOPE(&wants->lock);

    return is_full_locked(wants);
}

/* Where the number of a range is noted that has byte piece * WANTS_GAP of the blob, or one close
 * behind. Others may have the same place: then ranges stay apart, which is no harm. */
static uint16_t *near_locked(struct wants *wants, const struct blob *blob, uint64_t piece)
{
    uint64_t h =
        ((uintptr_t)blob ^ piece * UINT64_C(0xbf58476d1ce4e5b9)) * UINT64_C(0x9e3779b97f4a7c15);

    lock_assert_held(&wants->lock);
    return &wants->near[(h >> 32) % WANTS_NEAR];
}

/* Are the bytes between a range and [off, end) few? */
static bool is_near(const struct want *want, uint64_t off, uint64_t end)
{
    uint64_t want_end = want->off + want->len;

    return off <= want_end ? end >= want->off || want->off - end <= WANTS_GAP
                           : off - want_end <= WANTS_GAP;
}

/* The range that is noted near to that one, or NULL. */
static struct want *find_locked(struct wants *wants, const struct blob *blob, uint64_t off,
                                uint64_t len)
{
    uint64_t first = off / WANTS_GAP, last = (off + len - 1) / WANTS_GAP;
    const uint64_t pieces[] = {first, last, first ? first - 1 : 0, last + 1};

    for (size_t i = 0; wants->near && i < ARRAY_LEN(pieces); i++) {
        uint16_t number = *near_locked(wants, blob, pieces[i]);
        struct want *want = number ? &wants->want[number - 1] : NULL;

        if (want && want->blob == blob && is_near(want, off, off + len))
            return want;
    }
    return NULL;
}

static void grow_locked(struct wants *wants, struct want *want, uint64_t off, uint64_t len)
{
    uint64_t end = max_u64(off + len, want->off + want->len);

    wants->bytes -= want->len;
    want->off = min_u64(off, want->off);
    want->len = end - want->off;
    wants->bytes += want->len;
}

int wants_add(struct wants *wants, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct want *want;
    LOCK_SCOPE(&wants->lock);

    if (is_full_locked(wants) || !len)
        return -EAGAIN;
    if (!wants->near) /* without memory ranges just stay apart */
        wants->near = calloc(WANTS_NEAR, sizeof(*wants->near));
    want = find_locked(wants, blob, off, len);
    if (want) {
        grow_locked(wants, want, off, len);
    } else {
        if (array_room(&wants->want, wants->n, sizeof(*wants->want)) < 0)
            return -ENOMEM;
        want = &wants->want[wants->n++];
        *want = (struct want){.blob = blob, .off = off, .len = len};
        wants->bytes += len;
    }
    if (wants->near) {
        uint16_t number = (uint16_t)(want - wants->want + 1);

        *near_locked(wants, blob, off / WANTS_GAP) = number;
        *near_locked(wants, blob, (off + len - 1) / WANTS_GAP) = number;
    }
    return -EAGAIN;
}

int wants_note_use(struct wants *wants, const struct blob *blob, uint64_t off, uint64_t len)
{
    LOCK_SCOPE(&wants->lock);
    struct want *last = wants->n_used ? &wants->used[wants->n_used - 1] : NULL;

    if (last && last->blob == blob && last->off + last->len == off) {
        last->len += len;
        return 0;
    }
    if (array_room(&wants->used, wants->n_used, sizeof(*wants->used)) < 0)
        return -ENOMEM;
    wants->used[wants->n_used++] = (struct want){.blob = blob, .off = off, .len = len};
    return 0;
}

void wants_use(struct wants *wants, enum wants_used how)
{
    for (size_t i = 0; i < wants->n_used && how != WANTS_UNUSED; i++)
        blob_used(wants->used[i].blob, wants->used[i].off, wants->used[i].len,
                  how == WANTS_USED_AGAIN);
    free(wants->used);
    wants->used = NULL;
    wants->n_used = 0;
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

void wants_fetch(struct wants *wants, struct waiter *waiter)
{
    struct want *want = wants->want;
    size_t n = wants->n;

    wants->want = NULL;
    free(wants->near);
    wants->near = NULL;
    wants->n = 0;
    wants->bytes = 0;
    atomic_store(&waiter->error, 0);
    waiter->reason = DIAG_INIT;
    atomic_store(&waiter->pending, 1); /* ours: it is not done before all have been asked for */
    for (size_t i = 0; i < n; i++)
        blob_fetch(want[i].blob, want[i].off, want[i].len, waiter);
    free(want);
    waiter_done(waiter, 0, NULL);
}
