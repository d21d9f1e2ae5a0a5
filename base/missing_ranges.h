/* Bytes that are not on this machine yet, and those who want them.
 *
 * A thread that serves somebody must not wait for a network. It sets wants that collect: a read of
 * bytes that are missing then notes them there and fails with -EAGAIN; code that reads in a loop
 * goes on and notes what else is missing, by the rule of missing_go_on(). Whoever set them asks for
 * the bytes with missing_fetch(), does something else, and reads again when its waiter is called.
 * The wants of a thread go with its work to the helpers of a pool. A thread without missing ranges
 * waits in its reads.
 *
 * Bytes that were not read are nothing to conclude from: they are not decoded, remembered or
 * counted. See also blob_says_nothing(). */
#ifndef EPOCHFS_BASE_MISSING_RANGES_H
#define EPOCHFS_BASE_MISSING_RANGES_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"

struct blob;

struct want {
    const struct blob *blob;
    uint64_t off, len;
};

#define MISSING_MAX   4096                 /* ranges; and */
#define MISSING_BYTES (UINT64_C(32) << 20) /* bytes that are collected at a time */
#define MISSING_GAP   (UINT64_C(64) << 10) /* bytes between two ranges that may become one */
#define MISSING_NEAR  8192

struct missing_ranges {
    /* Set by missing_init(), the caller may change them before they are a thread's: */
    bool collects;                /* false: reads wait */
    bool uses;                    /* reads are noted, for missing_use() */
    bool again;                   /* these reads were tried before: they are counted already */
    bool (*cancelled)(void *ctx); /* shall a read that waits give up, with -EINTR? NULL: never */
    void *ctx;
    struct lock lock;
    /* Guarded by lock: */
    size_t n;
    uint64_t bytes;
    struct want *want; /* [n] */
    size_t n_used;
    struct want *used; /* [n_used] */
    uint16_t *near;    /* [MISSING_NEAR] number + 1 of a range that has bytes there; NULL: none */
};

void missing_init(struct missing_ranges *ret, bool collects);
void missing_release(struct missing_ranges *missing);

/* Those of this thread, NULL: none. */
struct missing_ranges *missing_of_thread(void);

/* Set those of this thread; returns the ones before, which the caller sets again. */
struct missing_ranges *missing_set(struct missing_ranges *missing);

/* Note a range. -EAGAIN, as the read returns then; or -ENOMEM. When there are enough, nothing more
 * is noted: the caller reads again anyway. A range that overlaps another one of its blob, or is
 * no more than MISSING_GAP away from it, mostly becomes one with it and what is between: blobs
 * fetch blocks, and a block is hardly smaller. So the same bytes may be wanted any number of times.
 */
int missing_add(struct missing_ranges *missing, const struct blob *blob, uint64_t off,
                uint64_t len);

/* Are there enough? Then a loop that collects may end. */
bool missing_full(struct missing_ranges *missing);

/* Of a loop that reads: shall it go on after r, the result of one read? After -EAGAIN it shall, as
 * long as there is room for what else is missing. *all starts as 0 and is the result of the loop:
 * 0, -EAGAIN once a read gave that, or the other -errno that ended it.
 *
 *     int all = 0;
 *
 *     while (there is more) {
 *         int r = read one;
 *
 *         if (!missing_go_on(r, &all))
 *             break;
 *         if (r == 0)
 *             use it;
 *     }
 *     return all;
 */
static inline bool missing_go_on(int r, int *all)
{
    if (r == 0)
        return true;
    if (*all == 0 || r != -EAGAIN)
        *all = r;
    if (r != -EAGAIN || !missing_of_thread())
        return false;
    return !missing_full(missing_of_thread());
}

/* Note that a range was read. 0 or -ENOMEM. */
int missing_note_use(struct missing_ranges *missing, const struct blob *blob, uint64_t off,
                     uint64_t len);

/* What was read has been used by an epoch, perhaps again (see blob_used()): tell the blobs, of
 * which some then keep it no longer. If it was not, forget it. */
enum missing_used { MISSING_UNUSED, MISSING_USED, MISSING_USED_AGAIN };
void missing_use(struct missing_ranges *missing, enum missing_used how);

/* Who waits for bytes without a thread. */
struct waiter {
    /* Called once, in any thread: all is here, or error is set. It may free the waiter. It must not
     * wait for bytes, for the one who brings them may hold a lock of that transfer. */
    void (*done)(struct waiter *waiter);
    /* Set when done() is called: 0 or -errno, with the reason. */
    _Atomic int error;
    struct diag reason;
    bool ahead; /* set before missing_fetch(): nobody waits yet, so others who do go first */
    /* Of those who bring the bytes: */
    _Atomic unsigned pending;
};

/* Ask for all that is wanted; waiter->done() is called when it is here or could not be had, perhaps
 * before this returns. Empties wants. */
void missing_fetch(struct missing_ranges *missing, struct waiter *waiter);

/* For blobs: somebody waits for one thing more; it is here, or (error < 0) cannot be had. No lock
 * but that of its transfer may be held around waiter_done(). */
void waiter_add(struct waiter *waiter);
void waiter_done(struct waiter *waiter, int error, const struct diag *reason);

#endif
