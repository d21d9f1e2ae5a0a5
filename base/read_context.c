#include "base/read_context.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/blob.h"
#include "base/checked.h"

static _Thread_local struct read_context *of_thread;

void read_context_init(struct read_context *ret, bool collects)
{
    *ret = (struct read_context){.collects = collects};
    lock_init(&ret->lock);
}

void read_context_release(struct read_context *missing)
{
    free(missing->want);
    free(missing->used);
    free(missing->near);
    lock_release(&missing->lock);
}

struct read_context *missing_of_thread(void)
{
    return of_thread;
}

struct read_context *missing_set(struct read_context *missing)
{
    struct read_context *before = of_thread;

    of_thread = missing;
    return before;
}

static bool is_full_locked(struct read_context *missing)
{
    lock_assert_held(&missing->lock);
    return missing->n >= MISSING_MAX || missing->bytes >= MISSING_BYTES;
}

bool missing_full(struct read_context *missing)
{
    LOCK_SCOPE(&missing->lock);

    return is_full_locked(missing);
}

/* Where to note the number of a range that has byte piece * MISSING_GAP of the blob, or one close
 * behind it. Other ranges may share the place: then ranges stay apart, which does no harm. */
static uint16_t *near_locked(struct read_context *missing, const struct blob *blob, uint64_t piece)
{
    uint64_t h =
        ((uintptr_t)blob ^ piece * UINT64_C(0xbf58476d1ce4e5b9)) * UINT64_C(0x9e3779b97f4a7c15);

    lock_assert_held(&missing->lock);
    return &missing->near[(h >> 32) % MISSING_NEAR];
}

/* Are there few bytes between a range and [off, end)? */
static bool is_near(const struct want *want, uint64_t off, uint64_t end)
{
    uint64_t want_end = want->off + want->len;

    return off <= want_end ? end >= want->off || want->off - end <= MISSING_GAP
                           : off - want_end <= MISSING_GAP;
}

/* A noted range near [off, end), or NULL. */
static struct want *find_locked(struct read_context *missing, const struct blob *blob, uint64_t off,
                                uint64_t len)
{
    uint64_t first = off / MISSING_GAP, last = (off + len - 1) / MISSING_GAP;
    const uint64_t pieces[] = {first, last, first ? first - 1 : 0, last + 1};

    for (size_t i = 0; missing->near && i < ARRAY_LEN(pieces); i++) {
        uint16_t number = *near_locked(missing, blob, pieces[i]);
        struct want *want = number ? &missing->want[number - 1] : NULL;

        if (want && want->blob == blob && is_near(want, off, off + len))
            return want;
    }
    return NULL;
}

static void grow_locked(struct read_context *missing, struct want *want, uint64_t off, uint64_t len)
{
    uint64_t end = max_u64(off + len, want->off + want->len);

    missing->bytes -= want->len;
    want->off = min_u64(off, want->off);
    want->len = end - want->off;
    missing->bytes += want->len;
}

int missing_add(struct read_context *missing, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct want *want;
    LOCK_SCOPE(&missing->lock);

    if (is_full_locked(missing) || !len)
        return -EAGAIN;
    if (!missing->near) /* without memory ranges just stay apart */
        missing->near = calloc(MISSING_NEAR, sizeof(*missing->near));
    want = find_locked(missing, blob, off, len);
    if (want) {
        grow_locked(missing, want, off, len);
    } else {
        if (array_capacity(&missing->want, missing->n, sizeof(*missing->want)) < 0)
            return -ENOMEM;
        want = &missing->want[missing->n++];
        *want = (struct want){.blob = blob, .off = off, .len = len};
        missing->bytes += len;
    }
    if (missing->near) {
        uint16_t number = (uint16_t)(want - missing->want + 1);

        *near_locked(missing, blob, off / MISSING_GAP) = number;
        *near_locked(missing, blob, (off + len - 1) / MISSING_GAP) = number;
    }
    return -EAGAIN;
}

int missing_note_use(struct read_context *missing, const struct blob *blob, uint64_t off,
                     uint64_t len)
{
    LOCK_SCOPE(&missing->lock);
    struct want *last = missing->n_used ? &missing->used[missing->n_used - 1] : NULL;

    if (last && last->blob == blob && last->off + last->len == off) {
        last->len += len;
        return 0;
    }
    if (array_capacity(&missing->used, missing->n_used, sizeof(*missing->used)) < 0)
        return -ENOMEM;
    missing->used[missing->n_used++] = (struct want){.blob = blob, .off = off, .len = len};
    return 0;
}

void missing_use(struct read_context *missing, enum missing_used how)
{
    for (size_t i = 0; i < missing->n_used && how != MISSING_UNUSED; i++)
        blob_used(missing->used[i].blob, missing->used[i].off, missing->used[i].len,
                  how == MISSING_USED_AGAIN);
    free(missing->used);
    missing->used = NULL;
    missing->n_used = 0;
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

void missing_fetch(struct read_context *missing, struct waiter *waiter)
{
    struct want *want = missing->want;
    size_t n = missing->n;

    missing->want = NULL;
    free(missing->near);
    missing->near = NULL;
    missing->n = 0;
    missing->bytes = 0;
    atomic_store(&waiter->error, 0);
    waiter->reason = DIAG_INIT;
    atomic_store(&waiter->pending, 1); /* ours: done only once all ranges are requested */
    for (size_t i = 0; i < n; i++)
        blob_fetch(want[i].blob, want[i].off, want[i].len, waiter);
    free(want);
    waiter_done(waiter, 0, NULL);
}
