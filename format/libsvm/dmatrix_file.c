/* A file of XGBoost's binary DMatrix: its index, which takes a pass over the places of rows but
 * none over their entries; its groups; and the entries of a row. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/real.h"
#include "base/scope.h"
#include "format/libsvm/file.h"

#define PIECE 131072u /* numbers or entries that are read at once */

/* ---- the index: of each row the entries before it ---- */

static int matrix_step(void *impl, struct diag *d)
{
    struct libsvm_file *file = impl;
    const struct dmatrix *m = file->matrix;
    struct places *places = &file->places; /* end: entries of the rows before */
    uint64_t n = min_u64(m->rows + 1 - places->rows, PIECE), at = m->offsets + 8 * places->rows;
    AUTO_FREE uint8_t *bytes = malloc(8 * n);
    int r = bytes ? blob_read(READ_WAITS, file->base.blob, bytes, 8 * n, at, d) : -ENOMEM;

    for (uint64_t i = 0; i < n && r == 0; i++, places->rows++) {
        uint64_t before = load_le64(bytes + 8 * i), least = places->end;
        uint64_t most = places->rows ? m->entries : 0;

        least = places->rows == m->rows ? m->entries : least;
        if (before < least || before > most)
            return diag_set(d, -EBADMSG,
                            "%s: byte %llu: expected a place from %llu to %llu, where row %llu "
                            "begins, got %llu",
                            blob_name(file->base.blob), (unsigned long long)(at + 8 * i),
                            (unsigned long long)least, (unsigned long long)most,
                            (unsigned long long)places->rows, (unsigned long long)before);
        places->end = before;
        if (places->rows < m->rows)
            r = index_add(file->base.prepared.builder, NULL, 0, &before);
    }
    atomic_store_explicit(&file->base.prepared.seen, at + 8 * n, memory_order_relaxed);
    if (r < 0 || places->rows <= m->rows)
        return r;
    file->base.prepared.end[0] = m->entries;
    r = blob_check(file->base.blob);
    return r < 0 ? r : 1;
}

static int matrix_load(void *impl, const struct index *index)
{
    const struct libsvm_file *file = impl;

    return index->rows == file->matrix->rows && index_number(index, 0, 0) == 0 &&
                   index_number(index, index->rows, 0) == file->matrix->entries
               ? 0
               : -EBADMSG;
}

/* ---- groups, which are in memory as those of side files are ---- */

/* Read a vector: n numbers of 4 bytes. *ret: the caller's. */
static int read_vector(const struct libsvm_file *file, const struct dmatrix_vector *v,
                       uint8_t **ret, struct diag *d)
{
    AUTO_FREE uint8_t *bytes = malloc(4 * v->n + 1);
    int r = bytes ? blob_read(READ_WAITS, file->base.blob, bytes, 4 * v->n, v->at, d) : -ENOMEM;

    if (r == 0)
        *ret = TAKE_PTR(bytes);
    return r;
}

static int load_groups(struct libsvm_file *file, struct diag *d)
{
    const struct dmatrix *m = file->matrix;
    const struct dmatrix_vector *v = &m->vector[DMATRIX_GROUPS];
    struct libsvm_side *groups = &file->side[LIBSVM_SIDE_GROUP];
    AUTO_FREE uint8_t *first = NULL;
    AUTO_FREE uint64_t *end = malloc(8 * v->n);
    int r = end ? read_vector(file, v, &first, d) : -ENOMEM;

    for (uint64_t i = 0, before = 0; i < v->n && r == 0; i++) {
        uint64_t at = load_le32(first + 4 * i), least = i + 1 == v->n ? m->rows : before;

        if (at < least || at > (i ? m->rows : 0))
            return diag_set(d, -EBADMSG,
                            "%s: byte %llu: expected group %llu to begin at a row from %llu to "
                            "%llu, got %llu",
                            blob_name(file->base.blob), (unsigned long long)(v->at + 4 * i),
                            (unsigned long long)i, (unsigned long long)least,
                            (unsigned long long)(i ? m->rows : 0), (unsigned long long)at);
        before = at;
        if (i)
            end[i - 1] = at;
    }
    if (r < 0)
        return r;
    free(groups->end);
    groups->end = TAKE_PTR(end);
    groups->n = v->n - 1;
    return 0;
}

static int load_weights(struct libsvm_file *file, struct diag *d)
{
    const struct dmatrix_vector *v = &file->matrix->vector[DMATRIX_WEIGHTS];
    struct libsvm_side *weights = &file->side[LIBSVM_SIDE_WEIGHT];
    uint8_t *bytes = NULL;
    int r = read_vector(file, v, &bytes, d);

    if (r < 0)
        return r;
    free(weights->value);
    weights->value = (float *)(void *)bytes;
    for (uint64_t i = 0; i < v->n; i++)
        weights->value[i] = f4_of_bits(load_le32(bytes + 4 * i));
    weights->n = v->n;
    weights->per_group = true;
    return 0;
}

static int matrix_ready(void *impl, struct diag *d)
{
    struct libsvm_file *file = impl;
    const struct dmatrix *m = file->matrix;
    int r = m->vector[DMATRIX_GROUPS].n ? load_groups(file, d) : 0;

    if (r == 0 && dmatrix_weighs_groups(m))
        r = load_weights(file, d);
    if (r < 0)
        return r;
    notes_add(&file->notes, "%s", file->base.prepared.unkept ? file->base.prepared.unkept : "");
    if (m->has_categories)
        notes_add(&file->notes,
                  "%s: has names of categories, which are not shown; values are their numbers",
                  blob_name(file->base.blob));
    if (m->vector[DMATRIX_FEATURE_WEIGHTS].n)
        notes_add(&file->notes, "%s: has weights of features, which are not shown",
                  blob_name(file->base.blob));
    if (m->names.len > DMATRIX_NAMES_MAX || m->types.len > DMATRIX_NAMES_MAX)
        notes_add(&file->notes, "%s: has names of %llu features, which are not shown: too many",
                  blob_name(file->base.blob), (unsigned long long)m->n_names);
    return 0;
}

static void matrix_release(void *impl)
{
    struct libsvm_file *file = impl;

    libsvm_sides_release(file->side);
    notes_release(&file->notes);
    if (file->matrix)
        dmatrix_release(file->matrix);
    free(file->matrix);
}

const struct record_file_ops libsvm_matrix_file_ops = {
    .size = sizeof(struct libsvm_file),
    .index = {.version = "dmatrix 1",
              .load = matrix_load,
              .step = matrix_step,
              .ready = matrix_ready},
    .shape = {.columns = 1, .rising = 1},
    .side_by_side = true,
    .release = matrix_release,
};

int libsvm_matrix_open(struct libsvm_file *file, struct diag *d)
{
    int r;

    file->matrix = calloc(1, sizeof(*file->matrix));
    r = file->matrix ? dmatrix_read(file->base.blob, file->matrix, d) : -ENOMEM;
    if (r < 0)
        return r;
    file->header.count[1] = file->matrix->columns;
    file->totals.labels = 1;
    return 0;
}

/* ---- rows ---- */

static int bad_index(const struct libsvm_file *file, uint64_t byte, uint32_t index, struct diag *d)
{
    return diag_set(d, -EBADMSG, "%s: byte %llu: expected an index below num_col, %llu, got %u",
                    blob_name(file->base.blob), (unsigned long long)byte,
                    (unsigned long long)file->matrix->columns, index);
}

int libsvm_matrix_row(const struct libsvm_file *file, const uint8_t *entries, uint64_t start,
                      struct libsvm_row *row, struct diag *d)
{
    row->n = row->capacity;
    row->sorted = true;
    for (uint64_t i = 0; i < row->n; i++) {
        uint32_t index = load_le32(entries + DMATRIX_ENTRY * i);

        if (index >= file->matrix->columns)
            return bad_index(file, start + DMATRIX_ENTRY * i, index, d);
        row->sorted &= !i || row->index[i - 1] <= index;
        row->index[i] = index;
        row->value[i] = f4_of_bits(load_le32(entries + DMATRIX_ENTRY * i + 4));
    }
    return 0;
}

/* The first bad index of each row. */
int libsvm_matrix_check(const struct libsvm_file *file, void (*report)(void *ctx, const char *text),
                        void *ctx, struct diag *d)
{
    const struct dmatrix *m = file->matrix;
    const struct index *index = &file->base.prepared.index;
    AUTO_FREE uint8_t *bytes = malloc(PIECE * (size_t)DMATRIX_ENTRY);
    uint64_t skip_to = 0;
    int r = bytes ? 0 : -ENOMEM;

    for (uint64_t at = 0; at < m->entries && r == 0; at += PIECE) {
        uint64_t n = min_u64(PIECE, m->entries - at);

        r = blob_read(READ_WAITS, file->base.blob, bytes, n * DMATRIX_ENTRY,
                      m->data + DMATRIX_ENTRY * at, d);
        for (uint64_t i = 0; i < n && r == 0; i++) {
            uint32_t found = load_le32(bytes + DMATRIX_ENTRY * i);
            struct diag fault = DIAG_INIT;

            if (found < m->columns || at + i < skip_to)
                continue;
            bad_index(file, m->data + DMATRIX_ENTRY * (at + i), found, &fault);
            report(ctx, fault.text);
            skip_to = index_number(index, index_first_above(index, 0, at + i), 0);
        }
    }
    return r < 0 ? r : blob_verify(file->base.blob, d);
}
