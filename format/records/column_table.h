/* The columns that a file learns while its index is made: names of any bytes, found by a hash, and
 * some numbers of the format with each. It is kept in the part `about` of the index. */
#ifndef EPOCHFS_FORMAT_RECORDS_COLUMN_TABLE_H
#define EPOCHFS_FORMAT_RECORDS_COLUMN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"
#include "format/core/numbered.h"
#include "format/index/kept.h"

#define COLUMN_NUMBERS  16   /* that a format keeps with a column */
#define COLUMNS_LEARNED 1024 /* of a file, at most */
#define COLUMN_KEY_MAX  4096 /* bytes of a name, at most */

struct learned_column {
    char *name; /* owned; a NUL follows its len bytes */
    size_t len;
    uint64_t number[COLUMN_NUMBERS]; /* the format's; 0 in a new one */
};

/* Starts as {0}. One thread changes it; once it is constant, any thread reads it. */
struct column_table {
    struct learned_column *column; /* [n] in the order in which they were found */
    unsigned n;
    unsigned most; /* of columns; 0: COLUMNS_LEARNED */
    /* Names that came when the table was full: how often one was looked for, and the first. */
    uint64_t left_out;
    char *first_out;
    struct numbered names; /* private: finds a column quickly */
};

/* The column of that name, added if it is new. 0, -E2BIG: the table is full, or the name is empty
 * or too long, which is counted; or -ENOMEM. */
int column_table_add(struct column_table *t, const void *name, size_t len, unsigned *ret);

/* The same, without adding. */
bool column_table_find(const struct column_table *t, const void *name, size_t len, unsigned *ret);

/* No more names come: free what finds them quickly. There may be very many files. */
void column_table_settle(struct column_table *t);

/* Write the table, read or forget it. No two names may be equal. */
void column_table_keep(struct kept *k, struct column_table *t);

void column_table_release(struct column_table *t);

#endif
