#include "support/absent_blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "support/random.h"

struct absent_blob {
    struct blob blob; /* its name is the inner's */
    struct blob *inner;
    struct absent *absent;
    struct absent_blob *next;
    uint64_t n;
    _Atomic uint8_t here[]; /* [n] blocks */
};

static struct absent_blob *own(const struct blob *blob)
{
    return (struct absent_blob *)(uintptr_t)blob;
}

static bool is_here(const struct absent_blob *a, uint64_t off, uint64_t len)
{
    for (uint64_t block = off / ABSENT_BLOCK; block <= (off + len - 1) / ABSENT_BLOCK; block++)
        if (!a->here[block])
            return false;
    return true;
}

static void bring(struct absent_blob *a, uint64_t off, uint64_t len)
{
    for (uint64_t block = off / ABSENT_BLOCK; block <= (off + len - 1) / ABSENT_BLOCK; block++)
        a->here[block] = 1;
}

static int absent_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                        uint64_t off, struct diag *d)
{
    struct absent_blob *a = own(blob);
    struct absent *absent = a->absent;
    uint64_t read = atomic_fetch_add(&absent->reads, 1) + 1;
    int r = 0;

    (void)d;
    if (absent->fail_read && read >= absent->fail_read &&
        read - absent->fail_read < absent->fail_times)
        return -EREMOTEIO;
    /* Collect all of the range: else blocks that are here could be dropped before the others have
     * come. */
    if (!rc || !rc->collects)
        bring(a, off, len);
    else if (!is_here(a, off, len))
        r = missing_add(rc, blob, off, len);
    if (r < 0) {
        memset(buf, 0xa5, len); /* no caller may use it */
        return r;
    }
    r = blob_pread(READ_WAITS, a->inner, buf, len, off);
    if (r == 0 && a->absent->note)
        a->absent->note(a->absent->ctx, blob, off, len);
    return r;
}

static void absent_fetch(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter)
{
    struct absent_blob *a = own(blob);
    struct diag reason = DIAG_INIT;
    int r = 0;

    if (waiter)
        waiter_add(waiter);
    a->absent->fetches++;
    if (a->absent->fail_fetches) {
        a->absent->fail_fetches--;
        r = diag_set(&reason, -EREMOTEIO, "%s: the remote is gone", blob_name(blob));
    } else {
        bring(a, off, len);
    }
    if (waiter)
        waiter_done(waiter, r, &reason);
}

static int absent_check(const struct blob *blob)
{
    return blob_check(own(blob)->inner);
}

static int absent_identity(const struct blob *blob, char **ret)
{
    return blob_identity(own(blob)->inner, ret);
}

static void absent_free(struct blob *blob)
{
    struct absent_blob *a = own(blob), **at = &a->absent->first;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    blob_free(a->inner);
    free(a);
}

static const struct blob_ops absent_ops = {.pread = absent_pread,
                                           .check = absent_check,
                                           .identity = absent_identity,
                                           .free = absent_free,
                                           .fetch = absent_fetch};

struct blob *absent_blob_new(struct blob *inner, struct absent *absent)
{
    uint64_t n = ceil_div(inner->size, ABSENT_BLOCK);
    struct absent_blob *a = calloc(1, sizeof(*a) + (size_t)n);

    if (!a) {
        blob_free(inner);
        return NULL;
    }
    a->blob = *inner;
    a->blob.ops = &absent_ops;
    a->inner = inner;
    a->absent = absent;
    a->n = n;
    a->next = absent->first;
    absent->first = a;
    return &a->blob;
}

void absent_drop(struct absent *absent, unsigned chance, uint64_t *random)
{
    for (struct absent_blob *a = absent->first; a; a = a->next)
        for (uint64_t i = 0; i < a->n; i++)
            if (random_below(random, 256) < chance)
                a->here[i] = 0;
}
