/* Content on its way into the file of an entry. If it is large, a thread writes the buffers that
 * are full, while the maker fills the next one. Only entry.c and entry_sink.c include this. */
#ifndef EPOCHFS_CACHE_DISK_ENTRY_SINK_H
#define EPOCHFS_CACHE_DISK_ENTRY_SINK_H

#include <pthread.h>

#include "base/lock.h"
#include "cache/disk/entry.h"
#include "cache/disk/quota.h"

#define SINK_BUFFERS 4

struct entry_sink {
    int fd;
    uint64_t tail; /* bytes: entry_tail() */
    /* The maker's: */
    uint64_t made; /* bytes */
    size_t used;   /* bytes of the buffer that the maker fills: number `full` */
    uint8_t *buffer[SINK_BUFFERS];
    uint64_t announced; /* bytes of the whole file, by entry_expect() */
    uint64_t expected;  /* bytes of the whole file, if beyond the quota's limit; otherwise 0 */
    pthread_t writer;
    bool has_writer;
    /* The writer's; without a writer the maker's: */
    uint64_t size;   /* bytes written */
    uint64_t wanted; /* bytes for which the disk had no space; 0: it had enough */
    uint32_t sum;    /* the CRC-32 of what was written */
    struct allowance allowance;

    struct lock lock;
    pthread_cond_t moved;
    /* Guarded by lock: */
    unsigned full, written; /* buffers so far; the maker reads `full` without the lock */
    bool is_complete;       /* no buffer will follow */
    int failed;             /* -errno of the writer, which has ended */
};

/* Begin: take space for the source's name and the trailer from the quota. 0 or -errno; in both
 * cases entry_sink_end() follows. */
int entry_sink_begin(struct entry_sink *ret, const struct entry *entry, int fd);

/* Write the last buffer; r < 0: making the content has failed with r, and nothing is written. 0 or
 * -errno: after -ENOSPC, the allowance and `wanted` say why. */
int entry_sink_end(struct entry_sink *sink, int r);

#endif
