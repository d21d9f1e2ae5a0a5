/* Bytes that are not on this machine yet, and those who want them.
 *
 * A thread that serves somebody must not wait for a network. It sets wants that collect: a read of
 * bytes that are missing then notes them there and fails with -EAGAIN; code that reads in a loop
 * goes on and notes what else is missing, by the rule of wants_go_on(). Whoever set them asks for
 * the bytes with wants_fetch(), does something else, and reads again when its waiter is called. The
 * wants of a thread go with its work to the helpers of a pool. A thread without wants waits in its
 * reads.
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

#define WANTS_MAX   4096                 /* ranges; and */
#define WANTS_BYTES (UINT64_C(32) << 20) /* bytes that are collected at a time */
#define WANTS_GAP   (UINT64_C(64) << 10) /* bytes between two ranges that may become one */
#define WANTS_NEAR  8192

struct wants {
    /* Set by wants_init(), the caller may change them before they are a thread's: */
    bool collects;                /* false: reads wait */
    bool uses;                    /* reads are noted, for wants_use() */
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
    uint16_t *near;    /* [WANTS_NEAR] number + 1 of a range that has bytes there; NULL: none */
};

void wants_init(struct wants *ret, bool collects);
void wants_release(struct wants *wants);

/* Those of this thread, NULL: none. */
struct wants *wants_of_thread(void);

/* Set those of this thread; returns the ones before, which the caller sets again. */
struct wants *wants_set(struct wants *wants);

/* Note a range. -EAGAIN, as the read returns then; or -ENOMEM. When there are enough, nothing more
 * is noted: the caller reads again anyway. A range that overlaps another one of its blob, or is
 * no more than WANTS_GAP away from it, mostly becomes one with it and what is between: blobs fetch
 * blocks, and a block is hardly smaller. So the same bytes may be wanted any number of times. */
int wants_add(struct wants *wants, const struct blob *blob, uint64_t off, uint64_t len);

/* Are there enough? Then a loop that collects may end. */
bool wants_full(struct wants *wants);

/* Of a loop that reads: shall it go on after r, the result of one read? After -EAGAIN it shall, as
 * long as there is room for what else is missing. *all starts as 0 and is the result of the loop:
 * 0, -EAGAIN once a read gave that, or the other -errno that ended it.
 *
 *     int all = 0;
 *
 *     while (there is more) {
 *         int r = read one;
 *
 *         if (!wants_go_on(r, &all))
 *             break;
 *         if (r == 0)
 *             use it;
 *     }
 *     return all;
 */
static inline bool wants_go_on(int r, int *all)
{
    if (r == 0)
        return true;
    if (*all == 0 || r != -EAGAIN)
        *all = r;
    if (r != -EAGAIN || !wants_of_thread())
        return false;
    return !wants_full(wants_of_thread());
}

/* Note that a range was read. 0 or -ENOMEM. */
int wants_note_use(struct wants *wants, const struct blob *blob, uint64_t off, uint64_t len);

/* What was read has been used by an epoch, perhaps again (see blob_used()): tell the blobs, of
 * which some then keep it no longer. If it was not, forget it. */
enum wants_used { WANTS_UNUSED, WANTS_USED, WANTS_USED_AGAIN };
void wants_use(struct wants *wants, enum wants_used how);

/* Who waits for bytes without a thread. */
struct waiter {
    /* Called once, in any thread: all is here, or error is set. It may free the waiter. It must not
     * wait for bytes, for the one who brings them may hold a lock of that transfer. */
    void (*done)(struct waiter *waiter);
    /* Set when done() is called: 0 or -errno, with the reason. */
    _Atomic int error;
    struct diag reason;
    bool ahead; /* set before wants_fetch(): nobody waits yet, so others who do go first */
    /* Of those who bring the bytes: */
    _Atomic unsigned pending;
};

/* Ask for all that is wanted; waiter->done() is called when it is here or could not be had, perhaps
 * before this returns. Empties wants. */
void wants_fetch(struct wants *wants, struct waiter *waiter);

/* For blobs: somebody waits for one thing more; it is here, or (error < 0) cannot be had. No lock
 * but that of its transfer may be held around waiter_done(). */
void waiter_add(struct waiter *waiter);
void waiter_done(struct waiter *waiter, int error, const struct diag *reason);

#endif
