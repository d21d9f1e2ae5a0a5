/* The room in a cache folder: how much its files may take, and do.
 *
 * The count is shared by all processes that use the folder, in DIR/room. Who is about to write
 * takes room first, so the limit holds at every moment; what a process that died had taken and not
 * written comes back. docs/cache-format.md. */
#ifndef EPOCHFS_CACHE_DISK_QUOTA_H
#define EPOCHFS_CACHE_DISK_QUOTA_H

#include <stdint.h>

#include "base/diag.h"
#include "cache/disk/folder.h"

struct quota;

/* Opens DIR/room; the first of all processes that use it counts what the files take.
 * limit: bytes of disk space that all files of the folder may take; percent > 0: so much of the
 * size of its file system instead. 0; -EPROTO: the folder, or the count, is of another version of
 * epochfs; -EUSERS: too many processes; or -errno, with the reason in d. Any thread may use it; a
 * forked child, too, if the parent no longer does and does not close it. */
int quota_open(const struct cache_folder *cache, uint64_t limit, unsigned percent,
               struct quota **ret, struct diag *d);
void quota_close(struct quota *quota); /* takes NULL; gives back what was taken and not written */

/* Take room for bytes of disk space that are about to be used. 0, -ENOSPC: there is none, or
 * -errno. Before it says so it counts what the files take in truth, once in a while; no lock is
 * held meanwhile. */
int quota_take(struct quota *quota, uint64_t bytes);

/* They have been written: they count as the files' now. */
void quota_settle(struct quota *quota, uint64_t bytes);

/* They will not be written. */
void quota_give_back(struct quota *quota, uint64_t bytes);

/* Files have become smaller by so many bytes. mark: quota_mark() before that was begun. If the
 * files were counted since, it is left out, for they may have been counted without these bytes. */
uint64_t quota_mark(struct quota *quota);
void quota_freed(struct quota *quota, uint64_t bytes, uint64_t mark);

/* Count what the files take in truth now. 0 or -errno. */
int quota_recount(struct quota *quota);

/* What all files take, as far as is known, with what was taken, 0 where nothing is; and
 * the limit. */
uint64_t quota_used(struct quota *quota);
uint64_t quota_limit(const struct quota *quota);

#endif
