/* What staged_file.c and staged_file_tools.c share; no other file includes it. */
#ifndef EPOCHFS_CACHE_DISK_STAGED_FILE_PARTS_H
#define EPOCHFS_CACHE_DISK_STAGED_FILE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/disk/staged_file.h"

/* The header: docs/cache-format.md has the table. */
#define HEADER_BYTES        1536
#define HEADER_MAGIC        "epochstg"
#define HEADER_VERSION      2
#define HEADER_AT_VERSION   8
#define HEADER_AT_BLOCK     12
#define HEADER_AT_SIZE      16
#define HEADER_AT_ID        24
#define HEADER_ID_LEN       32
#define HEADER_AT_URL_LEN   56
#define HEADER_AT_NAMED_LEN 60
#define HEADER_AT_URL       64
#define HEADER_URL_SIZE     1024
#define HEADER_AT_NAMED     1088 /* the text of the version */
#define HEADER_NAMED_SIZE   256
#define HEADER_AT_CRC       1520
#define HEADER_AT_MARK      1524 /* set if the file has the right SHA-256; not in the checksum */

/* Bytes of the file that serve as locks, far behind its content. */
#define LOCK_CLAIMS (UINT64_C(1) << 61) /* + block */
#define LOCK_USE    (UINT64_C(1) << 62) /* shared by all processes that have it open */
#define LOCK_HEADER (LOCK_USE + 1)      /* held to read or write the header */
#define LOCK_DROP   (LOCK_USE + 2)      /* held to drop blocks */

#define STAGED_SIZE_MOST (UINT64_C(1) << 60)

/* 0: path is the regular file that is open as fd; -ESTALE: it no longer is. */
int staged_same_file(int fd, const char *path);

/* Read the header of the file with that id. 0; -EPROTO: a later version (*ret_version); -EBADMSG:
 * damaged, or of an older version. */
int staged_header_read(int fd, const char *id, uint8_t ret[static HEADER_BYTES],
                       uint32_t *ret_version);

/* Set all fields but fd and id from what the header says. */
void staged_layout(struct staged *ret, uint64_t size, uint32_t block);
void staged_seed(struct staged *staged);

/* The records as they are in the file, whatever its state; 0: they cannot be read. */
void staged_read_records(const struct staged *staged, uint64_t first, size_t n, uint64_t *ret);

/* Drop n blocks that this open description has claimed; it holds LOCK_DROP. 0 or -errno. */
int staged_drop_claimed(const struct staged *staged, uint64_t first, uint64_t n);

#endif
