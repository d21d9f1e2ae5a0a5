/* The rows of a dataset of libsvm text: of one file, or of several in sequence. */
#ifndef EPOCHFS_FORMAT_LIBSVM_ROWS_H
#define EPOCHFS_FORMAT_LIBSVM_ROWS_H

#include "base/memo.h"
#include "base/pool.h"
#include "format/libsvm/file.h"
#include "format/records/record_slabs.h"
#include "format/records/shards.h"

struct libsvm_rows {
    struct shards shards; /* first; struct libsvm_file */
    struct memo *memo;    /* of decoded rows; not owned, nor is: */
    struct pool *pool;
    bool base_auto, base_one; /* -o index_base */
    bool has_fields;          /* LibFM */
    bool is_binary;           /* DMatrix of XGBoost: */
    struct field_run
        *run; /* [N_DMATRIX_VECTORS][files] where the files have their vectors; owned */

    /* Once the dataset is ready: */
    struct row_sums *before; /* [files + 1] sums over the files before */
    uint64_t *groups;        /* [files + 1] groups, by side files, in the files before */
    uint64_t fields;         /* of LibFM: the largest field + 1, after: */
    uint32_t shift;          /* subtracted from each index, and field */
    uint64_t runs;           /* groups, and runs of one qid, of all files; 0: rows have none */
    uint64_t features;       /* the largest shifted index + 1 */
    uint64_t labels;         /* of the row with the most, at least 1 */
    /* The text of a binary row has as many bytes as those with as many entries: */
    uint64_t text_row, text_entry;
    unsigned qid_digits, index_digits; /* in it */
    bool weighs_groups;                /* weights are of groups, in some file */
};

static inline struct libsvm_file *libsvm_rows_file(const struct libsvm_rows *rows, unsigned i)
{
    return (struct libsvm_file *)rows->shards.file[i];
}

/* The bytes of a row's text and the end of its line. */
static inline uint64_t libsvm_row_text(const struct libsvm_rows *rows,
                                       const struct row_place *place)
{
    return rows->is_binary ? rows->text_row + place->features * rows->text_entry : place->len + 1;
}

/* A row, and the file that holds it. */
struct libsvm_row_at {
    const struct libsvm_file *file;
    unsigned number; /* of the file */
    uint64_t row;    /* of the file */
    struct row_place place;
};

/* The row of a sample, which is below the dataset's number of samples. */
struct libsvm_row_at libsvm_rows_find(const struct libsvm_rows *rows, uint64_t sample);

/* Sums over the rows of a file before row, which is at most their number. */
struct row_sums libsvm_file_sums(const struct libsvm_rows *rows, const struct libsvm_file *file,
                                 uint64_t row);

/* Sums over the rows before sample, which is at most the dataset's number of samples. */
struct row_sums libsvm_rows_sums(const struct libsvm_rows *rows, uint64_t sample);

static inline const struct libsvm_rows *libsvm_rows_of(const struct dataset *ds)
{
    return ds->impl;
}

/* The dataset of n files that have the same columns, one after another (format/libsvm/set.c). It
 * becomes one more user of each. 0 or -ENOMEM. */
int libsvm_dataset_of_files(const struct format *format, struct record_file *const *files,
                            unsigned n, const struct format_setup *setup, struct dataset **ret);

/* Can the side file be used? 0, or -errno with the reason in d. */
int libsvm_rows_side(const struct libsvm_rows *rows, enum libsvm_side_type type, struct diag *d);

/* ---- the rows of a selection (format/libsvm/view.c) ---- */

/* A slab: decoded rows, of places first .. first + n - 1. */
struct libsvm_slab {
    uint64_t first;
    unsigned n;
    uint64_t features_before; /* in the selection */
    const uint64_t *end;      /* [n] features of the slab's rows up to and with this one */
    const float *label;       /* [n][labels of the dataset] */
    const float *weight;      /* [n] */
    const int64_t *qid;       /* [n] */
    const uint32_t *index;    /* [end[n - 1]] sorted in each row, the base subtracted */
    const float *value;       /* the same */
    const uint32_t *field;    /* the same; NULL: there are none */
};

/* Decode n rows, LIBSVM_BLOCK at most: malloc'd memory, and its size; first and features_before are
 * the caller's. 0, -EBADMSG with file:line:column in d: a row cannot be read; -ESTALE, -EIO,
 * -ENOMEM, -EAGAIN. */
int libsvm_rows_decode(struct read_context *rc, const struct libsvm_rows *rows,
                       const struct libsvm_row_at *row, unsigned n, struct libsvm_slab **ret,
                       size_t *ret_size, struct diag *d);

/* Rows of a selection, which are decoded LIBSVM_BLOCK at a time. It does not move. */
#define LIBSVM_BLOCK SLAB_RECORDS

struct libsvm_view {
    const struct libsvm_rows *rows;
    const struct selection *sel;
    struct sums sums; /* size: features; other: bytes of text */
    struct slab_reader slabs;
};

/* 0, -ENOMEM, or -EINTR: the selection was cancelled. */
int libsvm_view_open(struct libsvm_view *ret, struct read_context *rc,
                     const struct libsvm_rows *rows, const struct selection *sel);
void libsvm_view_close(struct libsvm_view *v);
#define AUTO_LIBSVM_VIEW AUTO(libsvm_view_close) /* of a view that starts as {0} */

/* The slab that contains place. *ret_slab is valid until *ret is released. 0, or as
 * libsvm_rows_decode(). */
int libsvm_view_slab(struct libsvm_view *v, uint64_t place, const struct libsvm_slab **ret_slab,
                     struct memo_thing **ret, struct diag *d);

/* The first place after the slab that contains place; makes no slab. */
uint64_t libsvm_view_slab_end(const struct libsvm_view *v, uint64_t place);

/* A place in the slab that contains feature number at, counted over all rows. *ret_end: the number
 * of the first feature after that slab. 0 or -EINTR. */
int libsvm_view_feature_place(struct libsvm_view *v, uint64_t at, uint64_t *ret_place,
                              uint64_t *ret_end);

/* ---- the fields (format/libsvm/fields.c) ---- */

/* Fill in ds->field, which has room for LIBSVM_FIELDS_MAX, and the fields' names. */
#define LIBSVM_FIELDS_MAX 33
int libsvm_fields_init(struct dataset *ds);

/* Does the field need the text of rows? If not, it comes from memory: side files, the index. */
bool libsvm_field_reads_rows(const struct field *f);

/* Complete the fields once the rows are known. */
void libsvm_fields_finish(struct dataset *ds);

/* Set what the text of a binary row takes. */
void libsvm_matrix_text_sizes(struct dataset *ds);

#endif
