/* The made store of a cache folder: files DIR/made/<id> of arrays of one size, each with a
 * checksum. docs/spec/cache-format.md has the bytes.
 *
 * A file is sparse and grows in any order. An array is written, then its record. Nothing is synced:
 * after a power failure a lost array does not match its record. Nothing else in the file is ever
 * trusted: sizes and places come from the caller. */
#ifndef EPOCHFS_CACHE_DISK_MADE_FILES_H
#define EPOCHFS_CACHE_DISK_MADE_FILES_H

#include "base/diag.h"
#include "base/made_store.h"
#include "cache/disk/quota.h"

struct made_files {
    struct made_store store;
    struct quota_share share; /* of all files in made/ */
    struct notices notices;
    _Atomic bool is_full; /* nothing more is kept */
};

/* folder must outlive it. notices: say once why nothing more is kept. */
void made_files_init(struct made_files *ret, const struct cache_folder *folder, uint64_t limit,
                     const struct notices *notices);
void made_files_release(struct made_files *made);

/* Look at a file, for the tools that maintain the folder: size, present and source. group: of the
 * cache folder; NULL: it is private. 0; -EBADMSG: it is no such file, or another version's; or
 * -errno. */
struct inventory_file;
int made_inspect(const struct cache_group *group, const char *path, struct inventory_file *ret);

/* Compare all arrays with their checksums, and remove those that do not match. *good, *bad: arrays.
 * 0; -EBADMSG: it is no such file; or -errno. */
int made_verify(const struct cache_group *group, const char *path, uint64_t *good, uint64_t *bad);

#endif
