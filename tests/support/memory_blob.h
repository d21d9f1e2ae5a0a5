/* A blob over bytes in memory, which fails where a test wants it to. */
#ifndef EPOCHFS_TESTS_SUPPORT_MEMORY_BLOB_H
#define EPOCHFS_TESTS_SUPPORT_MEMORY_BLOB_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/blob.h"

/* The faults of one or more blobs, which must not outlive it. Zeroed: none. */
struct blob_faults {
    _Atomic uint64_t reads; /* so far */
    uint64_t fail_read;     /* the read that fails with -EIO, from 1; 0: none */
    bool stale;             /* check() returns -ESTALE */
    struct absent *absent;  /* their bytes are absent, see absent_blob.h; NULL: here */
};

/* A blob of size bytes: a copy of bytes [0, len), then zeros, which take no memory. faults may be
 * NULL. Its identity follows from its bytes. NULL: no memory. */
struct blob *memory_blob_new(const char *name, const void *bytes, size_t len, uint64_t size,
                             struct blob_faults *faults);

#endif
