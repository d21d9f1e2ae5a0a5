/* What is in a cache folder, for the tools that maintain it: what each file is, whether a process
 * uses it, whether it is whole. Files whose names are not of our form are ignored.
 * docs/spec/cache-format.md. */
#ifndef EPOCHFS_CACHE_DISK_INVENTORY_H
#define EPOCHFS_CACHE_DISK_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/diag.h"
#include "cache/disk/entry.h"
#include "cache/disk/folder.h"

struct inventory_file {
    const char *folder; /* the folder that it is in: "staged", "unpacked" ... */
    char id[ENTRY_ID_SIZE];
    bool is_staged;     /* a staged file */
    bool is_sparse;     /* staged, or made: some of its content may exist; others are entries */
    bool is_part;       /* a process is making it, or died before it was whole */
    bool in_use;        /* a process uses it; of parts: is making it */
    bool is_no_file;    /* a folder, link or pipe in the place of one; counts as damaged */
    bool is_damaged;    /* it cannot be used; blocks of staged files are not checked */
    bool is_foreign;    /* an entry of another version of epochfs: not used, not damaged */
    bool is_superseded; /* there is a newer version of the same file of a remote, or of epochfs */
    uint64_t size;      /* bytes of the content, as far as it is known */
    uint64_t disk;      /* bytes of disk space */
    uid_t uid;          /* of its user */
    time_t used;        /* when it was last read or written, as far as the file system records it */
    struct timespec changed;
    char *source;     /* where the content comes from: a URL, a path or a command; may contain any
                         bytes. NULL: not known */
    uint64_t present; /* of sparse files: bytes of the content that are on disk */
};

struct inventory {
    char *path;               /* of the folder */
    struct cache_group group; /* that shares it */
    size_t n;
    struct inventory_file *file; /* by the time of their last use, the oldest first */
    uint64_t disk;               /* bytes that all of them take */
};

/* List a folder; changes nothing. 0; -ENOENT: there is none; -EPROTO: it is not a cache folder of
 * this version; or -errno, with the reason in d. */
int inventory_take(const struct cache_folder *cache, struct inventory *ret, struct diag *d);
void inventory_release(struct inventory *inventory);
#define AUTO_INVENTORY AUTO(inventory_release)

/* Set is_superseded of all files: part of inventory_take(). 0 or -ENOMEM. */
int inventory_mark_superseded(struct inventory *inventory);

/* Compare the checksums of all blocks of a staged file, of all arrays of a made one, or of the
 * whole content of an entry. What is wrong is removed: blocks, arrays, an entry as a whole. *good,
 * *bad: blocks, arrays, or files. 0, or -errno: it could not be checked, or, with *bad > 0, what is
 * wrong could not be removed. */
int inventory_verify(const struct inventory *inventory, const struct inventory_file *file,
                     uint64_t *good, uint64_t *bad);

/* Remove a file unless a process uses it. 0, -EBUSY, or -errno. */
int inventory_remove(const struct inventory *inventory, const struct inventory_file *file);

/* Remove the files whose names earlier versions of epochfs gave, unless a process uses them; of a
 * folder that a group shares, those of this user. Costs little if there are none. Returns how many;
 * *ret_bytes: the disk space that they took. */
uint64_t inventory_remove_older(const struct cache_folder *cache, uint64_t *ret_bytes);

#endif
