/* An index of keys: ordered rows, each with a key of any bytes and some numbers. It leads from a
 * row to its key and numbers, and from a key to its row, in constant time.
 *
 * It is made once, kept as bytes (base/index_store.h), and used in place. A row takes about 6 bytes
 * for the lookup, plus its numbers (packed by groups of rows: a column that is constant in a group
 * takes none) and its key, which shares its beginning with the key before. docs/cache-format.md
 * describes the bytes.
 *
 * Numbers in the bytes are hostile: whatever they are, no access leaves the bytes, loops for ever,
 * or gives a key longer than KEY_MAX. key_index_open() finds accidental damage by checksums. Forged
 * bytes with correct checksums lead to wrong numbers and keys (of length 0 at worst) and to rows
 * that are not found, never to worse. Keys forged to share one hash are slow to find. */
#ifndef EPOCHFS_FORMAT_CORE_KEY_INDEX_H
#define EPOCHFS_FORMAT_CORE_KEY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/scope.h"

#define KEY_INDEX_COLUMNS 24   /* at most */
#define KEY_MAX           1024 /* bytes of a key, at most */
#define KEY_INDEX_PIECES  8

/* Constant; any thread. The memory is not owned. */
struct key_index {
    uint64_t rows; /* below 2^32 */
    unsigned columns;
    const uint8_t *about; /* [about_len] data that the index's maker added */
    size_t about_len;
    uint64_t renamed;   /* rows that repeat an earlier key: they are called <key>~2, ~3, ... */
    uint64_t key_bytes; /* of all keys together */
    unsigned key_most;  /* bytes of the longest */
    /* Where the parts are in the bytes: */
    const uint8_t *part[6];
    uint64_t part_len[6];
};

/* Open an index on its bytes, which must outlive it. 0, or -EBADMSG: the bytes are no index, or
 * damaged. */
int key_index_open(const uint8_t *bytes, size_t size, struct key_index *ret);

/* The numbers of a row, below rows: [columns]. */
void key_index_row(const struct key_index *index, uint64_t row, uint64_t *ret);

/* One of them. */
uint64_t key_index_number(const struct key_index *index, uint64_t row, unsigned column);

/* The key of a row; returns its length, at most KEY_MAX. */
size_t key_index_key(const struct key_index *index, uint64_t row, uint8_t ret[static KEY_MAX]);

/* The row of that key; false where there is none. */
bool key_index_find(const struct key_index *index, const void *key, size_t len, uint64_t *ret);

/* The hash of a key, by which its row is found. Keys too long for a file name carry it in their
 * names. */
uint64_t key_hash(const void *key, size_t len);

/* The first row of that hash for which is_it() returns true; is_it() is called for rows of that
 * hash only. */
bool key_index_find_hash(const struct key_index *index, uint64_t hash,
                         bool (*is_it)(void *ctx, uint64_t row), void *ctx, uint64_t *ret);

/* An index that is being made. One thread. */
struct key_index_builder;

int key_index_builder_new(unsigned columns, struct key_index_builder **ret); /* 0 or -ENOMEM */
void key_index_builder_free(struct key_index_builder *b);                    /* takes NULL */

/* The next row. len: 1 to KEY_MAX. 0, -ENOMEM (the builder is lost), or -E2BIG: 2^32 rows. */
int key_index_add(struct key_index_builder *b, const void *key, size_t len, const uint64_t *number);

/* End the rows and rename repeated keys: a later one gets the first free of <key>~2, <key>~3, ...
 * Calls renamed() (may be NULL) for each, in the order of rows. The builder owns the index's
 * memory. Once only. 0 or -ENOMEM. */
int key_index_finish(struct key_index_builder *b,
                     void (*renamed)(void *ctx, uint64_t row, uint64_t first), void *ctx,
                     struct key_index *ret);

/* Add the maker's own data (about: may be NULL; it is copied) to a finished index, and return its
 * bytes for storing, as pieces that follow one another. Once only. 0 or -ENOMEM. */
int key_index_bytes(struct key_index_builder *b, const void *about, size_t about_len,
                    struct key_index *ret, struct iovec ret_pieces[static KEY_INDEX_PIECES]);

static inline void key_index_builder_scope_end(struct key_index_builder **b)
{
    key_index_builder_free(*b);
}
#define AUTO_KEY_INDEX_BUILDER AUTO(key_index_builder_scope_end)

#endif
