/* The bytes of an index (docs/spec/cache-format.md), for the code that reads them and the code that
 * makes them. */
#ifndef EPOCHFS_FORMAT_INDEX_INDEX_BYTES_H
#define EPOCHFS_FORMAT_INDEX_INDEX_BYTES_H

#include <assert.h>
#include <libdeflate.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/index/index.h"

#define INDEX_MAGIC  "epochidx"
#define MAGIC_BYTES  8 /* without a NUL */
#define VERSION      1
#define LEARNED      2 /* the version of an index that learns columns */
#define GROUP_ROWS   INDEX_GROUP
#define BLOCK_ROWS   16
#define BUCKET_ROWS  4 /* of a bucket, on average */
#define HEADER_BYTES 80
#define WIDTH_MAX    57  /* bits that one load of 64 can give at any bit of a byte; or all 64 */
#define NUMBERS_PAD  8   /* so that a load never leaves the numbers */
#define SHARED_MAX   255 /* bytes that a key can take from the one before */
#define LONG_REST    255 /* the rest of a key has a length of four bytes of its own */

/* The last three are empty without keys. */
enum { GROUPS, NUMBERS, KEYS, STARTS, ROWS, PRINTS, N_PARTS };

/* For the header. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_CRC = 12, /* of all bytes after it */
    AT_COLUMNS = 16,
    AT_HAS_KEYS = 18,
    AT_RISING = 20,
    AT_ROWS = 24,
    AT_ABOUT = 32,
    AT_NUMBERS_LEN = 40,
    AT_KEYS_LEN = 48,
    AT_RENAMED = 56,
    AT_KEY_BYTES = 64,
    AT_KEY_MOST = 72,
    AT_FIXED = 76 /* only with LEARNED */
};

/* For a column that was learned: its slot, and the number that all rows have where it has none. */
enum { AT_SLOT = 0, AT_CONSTANT = 2, LEARNED_BYTES = 10 };
#define NO_SLOT 0xffff

/* For a group: where its numbers begin; for each slot the width, then for each the least number;
 * with keys, where these begin, and after that its blocks. A slot is a column that is packed: of an
 * index that learns columns, those that are constant have none. */
enum { AT_NUMBERS = 0, AT_WIDTHS = 8 };
#define BLOCKS_BYTES (4 * (GROUP_ROWS / BLOCK_ROWS))

static_assert(ARRAY_LEN(((struct index *)NULL)->part) == N_PARTS, "a place for each part");
static_assert(INDEX_PIECES == N_PARTS + 3,
              "and for the header, learned columns, and the maker's data");

static inline unsigned at_least(unsigned slots, unsigned slot)
{
    return AT_WIDTHS + slots + 8 * slot;
}

static inline unsigned at_keys(unsigned slots)
{
    return at_least(slots, slots);
}

static inline unsigned at_blocks(unsigned slots)
{
    return at_keys(slots) + 8;
}

static inline unsigned group_bytes(unsigned slots, bool has_keys)
{
    return has_keys ? at_blocks(slots) + BLOCKS_BYTES : at_keys(slots);
}

/* Bytes of the group's numbers in one slot. */
static inline unsigned slot_bytes(const uint8_t *group, unsigned slot)
{
    return group[AT_WIDTHS + slot] * (GROUP_ROWS / 8u);
}

static inline bool is_rising(const struct index_shape *shape, unsigned column)
{
    return column < INDEX_COLUMNS && shape->rising >> column & 1;
}

static inline uint64_t n_groups(uint64_t rows)
{
    return ceil_div(rows, GROUP_ROWS);
}

static inline uint64_t n_buckets(uint64_t rows)
{
    return rows / BUCKET_ROWS + 1;
}

static inline uint64_t index_bucket_of(uint64_t hash, uint64_t buckets)
{
    return (hash >> 32) * buckets >> 32;
}

static inline uint8_t print_of(uint64_t hash)
{
    return (uint8_t)hash;
}

/* CRC-32, of which crc is that of the bytes before; it would start again for NULL bytes. */
static inline uint32_t index_checksum(uint32_t crc, const void *bytes, size_t len)
{
    return len ? libdeflate_crc32(crc, bytes, len) : crc;
}

/* Turn a key and its length into the next key, which is encoded at p. Returns the end of that
 * encoding; NULL: damaged. */
const uint8_t *index_next_key(const uint8_t *p, const uint8_t *end, uint8_t key[static KEY_MAX],
                              size_t *len);

#endif
