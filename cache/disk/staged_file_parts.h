/* What the files of staged files share; no other file includes it. staged_header.c (header and
 * counter) is the lowest, staged_file.c (open, blocks) uses it, and staged_drop.c (claims, drops)
 * and staged_file_tools.c (for people) use both. */
#ifndef EPOCHFS_CACHE_DISK_STAGED_FILE_PARTS_H
#define EPOCHFS_CACHE_DISK_STAGED_FILE_PARTS_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cache/disk/local_file.h"
#include "cache/disk/sha256.h"
#include "cache/disk/small_pieces.h"
#include "cache/disk/staged_file.h"

/* The header: docs/spec/cache-format.md has the table. */
#define HEADER_BYTES        1536
#define HEADER_MAGIC        "epochstg"
#define HEADER_VERSION      4
#define HEADER_AT_VERSION   8
#define HEADER_AT_BLOCK     12
#define HEADER_AT_SIZE      16
#define HEADER_AT_ID        24 /* DIGEST_BYTES */
#define HEADER_AT_URL_LEN   56
#define HEADER_AT_NAMED_LEN 60
#define HEADER_AT_URL       64
#define HEADER_URL_SIZE     1024
#define HEADER_AT_NAMED     1088 /* the text of the version */
#define HEADER_NAMED_SIZE   256
#define HEADER_AT_CRC       1520
/* Not in the checksum: */
#define HEADER_AT_MARK   1524 /* set if the file has the right SHA-256 */
#define HEADER_AT_SEALED 1528 /* of a sealed content: a number, otherwise 0 */

/* Bytes of the content that serve as locks, far behind its end. */
#define LOCK_CLAIMS (UINT64_C(1) << 61) /* + block */
#define LOCK_USE    FILE_LOCK_USE       /* shared by all processes that have it open */
#define LOCK_HEADER (LOCK_USE + 1)      /* held to read or write the header */
#define LOCK_DROP   (LOCK_USE + 2)      /* held to drop blocks, to seal the content */
#define LOCK_SEALED (LOCK_USE + 3)      /* shared by those who read without staged_drops() */

#define STAGED_SIZE_MOST (UINT64_C(1) << 60)

#define PAGE        4096
#define RECORD      8 /* bytes */
#define DROPS_BYTES 8

struct staged_shared {
    struct lock space;         /* held while the disk space of the content changes */
    struct small_pieces small; /* of the content */
    /* A sealed content has the file's size. The number that stands for its count of drops is
     * computed from HEADER_AT_SEALED and the time of its last change. HEADER_AT_SEALED as it was
     * read when that was the time of the last change: each may be of another moment than the other,
     * see staged_drops(). 0: not known. */
    _Atomic uint64_t number;
    _Atomic int64_t changed;
};

/* ---- staged_header.c ---- */

/* SHA-256 of all that a key says, which is the file's id. 0 or -ENOMEM. */
int staged_make_digest(const struct staged_key *key, uint8_t ret[static DIGEST_BYTES]);

/* The header that the file of a key must have. */
void staged_make_header(const uint8_t digest[static DIGEST_BYTES], const struct staged_key *key,
                        uint8_t ret[static HEADER_BYTES]);

/* A counter that was never used before, and is not 0. */
uint64_t staged_new_drops(void);

/* Write the counter, behind the content: it is not sealed any more. 0 or -errno. */
int staged_set_drops(const struct staged *staged, uint64_t drops);

/* The number of a sealed content in the header. 0: it is not sealed. */
uint64_t staged_sealed_number(const struct staged *staged);
int staged_set_sealed_number(const struct staged *staged, uint64_t number);

/* Has the content the size that it has when it is sealed? */
bool staged_has_size(const struct staged *staged);

/* Change the time of the last change of a sealed content. 0 or -errno. */
int staged_touch(const struct staged *staged);

/* Make sure that the file has that header and a count of drops. LOCK_HEADER is held, and the
 * descriptor `use` has LOCK_USE. 0; -EBUSY: it has the header of another key, and other processes
 * use it; or -errno, with the reason in d. path: for messages. */
int staged_prepare(const struct staged *staged, int use, const uint8_t header[static HEADER_BYTES],
                   const char *path, struct diag *d);

/* Read the header of a file. 0; -EPROTO: of a later version; -EBADMSG: damaged, or of an older
 * version. header and *version are then what was found. */
int staged_header_read(int fd, uint8_t header[static HEADER_BYTES], uint32_t *version);

/* Set what follows from a header whose size and bytes of a block are within bounds. */
void staged_layout(struct staged *ret, const uint8_t header[static HEADER_BYTES]);

/* ---- staged_file.c ---- */

/* 0 or -ENOMEM; staged_close() frees it. */
int staged_shared_new(struct staged_shared **ret);

/* The path of the content, from that of the file that names it. */
void staged_content_path(const char *path, char ret[static PATH_MAX]);

/* The records as they are in the file, whatever its state; 0: they cannot be read. */
void staged_read_records(const struct staged *staged, uint64_t first, size_t n, uint64_t *ret);

/* ---- staged_drop.c ---- */

/* Drop a block that this open description has claimed and that is wrong; it holds LOCK_DROP. 0 or
 * -errno. */
int staged_drop_wrong(const struct staged *staged, uint64_t block);

#endif
