/* The head of a file that XGBoost's save_binary() wrote, versions 1.0 to 3.x: a version, fields
 * that have names, and then a matrix by rows: where each begins, and its entries.
 * MetaInfo::SaveBinary() and SparsePage's SimpleDMatrix::SaveToLocalFile() of XGBoost are the
 * source of the layout; docs/spec/tables.md has it. */
#ifndef EPOCHFS_FORMAT_LIBSVM_DMATRIX_H
#define EPOCHFS_FORMAT_LIBSVM_DMATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/text.h"

#define DMATRIX_ENTRY     8                    /* bytes: an index and a value */
#define DMATRIX_NAMES_MAX (UINT64_C(16) << 20) /* bytes of names; more are not shown */

enum dmatrix_vector_type {
    DMATRIX_LABELS,
    DMATRIX_GROUPS, /* the first row of each group, and the number of rows: [groups + 1] */
    DMATRIX_WEIGHTS,
    DMATRIX_MARGIN,
    DMATRIX_LOWER,
    DMATRIX_UPPER,
    DMATRIX_FEATURE_WEIGHTS,
    N_DMATRIX_VECTORS,
};

/* Numbers of 4 bytes, as they are stored. */
struct dmatrix_vector {
    uint64_t at;      /* byte of the file */
    uint64_t n;       /* 0: there is none */
    uint64_t per_row; /* n / rows, of those that belong to rows; 0: none */
};

struct dmatrix {
    unsigned version[3];
    uint64_t rows, columns, entries;
    struct dmatrix_vector vector[N_DMATRIX_VECTORS];
    uint64_t n_names, n_types; /* of features, and they as JSON strings with ", " between them: */
    struct text names, types;
    bool has_categories;
    uint64_t offsets; /* byte of the first of the rows' [rows + 1] */
    uint64_t data;    /* byte of the first entry */
};

static inline uint64_t dmatrix_groups(const struct dmatrix *m)
{
    return m->vector[DMATRIX_GROUPS].n ? m->vector[DMATRIX_GROUPS].n - 1 : 0;
}

/* Has each group a weight, not each row? */
static inline bool dmatrix_weighs_groups(const struct dmatrix *m)
{
    return dmatrix_groups(m) && m->vector[DMATRIX_WEIGHTS].n && !m->vector[DMATRIX_WEIGHTS].per_row;
}

/* Do bytes begin as such a file does, of any version? */
bool dmatrix_is(const uint8_t *head, size_t len);

/* Read the head. It waits. 0, and every vector and all entries lie in the file, with as many
 * numbers as rows or groups need; or -errno with the reason in d and nothing to release. */
int dmatrix_read(const struct blob *blob, struct dmatrix *ret, struct diag *d);
void dmatrix_release(struct dmatrix *m); /* takes a zeroed one */

/* The name of a vector as the file has it. */
const char *dmatrix_vector_name(enum dmatrix_vector_type vector);

/* Can rows of both be rows of one dataset? */
bool dmatrix_is_alike(const struct dmatrix *a, const struct dmatrix *b);

#endif
