/* The index of the rows of a text file: where each row starts, how long it is, and how many
 * features it has, in a few bits per row.
 *
 * Rows form groups of 128. A group stores the sums before its first row; each of its rows stores
 * differences from those, in as many bits as the group needs. Any row, and any sum over rows, is
 * found in O(1). docs/cache-format.md describes the bytes. They may be forged with a correct
 * checksum, so row_index_open() checks every number: the sums never fall, and no access leaves the
 * bytes.
 *
 * The text of rows counts each row as ended by one byte. */
#ifndef EPOCHFS_FORMAT_CORE_ROW_INDEX_H
#define EPOCHFS_FORMAT_CORE_ROW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define ROW_INDEX_ABOUT  5 /* numbers that the format keeps with the index */
#define ROW_INDEX_PIECES 3

/* Constant; any thread. The memory is not owned. */
struct row_index {
    uint64_t rows;
    uint64_t n_groups;
    const uint8_t *group; /* [n_groups + 1] */
    const uint8_t *data;
    uint64_t end; /* no row ends after this byte of the file; its line may, by one */
    uint64_t about[ROW_INDEX_ABOUT];
};

/* Sums over the rows before a row. */
struct row_sums {
    uint64_t text; /* bytes */
    uint64_t features;
};

struct row_place {
    uint64_t start; /* byte of the file */
    uint64_t len;   /* bytes, without the end of the line */
    uint64_t features;
};

/* row <= rows. */
struct row_sums row_index_sums(const struct row_index *index, uint64_t row);

/* row < rows. */
struct row_place row_index_place(const struct row_index *index, uint64_t row);

/* How many rows start before byte offset of the file. */
uint64_t row_index_before(const struct row_index *index, uint64_t offset);

/* The row that contains byte (or feature) number at, counted over all rows: the last row with a sum
 * before it that does not exceed at. rows > 0. */
uint64_t row_index_of_text(const struct row_index *index, uint64_t at);
uint64_t row_index_of_feature(const struct row_index *index, uint64_t at);

/* The nearest row, not after row, with a known number of lines before it. */
uint64_t row_index_known_line(const struct row_index *index, uint64_t row, uint64_t *ret_lines);

/* Open an index on its bytes, which must outlive it. 0, or -EBADMSG: the bytes are no index, or
 * damaged. */
int row_index_open(const uint8_t *bytes, size_t size, struct row_index *ret);

/* An index that is being made. */
struct row_index_builder;

int row_index_builder_new(struct row_index_builder **ret); /* 0 or -ENOMEM */
void row_index_builder_free(struct row_index_builder *b);  /* takes NULL */

/* Add the next row, which must start at least one byte after the end of the row before. lines: of
 * the file, before the row. 0 or -ENOMEM. */
int row_index_add(struct row_index_builder *b, const struct row_place *place, uint64_t lines);

/* End the rows: returns an index in the builder's memory, and its bytes in pieces for storing. Once
 * only. 0 or -ENOMEM. */
int row_index_finish(struct row_index_builder *b, const uint64_t about[static ROW_INDEX_ABOUT],
                     struct row_index *ret, struct iovec ret_pieces[static ROW_INDEX_PIECES]);

#endif
