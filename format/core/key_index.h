/* An index of keys: rows in an order, each with a key of any bytes and some numbers; from a row to
 * its key and numbers, and from a key to its row, in constant time.
 *
 * It is made once, kept as bytes (base/index_store.h), and used where it stands: about 6 bytes a
 * row for finding, some for the numbers (packed by groups of rows: a column that is constant in a
 * group takes none) and the keys, of which neighbours share their beginnings. The bytes are
 * described in docs/cache-format.md.
 *
 * Numbers in the bytes are hostile: no access leaves the bytes, goes on for ever, or gives a key
 * longer than KEY_MAX, whatever they are. key_index_open() finds any damage by checksums. Bytes of
 * somebody who means harm, with checksums that are right, give other numbers and keys (of length 0
 * at worst), and rows that are not found. Keys that are made to have one hash are slow to find. */
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

/* Constant; any thread. The memory is another's. */
struct key_index {
    uint64_t rows; /* below 2^32 */
    unsigned columns;
    const uint8_t *about; /* [about_len] what its maker added */
    size_t about_len;
    uint64_t renamed; /* rows whose key stood before: the later ones are called <key>~2, ~3, ... */
    uint64_t key_bytes; /* of all keys together */
    unsigned key_most;  /* bytes of the longest */
    /* Where the parts stand, in the bytes: */
    const uint8_t *part[6];
    uint64_t part_len[6];
};

/* Take an index from its bytes, which must stay. 0, or -EBADMSG: they are none, or damaged. */
int key_index_open(const uint8_t *bytes, size_t size, struct key_index *ret);

/* The numbers of a row, below rows: [columns]. */
void key_index_row(const struct key_index *index, uint64_t row, uint64_t *ret);

/* One of them. */
uint64_t key_index_number(const struct key_index *index, uint64_t row, unsigned column);

/* The key of a row; returns its length, at most KEY_MAX. */
size_t key_index_key(const struct key_index *index, uint64_t row, uint8_t ret[static KEY_MAX]);

/* The row of that key; false where there is none. */
bool key_index_find(const struct key_index *index, const void *key, size_t len, uint64_t *ret);

/* The hash that rows are found by: for names of keys that are too long for a file name. */
uint64_t key_hash(const void *key, size_t len);

/* The first row of that hash for which is_it() says yes; it is asked about rows of that hash
 * only. */
bool key_index_find_hash(const struct key_index *index, uint64_t hash,
                         bool (*is_it)(void *ctx, uint64_t row), void *ctx, uint64_t *ret);

/* An index that is being made. One thread. */
struct key_index_builder;

int key_index_builder_new(unsigned columns, struct key_index_builder **ret); /* 0 or -ENOMEM */
void key_index_builder_free(struct key_index_builder *b);                    /* takes NULL */

/* The next row. len: 1 to KEY_MAX. 0, -ENOMEM (the builder is lost), or -E2BIG: 2^32 rows. */
int key_index_add(struct key_index_builder *b, const void *key, size_t len, const uint64_t *number);

/* No more rows: keys that stand twice are renamed. The later one gets the first free of <key>~2,
 * <key>~3, ...; renamed() (may be NULL) is told of each, in the order of rows. The index stands in
 * the builder's memory from now on. Once only. 0 or -ENOMEM. */
int key_index_finish(struct key_index_builder *b,
                     void (*renamed)(void *ctx, uint64_t row, uint64_t first), void *ctx,
                     struct key_index *ret);

/* Add what its maker has to say of a finished index (may be NULL; it is copied), and get its bytes
 * in pieces for storing, one behind another. Once only. 0 or -ENOMEM. */
int key_index_bytes(struct key_index_builder *b, const void *about, size_t about_len,
                    struct key_index *ret, struct iovec ret_pieces[static KEY_INDEX_PIECES]);

static inline void key_index_builder_scope_end(struct key_index_builder **b)
{
    key_index_builder_free(*b);
}
#define AUTO_KEY_INDEX_BUILDER AUTO(key_index_builder_scope_end)

#endif
