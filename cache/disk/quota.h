/* The quota of a cache folder: how much its files may take, and how much they do.
 *
 * All processes that use the folder share the count, in DIR/room. A process takes quota before it
 * writes, so the limit holds at every moment; what a process took but did not write before it died
 * returns to the quota. docs/cache-format.md. */
#ifndef EPOCHFS_CACHE_DISK_QUOTA_H
#define EPOCHFS_CACHE_DISK_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "cache/disk/folder.h"

struct clock;
struct quota;

/* Opens DIR/room; the first process that uses it counts what the files take. limit: bytes of disk
 * space that all files of the folder may take; percent > 0: that share of the size of its file
 * system instead. 0; -EPROTO: the folder, or the count, is of another version of epochfs; -EUSERS:
 * too many processes; or -errno, with the reason in d. clock: of quota_take(); NULL: the real one.
 * Any thread may use the quota; a forked child, too, if the parent stops using it and does not
 * close it. */
int quota_open(const struct cache_folder *cache, uint64_t limit, unsigned percent,
               const struct clock *clock, struct quota **ret, struct diag *d);
void quota_close(struct quota *quota); /* takes NULL; returns what was taken and not written */

/* Take quota for bytes of disk space that are about to be used. 0, -ENOSPC: none is left, or
 * -errno. Before it returns -ENOSPC it recounts what the files really take, if it has not done so
 * for 3 s, and removes files that no process uses (cache/disk/evict.h). It holds no lock meanwhile.
 */
int quota_take(struct quota *quota, uint64_t bytes);

/* Staged files that stay: keeps() gets their URL; any thread, no lock held. Call it before the
 * first quota_take(). */
void quota_set_keeps(struct quota *quota, bool (*keeps)(void *ctx, const char *url), void *ctx);

/* Bytes of disk space that quota_take() could free that way. */
uint64_t quota_could_free(struct quota *quota);

/* Bytes that were taken have been written: from now on they count as taken by the files. */
void quota_settle(struct quota *quota, uint64_t bytes);

/* Bytes that were taken will not be written. */
void quota_give_back(struct quota *quota, uint64_t bytes);

/* Files have become smaller by that many bytes. mark: quota_mark() from before that began. If the
 * files were counted since, the call does nothing: that count may already be without these bytes.
 */
uint64_t quota_mark(struct quota *quota);
void quota_freed(struct quota *quota, uint64_t bytes, uint64_t mark);

/* Count what the files really take now. 0 or -errno. */
int quota_recount(struct quota *quota);

/* Has another process kept the account locked, so that nothing could be taken? */
bool quota_is_kept(struct quota *quota);

/* What all files take, with what is in flight, as far as it is known, else 0; and the limit. */
uint64_t quota_used(struct quota *quota);
uint64_t quota_limit(const struct quota *quota);

#endif
