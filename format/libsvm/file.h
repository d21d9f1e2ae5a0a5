/* A file of libsvm text, its index and its side files. The dataset of the file and the dataset of
 * its folder share it.
 *
 * One thread prepares it step by step; once ready it is constant, and any thread may read it. */
#ifndef EPOCHFS_FORMAT_LIBSVM_FILE_H
#define EPOCHFS_FORMAT_LIBSVM_FILE_H

#include "format/core/notes.h"
#include "format/libsvm/dmatrix.h"
#include "format/libsvm/first.h"
#include "format/libsvm/pass.h"
#include "format/libsvm/side.h"
#include "format/records/record_file.h"

struct libsvm_file {
    struct record_file base;
    unsigned columns; /* enum libsvm_columns: the columns of the first good row, and those given */
    bool skip_bad;
    unsigned mark; /* bytes of a byte order mark, and of: */
    struct libsvm_header header;
    struct libsvm_side side[N_LIBSVM_SIDES];
    struct libsvm_totals totals; /* of a prepared file */
    struct dmatrix *matrix;      /* of a file with LIBSVM_BINARY, owned; NULL: it is text */

    /* The preparing thread's: */
    struct libsvm_pass pass;
    struct places places; /* the rows so far */
    bool stays_alone;     /* the file does not join `all` */
    bool has_features;    /* by its first rows; valid for a file that the user has not named */
    char *rounded;        /* lines for people about numbers that are; of a prepared file; owned */
    struct notes notes;   /* what people have to know of it though it is ready */
};

/* columns: what rows have by the format and the options: LIBSVM_FROM_ONE, LIBSVM_FIELD,
 * LIBSVM_BINARY. Takes
 * ownership of blob, also on error. 0 or -errno with the reason
 * in d. */
int libsvm_file_new(struct blob *blob, unsigned columns, bool skip_bad,
                    const struct format_setup *setup, struct libsvm_file **ret, struct diag *d);

/* Fill d with "file:line:column: expected ..., got ..." for a fault in a row, and return -EBADMSG.
 */
int libsvm_file_fault(const struct libsvm_file *file, uint64_t row, const uint8_t *line, size_t len,
                      const struct libsvm_fault *fault, struct diag *d);

/* The functions of a file with LIBSVM_BINARY (format/libsvm/dmatrix_file.c). */
extern const struct record_file_ops libsvm_matrix_file_ops;

/* For those: what libsvm_file_new() and libsvm_file_check() do. */
int libsvm_matrix_open(struct libsvm_file *file, struct diag *d);
int libsvm_matrix_check(const struct libsvm_file *file, void (*report)(void *ctx, const char *text),
                        void *ctx, struct diag *d);

/* Take the entries of a row, as many as it has capacity for, which begin at that byte of the file.
 * 0, or -EBADMSG with the reason in d. */
int libsvm_matrix_row(const struct libsvm_file *file, const uint8_t *entries, uint64_t start,
                      struct libsvm_row *row, struct diag *d);

/* Parse every row and report those that cannot be read. 0, or -errno with the reason in d. */
int libsvm_file_check(const struct libsvm_file *file, void (*report)(void *ctx, const char *text),
                      void *ctx, struct diag *d);

#endif
