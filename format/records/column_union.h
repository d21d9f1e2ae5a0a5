/* The columns of several files as those of one dataset: see format/records/record_set.h. */
#ifndef EPOCHFS_FORMAT_RECORDS_COLUMN_UNION_H
#define EPOCHFS_FORMAT_RECORDS_COLUMN_UNION_H

#include "format/records/record_set.h"

#define NO_COLUMN 0xffff /* the file has it not */

/* Starts as {0}. The files own the names and extensions that it points to. */
struct column_union {
    struct record_column *column; /* [n] sorted by name; their names are unique among arrays */
    unsigned n, n_files;
    bool is_full;   /* columns behind the last were omitted */
    uint16_t **map; /* [n_files] of each file: [n] its number of a column, or NO_COLUMN; files that
                     * follow each other may share one */
    char (*name)[RECORD_NAME_MAX + 1]; /* [n] those that were changed */
};

/* Make the union of n_files files; of(ctx, i, ret_n): the columns of file i; NULL: it has no record
 * that could lack any. 0 or -ENOMEM. */
int column_union_make(struct column_union *u, unsigned n_files,
                      const struct record_column *(*columns_of)(void *ctx, unsigned i,
                                                                unsigned *ret_n),
                      void *ctx);
void column_union_release(struct column_union *u);

#endif
