/* The rows of a dataset of libsvm text: of one file, or of several, one behind another. */
#ifndef EPOCHFS_FORMAT_LIBSVM_ROWS_H
#define EPOCHFS_FORMAT_LIBSVM_ROWS_H

#include "base/memo.h"
#include "base/pool.h"
#include "format/core/dataset.h"
#include "format/libsvm/file.h"

struct libsvm_rows {
    unsigned n_files;
    struct libsvm_file **file; /* [n_files], a user of each; owned */
    struct memo *memo;         /* of decoded rows; another's, as is: */
    struct pool *pool;
    bool base_auto, base_one; /* -o index_base */

    /* Once the dataset is ready: */
    uint64_t *first;         /* [n_files + 1] row of the dataset */
    struct row_sums *before; /* [n_files + 1] sums over the files before */
    uint64_t *byte;          /* [n_files + 1] of the files one behind another */
    uint64_t *groups;        /* [n_files + 1] groups of side files in the files before */
    uint32_t shift;          /* subtracted from each index */
    uint64_t features;       /* the largest index + 1, after that */
    uint64_t labels;         /* the most of a row, at least 1 */
};

/* A row, and the file that it stands in. */
struct libsvm_row_at {
    const struct libsvm_file *file;
    unsigned number; /* of the file */
    uint64_t row;    /* of the file */
    struct row_place place;
};

/* The row of a sample, below the dataset's number. */
struct libsvm_row_at libsvm_rows_find(const struct libsvm_rows *rows, uint64_t sample);

/* Sums over the rows before sample, at most the dataset's number. */
struct row_sums libsvm_rows_sums(const struct libsvm_rows *rows, uint64_t sample);

static inline const struct libsvm_rows *libsvm_rows_of(const struct dataset *ds)
{
    return ds->impl;
}

/* Why the side file of a field cannot be used: 0, or -errno with the reason in d. */
int libsvm_rows_side(const struct libsvm_rows *rows, enum libsvm_side_kind kind, struct diag *d);

/* ---- what the rows of a selection say (format/libsvm/view.c) ---- */

/* Rows of a selection by blocks of LIBSVM_BLOCK places, with the sums before each. */
#define LIBSVM_BLOCK 256

struct libsvm_view {
    const struct libsvm_rows *rows;
    const struct selection *sel;
    struct memo_thing *table; /* NULL where the selection is in stored order */
    /* Blocks that were decoded ahead, and of which bytes are missing that are wanted now: bit i is
     * of block tried + i. */
    uint64_t tried;
    unsigned missing;
};

/* 0, -ENOMEM, or -EINTR: the selection was cancelled. */
int libsvm_view_open(struct libsvm_view *ret, const struct libsvm_rows *rows,
                     const struct selection *sel);
void libsvm_view_close(struct libsvm_view *v);
#define AUTO_LIBSVM_VIEW AUTO(libsvm_view_close) /* of a view that starts as {0} */

static inline uint64_t libsvm_view_blocks(const struct libsvm_view *v)
{
    return v->sel->count / LIBSVM_BLOCK + (v->sel->count % LIBSVM_BLOCK != 0);
}

/* Sums over the rows before block, at most the number of blocks. */
struct row_sums libsvm_view_sums(const struct libsvm_view *v, uint64_t block);

/* The last block whose sum of text before it is not above at. */
uint64_t libsvm_view_text_block(const struct libsvm_view *v, uint64_t at);

/* The rows of a block. *ret_n: at most LIBSVM_BLOCK. */
void libsvm_view_rows(const struct libsvm_view *v, uint64_t block,
                      struct libsvm_row_at ret[static LIBSVM_BLOCK], unsigned *ret_n);

/* Decoded rows: places first .. first + n - 1. */
struct libsvm_slab {
    uint64_t first;
    unsigned n;
    uint64_t features_before; /* in the selection */
    const uint64_t *end;      /* [n] features of the slab's rows up to this one */
    const float *label;       /* [n][labels of the dataset] */
    const float *weight;      /* [n] */
    const int64_t *qid;       /* [n] */
    const uint32_t *index;    /* [end[n - 1]] sorted in each row, the base subtracted */
    const float *value;       /* the same */
};

/* The slab that has place. *ret_slab is valid until the thing is let go. 0, -EBADMSG with
 * file:line:column in d: a row cannot be read; -ESTALE, -EIO, -ENOMEM, -EAGAIN. */
int libsvm_view_slab(struct libsvm_view *v, uint64_t place, const struct libsvm_slab **ret_slab,
                     struct memo_thing **ret, struct diag *d);

/* The place behind that slab, without making it. */
uint64_t libsvm_view_slab_end(const struct libsvm_view *v, uint64_t place);

/* A place in the slab that has feature number at of all rows'. *ret_end: the number of the feature
 * behind that slab. */
uint64_t libsvm_view_feature_place(const struct libsvm_view *v, uint64_t at, uint64_t *ret_end);

/* ---- the fields (format/libsvm/fields.c) ---- */

/* Fill in ds->field and its names; room for LIBSVM_FIELDS_MAX. columns, sides: that the files have.
 */
#define LIBSVM_FIELDS_MAX 14
int libsvm_fields_init(struct dataset *ds);

/* Is the field made of the text of rows? Else of what is in memory: side files, the index. */
bool libsvm_field_reads_rows(const struct field *f);

/* What is known once the rows are. */
void libsvm_fields_finish(struct dataset *ds);

#endif
