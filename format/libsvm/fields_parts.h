/* What the files of the fields share: fields.c (the table of fields, and the text) uses
 * fields_items.c, fields_matrix.c, which uses fields_csc.c, and dmatrix_text.c. */
#ifndef EPOCHFS_FORMAT_LIBSVM_FIELDS_PARTS_H
#define EPOCHFS_FORMAT_LIBSVM_FIELDS_PARTS_H

#include "format/libsvm/rows.h"
#include "format/records/record_items.h"

enum libsvm_content {
    /* An item for each row: */
    LIBSVM_SHOWS_LABEL,
    LIBSVM_SHOWS_WEIGHT,
    LIBSVM_SHOWS_QID,
    LIBSVM_SHOWS_MARGIN,
    LIBSVM_SHOWS_X,
    /* A member of the matrix: */
    LIBSVM_SHOWS_DATA,
    LIBSVM_SHOWS_INDICES,
    LIBSVM_SHOWS_FIELD,
    LIBSVM_SHOWS_INDPTR,
    LIBSVM_SHOWS_FORMAT,
    LIBSVM_SHOWS_SHAPE,
    /* The line: */
    LIBSVM_SHOWS_TEXT,
    /* A vector of numbers of binary rows, as it is stored: */
    LIBSVM_SHOWS_STORED,
};

/* Where files show a field. */
enum libsvm_offer {
    LIBSVM_OFFERS_ITEM,     /* an item per row, anywhere */
    LIBSVM_OFFERS_DENSE,    /* the same, too large for files of all fields */
    LIBSVM_OFFERS_MEMBER,   /* of the matrix */
    LIBSVM_OFFERS_COLUMN,   /* of the matrix by columns, whatever the order in them; */
    LIBSVM_OFFERS_BY_ROW,   /* with the entries of a column by row, */
    LIBSVM_OFFERS_BY_VALUE, /* or by value */
    LIBSVM_OFFERS_TEXT,     /* rows as they are */
};

/* A field: the impl of struct field. */
struct libsvm_field {
    const char *name;
    const struct field_ops *ops;
    enum libsvm_content content;
    enum libsvm_offer offer;
    enum dtype dtype;                /* of members with integers see their form */
    unsigned needs;                  /* what the first file must have, of some; 0: nothing */
    enum dmatrix_vector_type vector; /* of LIBSVM_SHOWS_STORED */
};

static inline const struct libsvm_field *libsvm_field_of(const struct field *f)
{
    return f->impl;
}

extern const struct field_ops libsvm_item_ops; /* of decoded rows */
extern const struct field_ops libsvm_side_ops; /* of side files */
extern const struct field_ops libsvm_matrix_ops;

record_item_fn libsvm_matrix_line; /* the text of a binary row */

/* Bytes [off, off + len) of an array of integers or floats, little-endian in elements of width
 * bytes, 4 or 8. number: they are stored in elements of so many bytes, and one every step bytes. */
void libsvm_copy_numbers(const void *number, unsigned stored, size_t step, unsigned width,
                         uint64_t off, size_t len, uint8_t *dst);

/* Bytes [off, off + len) of what decoded rows have of a field, of `each` bytes: of a member of the
 * matrix for an entry, of any other for a row. As read() of struct field_ops. */
int libsvm_slabs_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      uint64_t each, const struct selection *sel, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d);

/* Bytes of a member of the matrix whose columns are one after another, in elements of width bytes.
 * As read() of struct field_ops. */
int libsvm_csc_read(struct read_context *rc, const struct dataset *ds,
                    const struct libsvm_field *shown, unsigned width, const struct selection *sel,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d);

#endif
