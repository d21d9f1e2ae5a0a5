/* The room in a cache folder: how much its files may take, and do.
 *
 * The count is shared by all processes that use the folder, in DIR/room. Who is about to write
 * takes room first, so the limit holds at every moment; what a process that died had taken and not
 * written comes back. docs/cache-format.md. */
#ifndef EPOCHFS_CACHE_ROOM_H
#define EPOCHFS_CACHE_ROOM_H

#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"
#include "cache/folder.h"

struct room;

/* limit: bytes of disk space that all files of the folder may take; percent > 0: so much of the
 * size of its file system instead. 0 or -errno. Any thread may use it; a forked child, too, if the
 * parent no longer does. */
int room_open(const struct cache_folder *cache, uint64_t limit, unsigned percent, struct room **ret,
              struct diag *d);
void room_close(struct room *room); /* takes NULL; gives back what was taken and not written */

/* Take room for bytes that are about to be written. 0, -ENOSPC: there is none, or -errno. Before it
 * says so it counts what the files take in truth, once in a while. */
int room_take(struct room *room, uint64_t bytes);

/* They have been written: they count as the files' now. */
void room_settle(struct room *room, uint64_t bytes);

/* They will not be written. */
void room_give_back(struct room *room, uint64_t bytes);

/* Files have become smaller by so many bytes. */
void room_freed(struct room *room, uint64_t bytes);

/* What all files take, as far as is known, and the limit. */
uint64_t room_used(struct room *room);
uint64_t room_limit(const struct room *room);

#endif
