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
    size_t used;   /* of the buffer that is filled: number `full` */
    uint8_t *buffer[SINK_BUFFERS];
    uint64_t expected; /* bytes of the file that the quota cannot have; 0: none were expected */
    pthread_t writer;
    bool has_writer;
    /* The writer's; the maker's without one: */
    uint64_t size;   /* bytes written */
    uint64_t wanted; /* bytes for which the disk had no space; 0: it had enough */
    uint32_t sum;    /* the CRC-32 of what was written */
    struct allowance allowance;

    struct lock lock;
    pthread_cond_t moved;
    /* Guarded by lock: */
    unsigned full, written; /* buffers; the maker reads `full` without */
    bool is_complete;       /* no buffer will follow */
    int failed;             /* -errno of the writer, which has ended */
};

/* Begin with the space of the source and the trailer. 0 or -errno; entry_sink_end() follows. */
int entry_sink_begin(struct entry_sink *ret, const struct entry *entry, int fd);

/* Write what is left, unless making the content failed with r. 0 or -errno: the allowance and
 * `wanted` say why there is no space. */
int entry_sink_end(struct entry_sink *sink, int r);

#endif
