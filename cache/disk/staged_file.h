/* A staged file: the blocks of one version of a remote's file that are on this node's disk.
 *
 * It is one sparse file DIR/staged/<id>: a header, a record for each block, then the content, each
 * block at its place. A record is the checksum of its block, 0 where the block is not there. What
 * the disk has lost or changed shows in the checksums, so nothing is ever synced, and a process may
 * die at any time. Any number of processes share the file: docs/cache-format.md.
 *
 * Functions here know nothing of threads or remotes; all but open and close may be called by any
 * number of threads at once. */
#ifndef EPOCHFS_CACHE_DISK_STAGED_FILE_H
#define EPOCHFS_CACHE_DISK_STAGED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"
#include "cache/disk/folder.h"

#define STAGED_BLOCK_LEAST (UINT32_C(4) << 10)
#define STAGED_BLOCK_MOST  (UINT32_C(256) << 10)

/* Which version of which file. */
struct staged_key {
    const char *url;     /* without credentials; of a local file its absolute path */
    const char *version; /* text that two versions do not share */
    uint64_t size;       /* bytes */
    uint32_t block;      /* bytes, a power of two from STAGED_BLOCK_LEAST to _MOST */
};

/* Set by staged_open(), then constant. */
struct staged {
    int fd;
    uint64_t size;
    uint32_t block;
    uint64_t blocks; /* ceil(size / block) */
    uint64_t seed;   /* of checksums: follows from the id */
    uint64_t data;   /* where the content begins in the file, bytes */
    uint64_t end;    /* where the count of drops is, behind all else; the file is 8 bytes longer */
    char id[33];
    struct lock *space; /* around what changes the disk space that the content takes */
};

/* Open the staged file of that key, made if it is not there; one that is damaged is begun anew. 0,
 * or -errno with the reason in d: -EPROTO: the folder is of another version of epochfs, or the file
 * of a later one. */
int staged_open(struct staged *ret, const struct cache_folder *cache, const struct staged_key *key,
                struct diag *d);
void staged_close(struct staged *staged); /* frees what it holds: claims, too */

/* Bytes of a block: the last one may be shorter. */
uint32_t staged_block_len(const struct staged *staged, uint64_t block);

/* Begin the file anew if it was cut short, or its header is lost: no block is there then, and
 * staged_drops() is a number of its own. It is the file that is open, whatever its name names now.
 * key: as when it was opened. 0, or -errno and nothing is known of it still. Waits for droppers. */
int staged_mend(const struct staged *staged, const struct staged_key *key);

/* The records of n blocks; 0: not there. Records that cannot be read count as that, and all of a
 * file that was cut short. */
void staged_records(const struct staged *staged, uint64_t first, size_t n, uint64_t *ret);

/* The record that a block of that content has. Never 0. bytes: all of the block. */
uint64_t staged_checksum(const struct staged *staged, uint64_t block, const void *bytes);

/* Read len bytes of the content at byte off. 0; -ENODATA where the file is shorter; or -errno. The
 * bytes count only if the blocks' checksums were found right, and staged_drops(), asked after this,
 * is what it was before their records were looked at. Who has written a block himself knows it to
 * be right with the staged_drops() between his claim and his staged_write(). */
int staged_read(const struct staged *staged, void *buf, size_t len, uint64_t off);

/* How often blocks have been dropped from the file, by any process; UINT64_MAX where it cannot be
 * told, for the file was cut short: then nothing that is known of the blocks counts any more, and
 * nothing but staged_mend() makes it a number again, which is none of before. */
uint64_t staged_drops(const struct staged *staged);

/* Write bytes of the content. The blocks must have been claimed. 0 or -errno (-ENOSPC). */
int staged_write(const struct staged *staged, const void *bytes, size_t len, uint64_t off);

/* Publish n blocks whose content has been written. 0 or -errno. */
int staged_publish(const struct staged *staged, uint64_t first, size_t n, const uint64_t *records);

/* What became of a drop. */
struct staged_dropped {
    uint64_t freed; /* bytes of disk space; less, if another process has written to it meanwhile */
    /* staged_drops() before and after it, if nothing else was dropped in between; UINT64_MAX: they
     * say nothing. Blocks that were good with `before`, and were not to be dropped, are good with
     * `after`. */
    uint64_t before, after;
};

/* Drop n blocks, but for those that are claimed, by whomever, this process included: their records
 * first, then their bytes, which go back to the disk. 0; -EOPNOTSUPP: the file system cannot do it,
 * and nothing was changed; or -errno. Waits for other droppers. */
int staged_drop(const struct staged *staged, uint64_t first, uint64_t n,
                struct staged_dropped *ret);

/* The same for several ranges: most of the work is done once. */
struct staged_range {
    uint64_t first, n; /* blocks */
};
int staged_drop_ranges(const struct staged *staged, const struct staged_range *ranges, size_t n,
                       struct staged_dropped *ret);

/* Keep all from dropping blocks, until the descriptor is closed that it returns. Who writes blocks
 * that he could not claim does it with this. -EAGAIN: somebody drops; or -errno. Does not wait. */
int staged_exclude_drops(const struct staged *staged);

/* Bytes of disk space that the records of n blocks take if they are published now: pages that no
 * record was written to. */
uint64_t staged_publish_takes(const struct staged *staged, uint64_t first, uint64_t n);

/* Claim the first of n blocks, up to the first that another process has claimed; returns how many.
 * Claims keep processes from fetching the same; they end with the process. In one process the
 * caller sees to it that no block is claimed twice. */
uint64_t staged_claim(const struct staged *staged, uint64_t first, uint64_t n);
void staged_unclaim(const struct staged *staged, uint64_t first, uint64_t n);

/* The whole file was found to have that SHA-256 while staged_drops() was drops. Is that so still?
 * The mark is gone with the first block that is dropped. */
void staged_mark(const struct staged *staged, const uint8_t sha256[static 32], uint64_t drops);
bool staged_is_marked(const struct staged *staged, const uint8_t sha256[static 32]);

/* What is in the file of that path, for people: epochfs cache list. */
struct staged_info {
    char url[1024]; /* as much of it as fits */
    char version[256];
    uint64_t size;
    uint32_t block;
    uint64_t present; /* bytes of blocks that are there */
    uint64_t disk;    /* bytes of disk space */
    bool in_use;      /* a process has it open */
    bool damaged;     /* its header cannot be read, or it was cut short */
};
/* Of all three: -EINVAL: no file of ours is there (its name, a link, no regular file), -EPROTO: it
 * is of a later version; nothing was changed. */
int staged_inspect(const char *path, struct staged_info *ret);

/* Read all blocks of the file at path and compare their checksums; those that are wrong are
 * dropped. *ret_good, *ret_bad: blocks. 0; -EBADMSG: its header is damaged, or it was cut short;
 * -EROFS, -EACCES or -EPERM with *ret_bad > 0: they are wrong, but this process must not write; or
 * -errno. */
int staged_verify(const char *path, uint64_t *ret_good, uint64_t *ret_bad);

/* Remove the file at path unless a process uses it. 0, -EBUSY, or -errno. */
int staged_remove(const char *path);

#endif
