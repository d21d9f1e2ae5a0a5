/* Values of samples that no file of theirs holds: what tables and annotations say of them. Columns
 * in memory, with one row for each sample, in the order of the samples.
 *
 * One thread makes them; then they are constant, and any thread reads them. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_VALUE_COLUMNS_H
#define EPOCHFS_FORMAT_ANNOTATIONS_VALUE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"
#include "format/core/dtype.h"
#include "format/index/kept.h"

struct blob;
struct text;

enum value_form {
    VALUE_NUMBERS,
    VALUE_TEXT,  /* UTF-8; an item is a byte */
    VALUE_PARTS, /* a text too: a JSON list of parts of a file, which are read when it is read; an
                  * item is a struct value_part */
};

struct value_part {
    uint64_t at, len; /* in the source of the column; of no bytes: null */
};

struct value_column {
    char *name; /* of the field */
    enum value_form form;
    enum dtype dtype; /* of numbers: DTYPE_I8, _F4, _F8 or _U1 */
    bool is_list;     /* a row has any number of items, with one axis for that; texts always have */
    struct blob *source; /* of VALUE_PARTS: where they are; not owned */
    unsigned width;      /* numbers of an item; 0: it is one number without an axis. So boxes of a
                          * sample, [n, 4], are a list of width 4, and its label is no list of width 0 */

    uint64_t rows;  /* that are complete */
    uint8_t *bytes; /* of all items, little-endian */
    size_t len, capacity;
    uint64_t *end;  /* [rows] items up to the end of each row; of lists and texts only */
    uint8_t *holes; /* [rows] 1: the sample has no such field; NULL: each has it */
    bool failed;    /* memory ran out: all that adds to it fails from then on */
};

struct value_columns {
    struct value_column *column; /* [n] */
    unsigned n;
};

/* A column more, whose name is copied; *ret is valid until the next is added. 0, or -ENOMEM and
 * NULL, to which all that is added fails. So of several calls for a column, only the last need be
 * checked. */
int value_columns_add(struct value_columns *t, const char *name, enum value_form form,
                      enum dtype dtype, bool is_list, unsigned width, struct value_column **ret);

/* The column of that name, or NULL. */
struct value_column *value_columns_find(const struct value_columns *t, const char *name);

/* Remove column i; those after it move. */
void value_columns_remove(struct value_columns *t, unsigned i);

/* Bytes of an item. */
size_t value_item_bytes(const struct value_column *c);

/* Add n items to the row that is being made. 0 or -ENOMEM. */
int value_column_append(struct value_column *c, const void *items, size_t n);

/* The row is complete. A list or text gets the items since the last row, which may be none. Others
 * have exactly one item in a row; without it the row is a hole. 0 or -ENOMEM. */
int value_column_end_row(struct value_column *c);

/* The same, and the sample has no such field: items since the last row are dropped. */
int value_column_end_hole(struct value_column *c);

/* Add n items as the row of that number; rows before it that are not complete are holes. 0 or
 * -ENOMEM. */
int value_column_set(struct value_column *c, uint64_t row, const void *items, size_t n);

/* Remove the first row, which exists. */
void value_column_drop_first(struct value_column *c);

/* Holes up to that many rows, in all columns. 0 or -ENOMEM. */
int value_columns_end(struct value_columns *t, uint64_t rows);

/* Convert texts that are all numbers, as JSON writes them, to DTYPE_I8 or _F8. width: numbers in
 * each text, with white space between them, as the column has them. 0 or -ENOMEM. */
int value_column_to_numbers(struct value_column *c, enum dtype dtype, unsigned width);

/* Columns of texts that are all whole numbers become DTYPE_I8. 0 or -ENOMEM. */
int value_columns_find_integers(struct value_columns *t,
                                bool (*is_integer)(const char *text, size_t len));

/* Make columns whose row i is row[i] of `from`; VALUE_NO_ROW: a hole. row NULL: the same row. 0 or
 * -ENOMEM. */
#define VALUE_NO_ROW UINT32_MAX
int value_columns_pick(const struct value_columns *from, const uint32_t *row, size_t n,
                       struct value_columns *ret);

/* ---- reading ---- */

static inline bool value_is_hole(const struct value_column *c, uint64_t row)
{
    return c->holes && c->holes[row];
}

/* The items of a row: how many, and where the first is. */
uint64_t value_items(const struct value_column *c, uint64_t row, const uint8_t **ret);

/* ---- keeping ---- */

/* Keep columns without VALUE_PARTS, of that many rows each. */
void value_columns_keep(struct kept *k, struct value_columns *t, uint64_t rows);

void value_columns_release(struct value_columns *t); /* of one that starts as {0} */
#define AUTO_VALUE_COLUMNS AUTO(value_columns_release)

#endif
