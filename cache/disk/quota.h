/* The ledger of a cache folder: how much its files may take, how much they do, and what makes place
 * for new ones.
 *
 * All processes that use the folder share the count, in DIR/room. A process takes quota before it
 * writes, so the limit holds at every moment; what a process took but did not write before it died
 * returns to the quota. docs/spec/cache-format.md. Any thread. */
#ifndef EPOCHFS_CACHE_DISK_QUOTA_H
#define EPOCHFS_CACHE_DISK_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"
#include "cache/disk/folder.h"

struct clock;
struct quota;

/* Opens DIR/room; the first process that uses it counts what the files take. limit: bytes of disk
 * space that all files of the folder may take; percent > 0: that share of the size of its file
 * system instead. 0; -EPROTO: the folder, or the count, is of another version of epochfs; -EUSERS:
 * too many processes; or -errno, with the reason in d. clock: of quota_take(); NULL: the real one.
 * A forked child may use the quota if the parent stops using it and does not close it. */
int quota_open(const struct cache_folder *cache, uint64_t limit, unsigned percent,
               const struct clock *clock, struct quota **ret, struct diag *d);
void quota_close(struct quota *quota); /* takes NULL; returns what was taken and not written */

/* Take quota for bytes of disk space that are about to be used. 0, -ENOSPC: none is left, or
 * -errno. Before it returns -ENOSPC it recounts what the files really take, if it has not done so
 * for 3 s, and removes files that no process uses, those that were not used for longest first:
 * staged and unpacked files, and parts whose maker has died, that were last used before this
 * process began. Outputs of commands are kept, because mounts that show them need not have them
 * open. It holds no lock meanwhile. */
int quota_take(struct quota *quota, uint64_t bytes);

/* Staged files that are kept: keeps() gets their URL; any thread, no lock held. Call it before the
 * first quota_take(). */
void quota_set_keeps(struct quota *quota, bool (*keeps)(void *ctx, const char *url), void *ctx);

/* Bytes of disk space that quota_take() could free that way. */
uint64_t quota_could_free(struct quota *quota);

/* Bytes that were taken have been written: from now on they count as used by the files. */
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

/* What all files take, with what is in flight, as far as it is known, otherwise 0; and the limit.
 */
uint64_t quota_used(struct quota *quota);
uint64_t quota_limit(const struct quota *quota);

/* ---- one growing file, whose final size is not known in advance ---- */

/* Used by one thread at a time. */
struct allowance {
    struct quota *quota; /* NULL: no limit */
    uint64_t taken;      /* bytes that the file may take */
    uint64_t settled;    /* of them, bytes reported as written */
    uint64_t wanted;     /* size of the file that the quota refused; 0: it never refused */
};

/* Take quota so that the file can grow to size bytes, and, if the quota allows, up to `ahead` bytes
 * more. 0; -ENOSPC: the quota refuses; or -errno. */
int allowance_raise(struct allowance *a, uint64_t size, uint64_t ahead);

/* Report that the file now has size bytes, of those it may take. */
void allowance_written(struct allowance *a, uint64_t size);

/* The file is whole and has size bytes: return the rest to the quota. */
void allowance_end(struct allowance *a, uint64_t size);

/* The file will not be finished: cut it to no bytes and return all its quota. If that fails, what
 * was written returns to the quota with the next count of the files. */
void allowance_drop(struct allowance *a, int fd);

/* Write to d why the quota refused; folder: one inside the cache folder. Returns -ENOSPC. */
int allowance_refused(const struct allowance *a, const char *folder, struct diag *d);

/* ---- unused files, and all files of one folder in the cache folder ---- */

struct inventory;
struct inventory_file;

/* Remove files that no process uses, and of which may_go() says so, until so many bytes of disk
 * space are free. Returns how many are. quota: gets them; NULL: none. */
uint64_t quota_remove_unused(struct quota *quota, const struct inventory *inventory,
                             bool (*may_go)(const void *ctx, const struct inventory_file *file),
                             const void *ctx, uint64_t bytes);

struct quota_share {
    const struct cache_folder *cache;
    const char *folder; /* "made" */
    uint64_t limit;     /* bytes of disk space of its files, of all mounts */
    struct lock lock;
    /* Guarded by lock: */
    uint64_t used;      /* what they took when they were last counted, and was taken since */
    uint64_t uncounted; /* of that, taken since */
    bool is_counted;
};

/* Take bytes of the share, not of the quota. This counts its files now and then, and removes those
 * that no process uses. 0; -ENOSPC: its files are in use, and fill it; or another -errno: they
 * cannot be counted. */
int quota_share_take(struct quota_share *share, uint64_t bytes);

#endif
