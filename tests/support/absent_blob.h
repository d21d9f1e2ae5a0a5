/* A blob whose bytes are not here until they are fetched, as those of a remote: in blocks, over
 * another blob. What a thread whose wants collect misses is noted; in other threads reads wait,
 * which takes no time. */
#ifndef EPOCHFS_TESTS_SUPPORT_ABSENT_BLOB_H
#define EPOCHFS_TESTS_SUPPORT_ABSENT_BLOB_H

#include <stdatomic.h>

#include "base/blob.h"

#define ABSENT_BLOCK 512 /* bytes */

struct absent_blob;

/* The remote of one or more blobs, which must not outlive it. Starts zeroed. By one thread, but for
 * reads. */
struct absent {
    struct absent_blob *first; /* all of them */
    _Atomic uint64_t reads;    /* so far */
    uint64_t fail_read;        /* the first read that fails with -EREMOTEIO, from 1; 0: none */
    uint64_t fail_times;       /* and as many in all, one after another */
    uint64_t fail_fetches;     /* that many fail with -EREMOTEIO */
    uint64_t fetches;          /* so far */
};

/* A blob of the bytes of inner, which it takes over, also on error. NULL: no memory. */
struct blob *absent_blob_new(struct blob *inner, struct absent *absent);

/* Drop each block of all blobs with that chance in 256; 256: all. */
void absent_drop(struct absent *absent, unsigned chance, uint64_t *random);

#endif
