/* Members of a sample whose contents are values: integers in decimal ("cls", "index", "id"), and
 * arrays of .npy. For formats whose records have named members: archives, folders.
 *
 * A pass reads the value, or the header of the array, so that all sizes are known from the index: a
 * learned column of the file (column_table.h) says of which kind its members are, and columns of
 * the index have the numbers of each sample. */
#ifndef EPOCHFS_FORMAT_RECORDS_MEMBER_VALUES_H
#define EPOCHFS_FORMAT_RECORDS_MEMBER_VALUES_H

#include "format/core/npy_head.h"
#include "format/index/index.h"
#include "format/records/column_table.h"
#include "format/records/record_set.h"

enum member_shown {
    MEMBER_AS_BYTES,
    MEMBER_AS_TEXT,
    MEMBER_AS_INTEGER,
    MEMBER_AS_ARRAY,
    N_MEMBER_SHOWN
};

/* The numbers of a learned column. */
enum {
    MEMBER_OWN,   /* the format's own */
    MEMBER_VALUE, /* a column of the index, 0: none yet. For integers: the value; of arrays: the
                   * bytes of the header with MEMBER_ARRAY_..., and in the next ones each axis */
    MEMBER_FORM,  /* enum member_shown */
    MEMBER_ROWS,  /* samples that have it */
    MEMBER_TYPE,  /* of arrays: enum dtype, */
    MEMBER_AXES,  /* how many, */
    MEMBER_DIM,   /* and [RECORD_AXES] their sizes, DIM_VARIES where they differ */
};

/* Next to the bytes of a header of .npy, which are shifted by MEMBER_ARRAY_SHIFT. */
enum { MEMBER_ARRAY_BIG_ENDIAN = 1, MEMBER_ARRAY_FORTRAN = 2, MEMBER_ARRAY_SHIFT = 2 };

/* How a member of that extension is shown, if the contents of all allow it. */
enum member_shown member_shown_of(const char *ext, size_t len);

/* ---- the pass ---- */

#define MEMBER_INTEGER_MAX 32 /* bytes of a member that is an integer */

/* A decimal integer, with white space around it. */
bool member_integer_parse(const uint8_t *bytes, size_t len, int64_t *ret);

/* What reads values. The format has it in a struct of its own, and adds columns by it as well. */
struct member_reader {
    struct index_builder *builder;
    unsigned columns; /* of the index, so far; */
    unsigned spare;   /* and those that values leave free, for other columns */
    /* The first len bytes of the member, at most its size: valid until the next call. 0 or -errno
     * with the reason in d. */
    int (*bytes)(struct member_reader *reader, size_t len, const uint8_t **ret, struct diag *d);
};

/* n columns of the index more; *ret: the first. 0; -E2BIG: there is no room; or -ENOMEM. */
int member_add_columns(struct member_reader *reader, unsigned n, uint64_t *ret);

/* Read the value of a member of size bytes, by the kind of its learned column, into the row. Where
 * it is none, or not like those before, *ret_wrong says why, and the column becomes one of bytes;
 * otherwise it is NULL. 0, or an error of bytes(): the value is read again. */
int member_read_value(struct member_reader *reader, uint64_t *number, uint64_t size, uint64_t *row,
                      const char **ret_wrong, struct diag *d);

/* The same of an array behind a head that the format has parsed: head->bytes are before it. It
 * leaves the kind of the column to the format. 0 or -ENOMEM. */
int member_take_array(struct member_reader *reader, uint64_t *number, const struct npy_head *head,
                      uint64_t *row, const char **ret_wrong);

/* ---- a kept index, whose numbers are hostile ---- */

/* Are the columns of values in the index, behind those that are fixed, and is the kind known? */
bool member_numbers_are_good(const uint64_t *number, unsigned fixed, unsigned columns);

/* Does the array of a row end inside its member, of that size? */
bool member_array_is_good(const struct index *index, uint64_t row, const uint64_t *number,
                          uint64_t size);

/* ---- columns of a prepared file ---- */

/* One of its columns, and the texts that the record_column points to. */
struct member_column {
    unsigned field; /* number in the table of learned columns */
    enum member_shown shown;
    char name[RECORD_NAME_MAX + 1], whole[RECORD_NAME_MAX + 1], ext[RECORD_NAME_MAX + 1];
};

/* Make the column that shows a learned one in that form. But for bytes the last part of an
 * extension is not in its name: "label.cls" is `label`, "seg.txt" is `seg`, unless it is all of it;
 * it is again where such names meet: "x.cls" and "x.id". */
void member_column_make(const struct learned_column *learned, unsigned field,
                        enum member_shown shown, bool has_holes, struct member_column *ret_shows,
                        struct record_column *ret);

/* Make those of all learned columns: as bytes, and those of values and texts in that form as well.
 * Sets the arrays, which have room for `more` columns behind them. is_complete(ctx, field): each
 * sample has it. 0 or -ENOMEM. */
int member_columns_make(const struct column_table *table, unsigned more,
                        bool (*is_complete)(const void *ctx, unsigned field), const void *ctx,
                        struct member_column **ret_shows, struct record_column **ret,
                        unsigned *ret_n);

/* ---- contents ---- */

/* The axes of an array. */
void member_array_dims(const struct index *index, uint64_t row, const uint64_t *number,
                       uint64_t ret[static RECORD_AXES]);

/* The bytes of an array's header. */
uint64_t member_array_head(const struct index *index, uint64_t row, const uint64_t *number);

/* Bytes [off, off + len) of an integer as int64. */
void member_integer_read(const struct index *index, uint64_t row, const uint64_t *number,
                         uint64_t off, size_t len, uint8_t *dst);

/* The same of an array in C order and little-endian; bytes: where the blob has it, without its
 * header. As read() of struct record_format. */
int member_array_read(struct read_context *rc, const struct extent *bytes,
                      const struct index *index, uint64_t row, const uint64_t *number, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d);

#endif
