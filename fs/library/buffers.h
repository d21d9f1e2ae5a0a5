/* Memory of batches, used again: a batch that is given back leaves its memory for the next one. */
#ifndef EPOCHFS_FS_LIBRARY_BUFFERS_H
#define EPOCHFS_FS_LIBRARY_BUFFERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/core/dtype.h"
#include "fs/library/epochfs.h"

#define BUFFER_ALIGN 64
#define BUFFERS_KEPT 8 /* that wait for the next batch */

struct batch_arrays;
struct buffers;

struct batch_member {
    const char *name;
    char descr[DTYPE_DESCR_SIZE];
    uint32_t ndim;
    const uint64_t *shape; /* [ndim] */
    uint64_t bytes;
    uint8_t *data;
};

struct epochfs_batch {
    struct buffers *buffers;
    uint8_t *memory; /* [capacity] */
    size_t capacity;
    size_t n;
    struct batch_member *member; /* [n]; with it: names and shapes */
};

/* 0 or -ENOMEM. buffers_close(): no batch is made any more; those that are out stay valid. */
int buffers_new(struct buffers **ret);
void buffers_close(struct buffers *buffers); /* takes NULL */

/* A batch with memory for these arrays, and what describes them. 0, -ENOMEM, -EFBIG. Any thread. */
int buffers_take(struct buffers *buffers, const struct batch_arrays *arrays,
                 struct epochfs_batch **ret);

/* What describes the arrays alone: no memory for them, data is NULL. */
int buffers_describe(const struct batch_arrays *arrays, struct epochfs_batch **ret);

/* Any thread; takes NULL. */
void buffers_give(struct epochfs_batch *batch);

#endif
