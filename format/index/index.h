/* An index: rows 0, 1, 2, ..., each with some numbers and perhaps a key of any bytes.
 *
 * It leads from a row to its numbers and its key, and from a key to its row, in constant time. The
 * numbers of a *rising* column never fall from one row to the next: places in a file, sums over the
 * rows before. Such a column has one number more, after the last row, and it leads from a number to
 * a row, in O(log rows).
 *
 * An index is made once, kept as bytes (base/index_store.h), and used in place. Numbers are packed
 * by groups of rows, as the difference from the least of the group; a column that is constant in a
 * group takes no space but its least number, and a learned one that is constant in all rows 10
 * bytes. A key shares its beginning with the key before, and the lookup of keys
 * takes about 6 bytes per row. docs/spec/cache-format.md describes the bytes.
 *
 * The bytes are hostile: whatever they are, no access leaves them, loops for ever, or gives a key
 * longer than KEY_MAX. index_open() finds accidental damage by a checksum. Forged bytes with a
 * correct checksum lead to wrong numbers (but those of a rising column never fall), to wrong keys
 * (of length 0 at worst), and to rows that are not found, never to worse. Keys forged to share one
 * hash are slow to find. */
#ifndef EPOCHFS_FORMAT_INDEX_INDEX_H
#define EPOCHFS_FORMAT_INDEX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/scope.h"

#define INDEX_COLUMNS 24   /* at most, if they are known before the first row */
#define INDEX_LEARNED 1024 /* at most, with those that are learned */
#define KEY_MAX       1024 /* bytes of a key, at most */
#define INDEX_PIECES  9
#define INDEX_GROUP   128 /* rows that are packed together */

/* What all rows of an index have. */
struct index_shape {
    unsigned columns;
    uint32_t rising; /* bit i: column i rises */
    bool has_keys;
    bool learns; /* columns may be added while rows are; they do not rise */
};

/* Constant; any thread. The memory is not owned. */
struct index {
    struct index_shape shape;
    uint64_t rows;        /* with keys: below 2^32 */
    const uint8_t *about; /* [about_len] data that the index's maker added */
    size_t about_len;
    /* With keys: */
    uint64_t renamed;     /* rows that repeat an earlier key: they are called <key>~2, ~3, ... */
    uint64_t key_bytes;   /* of all keys together */
    unsigned key_most;    /* bytes of the longest */
    unsigned group_bytes; /* of a group's entry in the first part */
    unsigned fixed;       /* columns that were there from the start */
    unsigned slots; /* columns that are packed: those, then the learned that are not constant */
    const uint8_t *learned; /* of each learned column: its slot */
    /* Where the parts are in the bytes: */
    const uint8_t *part[6];
    uint64_t part_len[6];
};

/* Open an index on its bytes, which must outlive it. 0, or -EBADMSG: the bytes are no index, or
 * damaged. Takes one pass over the bytes. */
int index_open(const uint8_t *bytes, size_t size, struct index *ret);

/* The numbers of a row: [columns]. row may be the number of rows: then those of rising columns are
 * the numbers after the last row, the others 0. */
void index_row(const struct index *index, uint64_t row, uint64_t *ret);

/* The first n of them. */
void index_row_start(const struct index *index, uint64_t row, unsigned n, uint64_t *ret);

/* The same of a row that is below their number, and of the next: quicker than one by one. */
void index_row_pair(const struct index *index, uint64_t row, unsigned n, uint64_t *ret,
                    uint64_t *ret_next);

/* One of them. */
uint64_t index_number(const struct index *index, uint64_t row, unsigned column);

/* The numbers of a column, from a row to the last of its group: [returned], at least 1. A walk over
 * many rows takes less time this way. row may be the number of rows, as in index_row(). */
unsigned index_numbers(const struct index *index, uint64_t row, unsigned column,
                       uint64_t ret[static INDEX_GROUP]);

/* The first row whose number in a rising column is above at; the number of rows if none is. So the
 * row that contains byte or item number at is the one before. */
uint64_t index_first_above(const struct index *index, unsigned column, uint64_t at);

/* The key of a row; returns its length, at most KEY_MAX. The index must have keys, here and
 * below. */
size_t index_key(const struct index *index, uint64_t row, uint8_t ret[static KEY_MAX]);

/* The row of that key; false where there is none. */
bool index_find(const struct index *index, const void *key, size_t len, uint64_t *ret);

/* The hash of a key, by which its row is found. Keys too long for a file name carry it in their
 * names. */
uint64_t key_hash(const void *key, size_t len);

/* The first row of that hash for which is_it() returns true; is_it() is called for rows of that
 * hash only. */
bool index_find_hash(const struct index *index, uint64_t hash,
                     bool (*is_it)(void *ctx, uint64_t row), void *ctx, uint64_t *ret);

/* An index that is being made. One thread. */
struct index_builder;

int index_builder_new(const struct index_shape *shape, struct index_builder **ret); /* or -ENOMEM */
void index_builder_free(struct index_builder *b);                                   /* takes NULL */

/* Add the next row, with number[columns]; NULL: there are none. key: of len 1 to KEY_MAX; NULL and
 * 0 without keys. 0, -ENOMEM (the builder is lost), or -E2BIG: 2^32 rows with keys. */
int index_add(struct index_builder *b, const void *key, size_t len, const uint64_t *number);

/* Columns 0 .. columns - 1 exist from the next row on; of the rows before they have 0. columns: no
 * fewer than before, INDEX_LEARNED at most. The shape must allow it. 0 or -ENOMEM. */
int index_builder_columns(struct index_builder *b, unsigned columns);

/* End the rows and rename repeated keys: a later one gets the first free of <key>~2, <key>~3, ...
 * Calls renamed() (may be NULL) for each, in the order of rows. end[columns]: the numbers of rising
 * columns after the last row; NULL: no column rises. The builder owns the index's memory. Once
 * only. 0 or -ENOMEM. */
int index_finish(struct index_builder *b, const uint64_t *end,
                 void (*renamed)(void *ctx, uint64_t row, uint64_t first), void *ctx,
                 struct index *ret);

/* Add the maker's own data (about: may be NULL; it is copied) to a finished index, and return its
 * bytes for storing, as pieces that follow one another. Once only. 0 or -ENOMEM. */
int index_bytes(struct index_builder *b, const void *about, size_t about_len, struct index *ret,
                struct iovec ret_pieces[static INDEX_PIECES]);

static inline void index_builder_scope_end(struct index_builder **b)
{
    index_builder_free(*b);
}
#define AUTO_INDEX_BUILDER AUTO(index_builder_scope_end)

#endif
