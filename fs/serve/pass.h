/* Passthrough: the kernel (6.9 and later) reads a file of the mount from a file of this machine,
 * without the daemon.
 *
 * A file that is opened so has a backing file, which the daemon opens and the kernel keeps under a
 * number until the last user has closed the file. While it is open, all its opens have the same
 * backing file, or none: the kernel refuses others.
 *
 * The price: each open and close is a request. So the mount decides once, before it is served. Any
 * thread. */
#ifndef EPOCHFS_FS_SERVE_PASS_H
#define EPOCHFS_FS_SERVE_PASS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"
#include "fs/options/options.h"
#include "fs/status/status.h"
#include "fs/tree/catalog.h"

struct node;

/* Calls of the kernel, so that tests can have others. 0 or more, or -errno. */
struct pass_kernel {
    /* Keep the file open as a backing file. Returns its number, > 0. */
    int (*open)(void *ctx, int fd);
    void (*close)(void *ctx, int backing);
    void *ctx;
};

struct pass {
    struct pass_kernel kernel;
    struct open_state *state;  /* for the status */
    _Atomic uint64_t refusals; /* files that the kernel did not keep */
    bool wanted;               /* by the options, the rights and the data */

    struct lock lock;
    /* Guarded by lock: */
    void *file; /* tree of struct passed_file, see tsearch() */
};

static inline bool pass_is_on(const struct pass *p)
{
    return atomic_load(&p->state->passes);
}

/* Has this process CAP_SYS_ADMIN? */
bool pass_has_right(void);

/* Decide whether the mount is to have it. p->kernel is set. */
void pass_init(struct pass *p, enum open_mode mode, const struct catalog *catalog,
               struct open_state *state);

/* The kernel has answered: can it do so? Before the first request. */
void pass_offered(struct pass *p, bool offered);

/* A file was opened: *ret_backing: the number of its backing file; 0: none, the daemon serves it.
 * *ret_counts: call pass_closed() when this one is closed. 0; -ENOSYS: the kernel refuses all, and
 * opens by itself from now on; -ESTALE and others with the reason in d: the file cannot be
 * opened. */
int pass_opened(struct pass *p, const struct node *node, int *ret_backing, bool *ret_counts,
                struct diag *d);
void pass_closed(struct pass *p, uint64_t ino);

void pass_release(struct pass *p);

#endif
