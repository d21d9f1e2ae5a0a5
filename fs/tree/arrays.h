/* The arrays of a batch, as its file of npz, npy or csc holds them, without a file around them: for
 * callers that want them in their own memory. One thread at a time, unless said otherwise. */
#ifndef EPOCHFS_FS_TREE_ARRAYS_H
#define EPOCHFS_FS_TREE_ARRAYS_H

#include "fs/tree/open_files.h"

struct batch_array {
    const struct field *field;
    struct form form;
    uint64_t bytes;
};

struct batch_arrays {
    struct file_samples samples;
    size_t n;
    struct batch_array *array; /* [n] owned */
};

/* Which fields are meant. */
struct array_choice {
    unsigned in; /* IN_NPZ_BATCHES, IN_NPY_BATCHES or IN_CSC: the files that have them */
    bool (*chosen)(const void *ctx, const struct field *f); /* NULL: all of these */
    const void *ctx;
};

/* Find the arrays of a NODE_BATCH. 0, -ENOMEM, -EINTR, -EAGAIN by the rule of missing_go_on(), or
 * -EDOM with the reason in d: the samples differ, and one array cannot hold them. Release it in any
 * case. */
int batch_arrays_init(struct read_context *rc, struct batch_arrays *ret, struct open_files *files,
                      const struct node *node, const struct array_choice *choice, struct diag *d);
void batch_arrays_release(struct batch_arrays *a); /* takes one that is {0} */
#define AUTO_BATCH_ARRAYS AUTO(batch_arrays_release)

/* Write all bytes of each array i to dst[i]; NULL: that one is omitted. Errors as of view_read(),
 * -EAGAIN included. */
int batch_arrays_read(struct read_context *rc, struct batch_arrays *a, uint8_t *const *dst,
                      struct diag *d);

#endif
