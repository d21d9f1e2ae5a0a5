/* Small pieces of an open file are copied from a mapping of it, which the first read makes: a
 * system call costs more than such a copy. Any thread. */
#ifndef EPOCHFS_CACHE_DISK_SMALL_PIECES_H
#define EPOCHFS_CACHE_DISK_SMALL_PIECES_H

#include "base/blob.h"
#include "base/lock.h"
#include "base/mapped_file.h"

struct small_pieces {
    struct lock lock;  /* of making the mapping */
    _Atomic int state; /* enum mapping of small_pieces.c; once it is MAPPED, map is constant */
    struct mapped_file map;
    _Atomic bool is_slow; /* the last pieces took so long that they came from the disk */
};

void small_pieces_init(struct small_pieces *small);
void small_pieces_release(struct small_pieces *small); /* no thread may read */

/* Copy all pieces, which lie in the first size bytes of the file. 0; or -EOPNOTSUPP, and the caller
 * reads them: one is large; the file is small, on no disk of this machine, or shorter now than
 * size; or bytes of it could not be read. */
int small_pieces_read(struct small_pieces *small, int fd, uint64_t size,
                      const struct blob_piece *pieces, size_t n);

#endif
