/* Side files of a file of libsvm text: numbers for its rows, whitespace between them. */
#ifndef EPOCHFS_FORMAT_LIBSVM_SIDE_H
#define EPOCHFS_FORMAT_LIBSVM_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"

enum libsvm_side_kind {
    LIBSVM_SIDE_WEIGHT, /* one for each row, or one for each group */
    LIBSVM_SIDE_GROUP,  /* rows of each group */
    LIBSVM_SIDE_MARGIN, /* as many for each row */
    N_LIBSVM_SIDES,
};

/* The suffixes of side files, ended by NULL. */
extern const char *const libsvm_side_suffixes[];

/* The kind of the side file called name of the file called of: `<of>.weight`. false: it is none. */
bool libsvm_side_find(const char *name, const char *of, enum libsvm_side_kind *ret);

struct libsvm_side {
    struct blob *blob; /* owned; NULL: there is none */
    /* Set by libsvm_sides_load(), then constant: */
    uint64_t n;    /* numbers */
    float *value;  /* [n], owned; of groups instead: */
    uint64_t *end; /* [n] rows of all groups up to this one, owned */
    bool per_group;
    uint64_t per_row;
    int failed; /* -errno: it cannot be used, and: */
    struct diag reason;
};

/* Read the side files of a file of that many rows, skipped of which were left out. What cannot be
 * used says so in its failed. 0, or what blob_says_nothing() is said of, with the reason in d: the
 * next call tries again. */
int libsvm_sides_load(struct libsvm_side sides[static N_LIBSVM_SIDES], uint64_t rows,
                      uint64_t skipped, struct diag *d);
void libsvm_sides_release(struct libsvm_side sides[static N_LIBSVM_SIDES]);

/* Of a row of the file. The side must be there, and not have failed. */
uint64_t libsvm_side_group(const struct libsvm_side *groups, uint64_t row);
float libsvm_side_weight(const struct libsvm_side sides[static N_LIBSVM_SIDES], uint64_t row);

#endif
