/* The context of a read: it goes down with the call, from the code that needs bytes to the blobs.
 * It says whether the read waits for bytes that are not on this machine yet, and when the call must
 * end; and it collects which ranges are missing.
 *
 * A thread that serves requests must not wait for a network. Its read context collects: a read of
 * missing bytes then notes them there and fails with -EAGAIN; code that reads in a loop goes on and
 * notes what else is missing, by the rule of missing_go_on(). The thread then requests the bytes
 * with missing_fetch(), does something else, and reads again when its waiter is called. Helpers in
 * other threads get the context of the caller that they help: any thread may use it.
 *
 * Code that may just wait, as commands and what prepares datasets, passes READ_WAITS
 * (base/blob.h): there is no context then.
 *
 * Conclude nothing from bytes that were not read: do not decode, remember or count them. See also
 * blob_says_nothing(). */
#ifndef EPOCHFS_BASE_READ_CONTEXT_H
#define EPOCHFS_BASE_READ_CONTEXT_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"

struct blob;
struct clock;

struct missing_range {
    const struct blob *blob;
    uint64_t off, len;
};

#define MISSING_MAX   4096                 /* ranges; and */
#define MISSING_BYTES (UINT64_C(32) << 20) /* bytes collected at a time */
#define MISSING_GAP   (UINT64_C(64) << 10) /* bytes between ranges that may become one */
#define MISSING_SLOTS 8192
#define USED_MAX      64 /* blobs that are checked late */

struct read_context {
    /* Set by read_context_init(); the caller may change them before the first read: */
    bool collects;                /* false: reads wait */
    bool again;                   /* these reads were tried before, and are counted already */
    bool (*cancelled)(void *ctx); /* must the call end, with -EINTR? NULL: never. Any thread */
    void *ctx;
    /* For waits that look whether they are cancelled; NULL: the real one. */
    const struct clock *clock;
    bool checks_late; /* see blob_used() */
    struct lock lock;
    /* Guarded by lock: */
    const struct blob *used[USED_MAX];
    unsigned n_used;
    size_t n;
    uint64_t bytes;
    struct missing_range *range; /* [n] */
    uint16_t *slot; /* [MISSING_SLOTS] number + 1 of a range with bytes there; NULL: none */
};

void read_context_init(struct read_context *ret, bool collects);
void read_context_release(struct read_context *rc);
/* One that collects what comes after the reads of rc, and ends with them. */
void read_context_peek(struct read_context *ret, const struct read_context *rc);

/* Must a call that waits, or takes long, give up with -EINTR? */
static inline bool read_cancelled(const struct read_context *rc)
{
    return rc && rc->cancelled && rc->cancelled(rc->ctx);
}

static inline const struct clock *read_clock(const struct read_context *rc)
{
    return rc ? rc->clock : NULL;
}

/* For blob_used(): note a blob that is checked late; false: it must be checked at once. The blobs
 * noted; returns how many. */
bool used_note(struct read_context *rc, const struct blob *blob);
unsigned used_noted(struct read_context *rc, const struct blob *ret[static USED_MAX]);

/* Note a range. -EAGAIN, for the read to return; or -ENOMEM. When missing_full(), nothing more is
 * noted: the caller reads again anyway. A range that overlaps another one of its blob, or is at
 * most MISSING_GAP away from it, mostly becomes one with it and the gap: blobs fetch blocks, and
 * blocks are rarely smaller than the gap. So the same bytes may be noted any number of times. */
int missing_add(struct read_context *rc, const struct blob *blob, uint64_t off, uint64_t len);

/* Are the missing ranges full? Then a loop that collects may end. */
bool missing_full(struct read_context *rc);

/* For a loop that reads: must it go on after r, the result of one read? After -EAGAIN it must,
 * until the missing ranges are full. *all starts as 0 and becomes the result of the loop: 0,
 * -EAGAIN once a read returned that, or the other -errno that ended the loop.
 *
 *     int all = 0;
 *
 *     while (there is more) {
 *         int r = read one;
 *
 *         if (!missing_go_on(rc, r, &all))
 *             break;
 *         if (r == 0)
 *             use it;
 *     }
 *     return all; */
static inline bool missing_go_on(struct read_context *rc, int r, int *all)
{
    if (r == 0)
        return true;
    if (*all == 0 || r != -EAGAIN)
        *all = r;
    return r == -EAGAIN && rc && !missing_full(rc);
}

/* Waits for bytes without blocking a thread. */
struct waiter {
    /* Called once, in any thread: all bytes are present, or error is set. It may free the waiter.
     * It must not wait for bytes, because the thread that brings them may hold a lock of that
     * transfer. */
    void (*done)(struct waiter *waiter);
    /* Set when done() is called: 0 or -errno, with the reason. */
    _Atomic int error;
    struct diag reason;
    bool ahead; /* set before missing_fetch(): no reader waits yet, so requests of waiting readers
                   go first */
    bool brief; /* its reader waits for one file after another, and not for each of them as long
                   while the remote is silent: READ_WAITS */
    /* For the code that brings the bytes: */
    _Atomic unsigned pending;
};

/* Request all missing ranges. waiter->done() is called when all are here or cannot be fetched,
 * perhaps before this returns. Empties rc. */
void missing_fetch(struct read_context *rc, struct waiter *waiter);

/* Request all missing ranges and wait until they are present; ahead: see struct waiter. 0, -EINTR:
 * rc was cancelled, -ENOMEM, or the -errno of what cannot be fetched, with the reason in d. Empties
 * rc. Only this function and blob_wait() block a thread until bytes come. */
int missing_wait(struct read_context *rc, bool ahead, struct diag *d);

/* The same for bytes of one blob; rc may be READ_WAITS. */
int blob_wait(struct read_context *rc, const struct blob *blob, uint64_t off, uint64_t len,
              struct diag *d);

/* For blobs: waiter waits for one more thing; that thing is present, or (error < 0) cannot be
 * fetched. The caller of waiter_done() may hold no lock but that of the transfer. */
void waiter_add(struct waiter *waiter);
void waiter_done(struct waiter *waiter, int error, const struct diag *reason);

#endif
