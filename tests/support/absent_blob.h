/* A blob over another one, with bytes that are absent until they are fetched, in blocks, like those
 * of a remote. For a thread that collects missing ranges the blob records them; in other threads
 * reads wait, which takes no time. */
#ifndef EPOCHFS_TESTS_SUPPORT_ABSENT_BLOB_H
#define EPOCHFS_TESTS_SUPPORT_ABSENT_BLOB_H

#include <stdatomic.h>

#include "base/blob.h"

#define ABSENT_BLOCK 512 /* bytes */

struct absent_blob;

/* The remote of one or more blobs, which must not outlive it. Starts zeroed. One thread, except for
 * reads. */
struct absent {
    struct absent_blob *first; /* all of them */
    _Atomic uint64_t reads;    /* so far */
    uint64_t fail_read;        /* the first read that fails with -EREMOTEIO, from 1; 0: none */
    uint64_t fail_times;       /* the number of reads in sequence that fail */
    uint64_t fail_fetches;     /* that many fail with -EREMOTEIO */
    uint64_t fetches;          /* so far */
    /* Called with each range that was read, by the thread that read it. NULL: no. */
    void (*note)(void *ctx, const struct blob *blob, uint64_t off, uint64_t len);
    void *ctx;
};

/* A blob of the bytes of inner; takes ownership of inner, also on error. NULL: no memory. */
struct blob *absent_blob_new(struct blob *inner, struct absent *absent);

/* Drop each block of all blobs with that chance in 256; 256: all. */
void absent_drop(struct absent *absent, unsigned chance, uint64_t *random);

#endif
