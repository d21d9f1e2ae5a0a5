/* The bytes of an index of keys (docs/cache-format.md), for the code that reads them and the code
 * that makes them. */
#ifndef EPOCHFS_FORMAT_CORE_KEY_INDEX_BYTES_H
#define EPOCHFS_FORMAT_CORE_KEY_INDEX_BYTES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/scope.h"
#include "format/core/key_index.h"

#define KEY_INDEX_MAGIC "epochkey"
#define MAGIC_BYTES     8 /* without a NUL */
#define VERSION         1
#define GROUP_ROWS      128
#define BLOCK_ROWS      16
#define BUCKET_ROWS     4 /* of a bucket, on average */
#define HEADER_BYTES    80
#define WIDTH_MAX       57  /* bits that one load of 64 can give at any bit of a byte; or all 64 */
#define NUMBERS_PAD     8   /* so that a load never leaves the numbers */
#define SHARED_MAX      255 /* bytes that a key can take from the one before */
#define LONG_REST       255 /* the rest of a key has a length of four bytes of its own */

enum { GROUPS, NUMBERS, KEYS, STARTS, ROWS, PRINTS, N_PARTS };

/* Of the header, and of a group. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_CRC = 12, /* of all bytes after it, up to the end of the groups */
    AT_CRC_REST = 16,
    AT_COLUMNS = 20,
    AT_ROWS = 24,
    AT_RENAMED = 32,
    AT_KEY_BYTES = 40,
    AT_ABOUT = 48,
    AT_NUMBERS_LEN = 56,
    AT_KEYS_LEN = 64,
    AT_KEY_MOST = 72
};
enum { AT_NUMBERS = 0, AT_KEYS = 8, AT_BLOCKS = 16, AT_WIDTHS = 48 };

static_assert(AT_WIDTHS == AT_BLOCKS + 4 * (GROUP_ROWS / BLOCK_ROWS), "a place for each block");
static_assert(ARRAY_LEN(((struct key_index *)NULL)->part) == N_PARTS, "a place for each part");

static inline uint64_t group_bytes(unsigned columns)
{
    return AT_WIDTHS + 9 * (uint64_t)columns;
}

static inline uint64_t n_buckets(uint64_t rows)
{
    return rows / BUCKET_ROWS + 1;
}

static inline uint64_t bucket_of(uint64_t hash, uint64_t buckets)
{
    return (hash >> 32) * buckets >> 32;
}

static inline uint8_t print_of(uint64_t hash)
{
    return (uint8_t)hash;
}

/* crc32_z() would start anew for NULL bytes. */
static inline uint32_t key_index_checksum(uint32_t crc, const void *bytes, size_t len)
{
    return len ? (uint32_t)crc32_z(crc, bytes, len) : crc;
}

/* Turn a key and its length into the next key, which is encoded at p. Returns the end of that
 * encoding; NULL: damaged. */
const uint8_t *key_index_next_key(const uint8_t *p, const uint8_t *end, uint8_t key[static KEY_MAX],
                                  size_t *len);

#endif
