/* A staged file: the blocks of one version of a remote's file that are on this node's disk.
 *
 * It is two sparse files. DIR/staged/<id>, which names it, has a header and a record for each
 * block: its checksum, 0 where the block is not there. DIR/staged/<id>.content has the blocks, each
 * at its place from byte 0 on; once it is sealed, it is the remote's file byte for byte, so that
 * the kernel can read it for a reader. Checksums detect what the disk has lost or changed, so
 * nothing is ever synced, and a process may die at any time. Any number of processes share both:
 * docs/spec/cache-format.md.
 *
 * The functions know nothing of remotes; any number of threads may call all but open and close at
 * once. */
#ifndef EPOCHFS_CACHE_DISK_STAGED_FILE_H
#define EPOCHFS_CACHE_DISK_STAGED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"
#include "cache/disk/folder.h"
#include "cache/disk/sha256.h"

#define STAGED_CONTENT_SUFFIX ".content"
#define STAGED_OLD_DIGITS     32 /* of the names that versions before 4 gave */

#define STAGED_BLOCK_LEAST (UINT32_C(4) << 10)
#define STAGED_BLOCK_MOST  (UINT32_C(256) << 10)

/* Which version of which file. */
struct staged_key {
    const char *url;     /* without credentials; for a local file, its absolute path */
    const char *version; /* a text that no two versions share */
    uint64_t size;       /* bytes */
    uint32_t block;      /* bytes, a power of two from STAGED_BLOCK_LEAST to _MOST */
};

struct blob_piece;
struct inventory_file;
struct staged_shared;

/* Set by staged_open(), then constant. */
struct staged {
    int fd;      /* the content; has the locks */
    int records; /* header and records */
    uint64_t size;
    uint32_t block;
    uint64_t blocks; /* ceil(size / block) */
    uint64_t seed;   /* of checksums: computed from the header */
    uint64_t end;    /* where the count of drops is in the content, unless it is sealed */
    uint8_t digest[DIGEST_BYTES]; /* of the key: all that tells a file */
    char id[DIGEST_TEXT_SIZE];    /* the digest's digits: the name of the file */
    bool is_in_memory;            /* see staged_open_in_memory() */
    struct staged_shared *shared; /* among copies of this struct */
};

/* Open the staged file of a key; make it if there is none, begin it again if it is damaged. 0, or
 * -errno with the reason in d: -EPROTO: the folder is of another version of epochfs, or the file of
 * a later one; -EBUSY: other processes use the file with that name for another key. */
int staged_open(struct staged *ret, const struct cache_folder *cache, const struct staged_key *key,
                struct diag *d);

/* The same where the cache has no room for the file: an empty one, in memory, of this process
 * alone. Nothing may write blocks to it. */
int staged_open_in_memory(struct staged *ret, const struct staged_key *key, struct diag *d);
void staged_close(struct staged *staged); /* ends its claims as well */

/* Bytes of a block; the last block may be shorter. */
uint32_t staged_block_len(const struct staged *staged, uint64_t block);

/* Before blocks are learned again: staged_drops() of a file that still has the header of its key.
 * If it was cut short, or its header is lost, it is begun again: it then has no blocks, and the
 * number is one that it never had before. Mends the open file, whatever its path names by now. key:
 * as at staged_open(). UINT64_MAX: it cannot be mended, or is another key's now, and nothing that
 * it has may be read or written. May wait for threads and processes that drop blocks. */
uint64_t staged_mend(const struct staged *staged, const struct staged_key *key);

/* The records of n blocks; 0: the block is not there. Records that cannot be read, and all records
 * of a file that was cut short, count as 0. */
void staged_records(const struct staged *staged, uint64_t first, size_t n, uint64_t *ret);

/* The record of a block with that content. Never 0. bytes: all of the block. */
uint64_t staged_checksum(const struct staged *staged, uint64_t block, const void *bytes);

/* Read len bytes of the content at byte off. 0; -ENODATA: the file is shorter; or -errno. The bytes
 * are good only if the blocks' checksums match, and staged_drops(), asked after this read, is what
 * it was before their records were read. A writer knows its own block to be good with the value
 * that staged_drops() had between its claim and its staged_write(). */
int staged_read(const struct staged *staged, void *buf, size_t len, uint64_t off);

/* The same for n pieces inside the file. */
int staged_read_many(const struct staged *staged, const struct blob_piece *pieces, size_t n);

/* A number that changes whenever any process drops blocks of the file; of a sealed file, whenever
 * anybody changes its content. UINT64_MAX: not known, because the content was cut short: then
 * nothing that is known of the blocks holds any more, and only staged_mend() makes it a number
 * again, one that it never was before. */
uint64_t staged_drops(const struct staged *staged);

/* Write bytes of the content. The blocks must have been claimed. 0 or -errno (-ENOSPC). */
int staged_write(const struct staged *staged, const void *bytes, size_t len, uint64_t off);

/* Publish n blocks whose content has been written. 0 or -errno. */
int staged_publish(const struct staged *staged, uint64_t first, size_t n, const uint64_t *records);

/* What became of a drop. */
struct staged_dropped {
    uint64_t freed; /* bytes of disk space; less if another process has written meanwhile */
    /* staged_drops() before and after the drop, if nothing else was dropped in between; UINT64_MAX:
     * not known. Blocks that were good with `before`, and were not to be dropped, are good with
     * `after`. */
    uint64_t before, after;
};

/* Drop the blocks of n ranges, except those that any process, this one included, has claimed: first
 * their records, then their bytes, whose disk space is freed. 0; -EOPNOTSUPP: the file system
 * cannot punch holes, and nothing was changed; -EBUSY: readers have the content open by
 * staged_open_sealed(), and nothing was changed; or -errno. Waits for other drops. */
struct staged_range {
    uint64_t first, n; /* blocks */
};
int staged_drop_ranges(const struct staged *staged, const struct staged_range *ranges, size_t n,
                       struct staged_dropped *ret);

/* The same for a block whose bytes are wrong. If readers have the content open, its bytes stay
 * until they are written again. */
int staged_drop_bad(const struct staged *staged, uint64_t block, struct staged_dropped *ret);

/* Make the content the remote's file, byte for byte: all blocks have records, and nothing follows
 * them. staged_drops() is another number afterwards, so each process compares the blocks again.
 * sha256: NULL, or the file's: its mark remains. 0, even if it is sealed; -ENODATA: a block is not
 * here; -EAGAIN: a drop is under way, or the file was cut short; or -errno. */
int staged_seal(const struct staged *staged, const uint8_t *sha256);

/* Open the sealed content, for reading. No process drops blocks of it until the last copy of the
 * descriptor is closed, those that the kernel keeps included. The bytes are good if all blocks are
 * found good after this call, and staged_drops() is the same before and after that. 0; -EAGAIN: a
 * drop is under way, or it is not sealed; or -errno. */
int staged_open_sealed(const struct staged *staged, int *ret_fd);

/* Keep every process from dropping blocks until the caller closes the returned descriptor. A writer
 * of blocks that it could not claim needs this. -EAGAIN: a drop is under way; or -errno. Does not
 * wait. */
int staged_exclude_drops(const struct staged *staged);

/* Bytes of disk space that publishing the records of n blocks takes now: the pages without any
 * record yet. */
uint64_t staged_publish_takes(const struct staged *staged, uint64_t first, uint64_t n);

/* Claim the first of n blocks, up to the first that another process has claimed; returns how many.
 * Claims keep two processes from fetching the same block; they end with the process. Within a
 * process the caller ensures that no block is claimed twice. */
uint64_t staged_claim(const struct staged *staged, uint64_t first, uint64_t n);
void staged_unclaim(const struct staged *staged, uint64_t first, uint64_t n);

/* How many of n blocks come before the first that another process has claimed. */
uint64_t staged_unclaimed(const struct staged *staged, uint64_t first, uint64_t n);

/* Mark the whole file as found to have that SHA-256 while staged_drops() was drops; ask whether it
 * still is marked. The first drop of a block ends the mark. */
void staged_mark(const struct staged *staged, const uint8_t sha256[static 32], uint64_t drops);
bool staged_is_marked(const struct staged *staged, const uint8_t sha256[static 32]);

/* What is in the file at a path, for the tools that maintain the folder: size, present, disk,
 * in_use, is_damaged; is_foreign, if it is of an earlier version; source, the URL as far as it
 * fits, unless it is damaged. group: of the cache folder; NULL: it is private. All three: -EINVAL:
 * not a staged file (its name, a link, not a regular file), -EPROTO: it is of a later version;
 * nothing was changed. */
int staged_inspect(const struct cache_group *group, const char *path, struct inventory_file *ret);

/* Read all blocks of the file at path and compare their checksums; drop those that are wrong.
 * *good, *bad: blocks. 0; -EBADMSG: its header is damaged, or it was cut short; -EROFS,
 * -EACCES or -EPERM with *bad > 0: blocks are wrong, but this process may not write; or -errno.
 */
int staged_verify(const struct cache_group *group, const char *path, uint64_t *good, uint64_t *bad);

/* Remove the file at path unless a process uses it. 0, -EBUSY, or -errno. */
int staged_remove(const struct cache_group *group, const char *path);

#endif
