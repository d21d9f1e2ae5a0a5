/* Side files of a file of libsvm text: numbers for its rows, separated by white space. */
#ifndef EPOCHFS_FORMAT_LIBSVM_SIDE_H
#define EPOCHFS_FORMAT_LIBSVM_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"
#include "format/libsvm/rounded.h"

enum libsvm_side_type {
    LIBSVM_SIDE_WEIGHT, /* one for each row, or one for each group */
    LIBSVM_SIDE_GROUP,  /* the number of rows of each group */
    LIBSVM_SIDE_MARGIN, /* the same count for each row */
    N_LIBSVM_SIDES,
};

/* The suffixes of side files, ended by NULL. */
extern const char *const libsvm_side_suffixes[];

/* The type of the side file called name of the file called base: `<base>.weight`. false: it is
 * none. */
bool libsvm_side_find(const char *name, const char *base, enum libsvm_side_type *ret);

struct libsvm_side {
    struct blob *blob; /* owned; NULL: no such file */
    /* Set by libsvm_sides_load(), then constant: */
    uint64_t n;    /* numbers */
    float *value;  /* [n], owned; for groups instead: */
    uint64_t *end; /* [n] rows of all groups up to and with this one, owned */
    struct libsvm_rounded rounded;
    bool per_group;
    uint64_t per_row;
    int failed; /* -errno: it cannot be used; the reason: */
    struct diag reason;
};

/* Read the side files of a file with that many rows, after skipped rows were omitted; by their qid
 * they are as many groups, unless a side file says what groups they are. A side file
 * that cannot be used sets its own failed. 0, or, with the reason in d, an error of which
 * blob_says_nothing() is true: the next call tries again. */
int libsvm_sides_load(struct libsvm_side sides[static N_LIBSVM_SIDES], uint64_t rows,
                      uint64_t skipped, uint64_t runs, struct diag *d);
void libsvm_sides_release(struct libsvm_side sides[static N_LIBSVM_SIDES]);

/* The group of a row of the file. The side file must exist and not have failed. */
uint64_t libsvm_side_group(const struct libsvm_side *groups, uint64_t row);

#endif
