/* Where the rows of a file of libsvm text are: its index. */
#ifndef EPOCHFS_FORMAT_LIBSVM_PLACES_H
#define EPOCHFS_FORMAT_LIBSVM_PLACES_H

#include "format/index/index.h"

#define PLACES_COLUMNS 5

struct row_place {
    uint64_t start; /* byte of the file */
    uint64_t len;   /* bytes, without the end of the line */
    uint64_t features;
};

/* Sums over the rows before a row. The text of rows counts each row as ended by one byte. */
struct row_sums {
    uint64_t text; /* bytes */
    uint64_t features;
};

/* All columns rise. */
#define PLACES_SHAPE                                                                               \
    {                                                                                              \
        .columns = PLACES_COLUMNS, .rising = (1u << PLACES_COLUMNS) - 1                            \
    }

/* The rows that were added to an index. Starts as {0}. */
struct places {
    uint64_t rows;
    uint64_t end;                    /* of the last row, with its one byte */
    uint64_t number[PLACES_COLUMNS]; /* of the last row in each column, and all its features */
    uint64_t runs;                   /* of rows that have the same qid */
    int64_t qid;                     /* of the last of them */
};

/* Add the next row, which must start at least one byte after the end of the row before. lines: of
 * the file, before the row. qid: of the row; PLACES_NO_QID: it has none, and belongs to the run of
 * the row before. 0 or -ENOMEM. */
#define PLACES_NO_QID INT64_MIN
int places_add(struct places *places, struct index_builder *b, const struct row_place *place,
               uint64_t lines, int64_t qid);

/* The numbers after the last row, for index_finish(). */
void places_end(const struct places *places, uint64_t ret[static INDEX_COLUMNS]);

/* Do the numbers of an index describe rows of a file of that size, each with no more features than
 * bytes? */
bool places_fit(const struct index *index, uint64_t size);

/* row < rows. */
struct row_place places_row(const struct index *index, uint64_t row);

/* The number of the run of rows with one qid that a row is in; row may be the number of rows: the
 * number of runs. 0 where rows have none. */
uint64_t places_run(const struct index *index, uint64_t row);

/* The number of lines of the file before a row. */
uint64_t places_lines(const struct index *index, uint64_t row);

/* row <= rows. */
struct row_sums places_sums(const struct index *index, uint64_t row);

/* How many rows start before byte offset of the file. */
uint64_t places_before(const struct index *index, uint64_t offset);

#endif
