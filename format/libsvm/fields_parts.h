/* What the files of the fields share: fields.c (the table of fields, and the text) uses
 * fields_items.c, fields_matrix.c and fields_csc.c, which use fields_numbers.c of this folder. */
#ifndef EPOCHFS_FORMAT_LIBSVM_FIELDS_PARTS_H
#define EPOCHFS_FORMAT_LIBSVM_FIELDS_PARTS_H

#include "format/libsvm/rows.h"

/* ---- an item for each row ---- */

/* Copy bytes [off, off + len) of the slab's items. */
typedef void libsvm_slab_copy_fn(const struct dataset *ds, const struct field *f,
                                 const struct libsvm_slab *slab, uint64_t off, size_t len,
                                 uint8_t *dst);

/* The ops of a field that is read from slabs. */
struct libsvm_slab_ops {
    struct field_ops ops;
    libsvm_slab_copy_fn *copy;
};

extern const struct libsvm_slab_ops libsvm_label_ops, libsvm_weight_ops, libsvm_qid_ops,
    libsvm_x_ops;

/* The item of one row. */
typedef void libsvm_side_item_fn(const struct libsvm_rows *rows, const struct libsvm_row_at *at,
                                 uint8_t *dst);

/* The ops of a field that is read from side files. */
struct libsvm_side_ops {
    struct field_ops ops;
    enum libsvm_side_kind kind;
    libsvm_side_item_fn *item;
};

extern const struct libsvm_side_ops libsvm_side_weight_ops, libsvm_side_group_ops,
    libsvm_margin_ops;

/* ---- the matrix ---- */

extern const struct field_ops libsvm_data_ops, libsvm_indices_ops, libsvm_indptr_ops,
    libsvm_format_ops, libsvm_shape_ops, libsvm_field_ops;

/* The same matrix, its columns one after another. */
extern const struct field_ops libsvm_csc_data_ops, libsvm_csc_indices_ops, libsvm_csc_indptr_ops,
    libsvm_csc_format_ops, libsvm_csc_shape_ops, libsvm_csc_field_ops;

#define LIBSVM_INT32_LIMIT (UINT64_C(1) << 31)

/* An array of one axis, and the forms of members that both matrices have. */
void libsvm_set_form(struct form *ret, enum dtype dtype, uint64_t dim);
int libsvm_form_data(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     struct form *ret);
int libsvm_form_field(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret);
int libsvm_form_format(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret);
int libsvm_form_shape(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret);
int libsvm_read_format(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d);
int libsvm_read_shape(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d);

/* The sums over all rows of the selection. 0, -ENOMEM or -EINTR. */
int libsvm_total_sums(const struct dataset *ds, const struct selection *sel, struct row_sums *ret);

/* ---- numbers ---- */

/* Copy bytes [off, off + len) of an array of elements of width bytes; make() gives them one by one,
 * from of. */
void libsvm_copy_made(void (*make)(const void *of, uint64_t i, uint8_t ret[static 8]),
                      const void *of, unsigned width, uint64_t off, size_t len, uint8_t *dst);

/* A make() for libsvm_copy_made(): widens an array of uint32_t to 8 bytes. */
void libsvm_make_widened(const void *of, uint64_t i, uint8_t ret[static 8]);

/* Copy bytes of an array of numbers of width 4 or 8. */
void libsvm_copy_numbers(const void *of, unsigned width, uint64_t off, size_t len, uint8_t *dst);

#endif
