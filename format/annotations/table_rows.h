/* The rows of a table that names pictures, cell by cell. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_TABLE_ROWS_H
#define EPOCHFS_FORMAT_ANNOTATIONS_TABLE_ROWS_H

#include "format/annotations/picture_names.h"
#include "format/rows/row.h"

/* A walk over the rows, which starts as table_rows_of() says. */
struct table_rows {
    struct row_walk walk;
    char separator;                    /* TABLE_WORDS: two cells, the first word and the rest */
    bool is_list;                      /* not .csv or .tsv: it may have comments */
    const struct picture_names *names; /* of lists: is a word or a line the name of a picture? */

    struct row row;   /* that came last; numbers are judged; valid until next */
    uint32_t picture; /* of lists: which one its first cell names */
};

struct table_rows table_rows_of(const struct blob *blob, uint64_t at, uint64_t end,
                                const char *file, char separator,
                                const struct picture_names *names);

/* Is the file .csv or .tsv by its name? */
bool table_is_csv(const char *file);

/* The picture that a cell names, PICTURE_NONE or PICTURE_SEVERAL. */
uint32_t table_rows_picture(const struct table_rows *rows, size_t i);

/* The next row that is neither empty nor a comment. 1; 0: there is none; or -errno, -EBADMSG with
 * file and line in d. */
int table_rows_next(struct table_rows *rows, struct diag *d);

void table_rows_release(struct table_rows *rows);
#define AUTO_TABLE_ROWS AUTO(table_rows_release)

/* The whole numbers that a text is, between blanks: how many there are; 0: there are none, or
 * something else is in it, or it has more than most. */
size_t table_integers(const char *text, size_t len, int64_t *ret, size_t most);

#endif
