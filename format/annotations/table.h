/* Tables and lists that name pictures: which column names pictures, and what the others say of
 * them.
 *
 * A table has a row for each line of CSV (RFC 4180) between commas, tabs or semicolons. A text is a
 * list of `picture rest`: the first word of a line names the picture, or all of the line does.
 * Which of these a file is, and whether its first row is a header, its first rows decide: the
 * reading by which they name most pictures is taken.
 *
 * The key is the column that names pictures: at least half of its values name one, and none names
 * two. Where several do, columns whose values have an extension or a path go before others (an
 * index of rows may look like the stems of numbered pictures); then those with a name; then the one
 * that names most pictures, then the one with most matches, then the first.
 *
 * All others are value columns: int64 if all cells are whole numbers, float64 if all are numbers,
 * as metadata.csv has them (007 is text), otherwise text. White space around a cell without quotes
 * does not count. An empty cell is a hole. A column is called as the header has it: bytes that are
 * no text, and '/', become '_'; a name that is empty, or that an earlier column has, becomes
 * `column_<number from 0>`, as all do without a header.
 *
 * In a list, the rest is whole numbers in every row: one is `label`, several are `values`, int64
 * [k]. Otherwise it is one text, `label` or by the rule of a label `text`. Lines that
 * begin with # are comments, unless they name a picture.
 *
 * The first rows are read for each separator, then all of them once. Memory: the cells as texts,
 * 4 bytes for each row of a column in half of whose rows are different pictures, 2 bits for each
 * picture. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_TABLE_H
#define EPOCHFS_FORMAT_ANNOTATIONS_TABLE_H

#include "base/text.h"
#include "format/annotations/picture_names.h"
#include "format/annotations/value_columns.h"

#define TABLE_COLUMNS_MOST 4096
#define TABLE_WORDS        ' ' /* separator of lists */

struct blob;
struct diag;
struct json_t;

/* Constant once it is made. */
struct picture_table {
    /* All columns but the key, in the order of the file, with a row for each of the table. */
    struct value_columns columns;
    uint32_t *picture; /* [rows] or PICTURE_NONE */
    size_t rows;
    size_t unmatched; /* rows that name no picture */
    size_t matched;   /* pictures that have a row, */
    size_t repeated;  /* and that have several */
    /* The column with classes, or SIZE_MAX: the one called label, labels, class, class id, category
     * or target, in this order (ClassId and class_id are class id), or the only one, if it has at
     * most half as many values as rows. One of float64 has no classes, unless it is said.
     */
    size_t label;
    /* As recipes name them, so that they find the same again: */
    char separator;
    char *key;
    bool is_unsure; /* the key has no name, next to others, and is of bare numbers or words */
    char *rival;    /* a column that names other pictures in these rows; NULL: none does */
    char **column;  /* [n_names] of the first of `columns` */
    size_t n_names;
};

/* Read a table. file: its name, for messages; .csv and .tsv are no lists.
 * said: NULL, or what a recipe says of it, of which each member may be missing: the text
 * "separator", the columns "key" (any share of its values may name pictures) and "label", and the
 * list "columns" of those that are fields. A column is called by its name in the header, or by its
 * number from 0, also as text. *ret is the caller's: picture_table_free(). 0; or
 * -EDOM: it is no table that names pictures, and *reason says why ("only 3 of 900 rows name a
 * picture"); -EBADMSG: most rows up to a malformed one name pictures; or it has no column that is
 * said. File and line are in d; -ENOMEM, and others of blob_read() and blob_check(). */
int picture_table_read(const struct blob *blob, const char *file, const struct picture_names *names,
                       const struct json_t *said, struct picture_table **ret, struct text *reason,
                       struct diag *d);

void picture_table_free(struct picture_table *t); /* may be NULL */

static inline void picture_table_scope_end(struct picture_table **t)
{
    picture_table_free(*t);
}
#define AUTO_PICTURE_TABLE AUTO(picture_table_scope_end)

#endif
