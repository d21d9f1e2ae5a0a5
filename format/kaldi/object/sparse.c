/* Sparse matrices and vectors of Kaldi tables: SM and SV (matrix/sparse-matrix.cc).
 *
 *     SM   rows, for each: "SV " and its vector
 *     SV   elements, entries, for each: index, real number of 4 or 8 bytes
 *
 * As in Kaldi, entries may be in any order, and the last of two with the same index counts. */
#include "format/kaldi/object/walk.h"

#define ROWS_MOST 9999999 /* Kaldi's limit */

/* first: the place in the array of element 0 of the vector. */
static int measure_entry(struct kaldi_walk *w, uint64_t elements, uint64_t first,
                         uint64_t *any_wide)
{
    struct kaldi_values *v = &w->values;
    int32_t index = 0;
    const uint8_t *p;
    unsigned width;
    int r = kaldi_walk_int(w, "an index", &index);

    if (r < 0)
        return r;
    if ((uint64_t)index >= elements) /* true for a negative index too */
        return kaldi_bad(w->in, w->at - 4, w->diag, "expected an index below %llu, got %d",
                         (unsigned long long)elements, index);
    r = kaldi_walk_real(w, &p, &width);
    if (r < 0)
        return r;
    *any_wide |= width == 8;
    if (kaldi_is_kept(v, 0, first + (uint64_t)index))
        kaldi_store_reals(v->dst + (first + (uint64_t)index) * (v->wide ? 8 : 4), v->wide, p, 1,
                          width);
    return 0;
}

static int measure_vector(struct kaldi_walk *w, uint64_t row, uint64_t *ret_elements,
                          uint64_t *any_wide)
{
    uint64_t entries = 0;
    int r = kaldi_walk_count(w, "elements", ret_elements);

    if (r == 0)
        r = kaldi_walk_count(w, "entries", &entries);
    if (r == 0 && entries > *ret_elements)
        r = kaldi_bad(w->in, w->at - 4, w->diag, "expected at most %llu entries, got %llu",
                      (unsigned long long)*ret_elements, (unsigned long long)entries);
    if (r == 0)
        r = kaldi_expect(w, entries, 10, "entries");
    for (uint64_t i = 0; i < entries && r == 0; i++)
        r = measure_entry(w, *ret_elements, row * *ret_elements, any_wide);
    return r;
}

/* A row, which must have as many elements as row 0. */
static int measure_row(struct kaldi_walk *w, uint64_t row, uint64_t dim[static KALDI_DIMS])
{
    uint64_t at = w->at, elements = 0;
    const uint8_t *token;
    int r = kaldi_walk_bytes(w, 3, "a row", &token);

    if (r < 0)
        return r;
    if (memcmp(token, "SV ", 3) != 0)
        return kaldi_bad(w->in, at, w->diag, "expected a row (SV), got bytes %02x %02x %02x",
                         token[0], token[1], token[2]);
    r = measure_vector(w, row, &elements, &dim[2]);
    if (r == 0 && row && elements != dim[1])
        r = kaldi_bad(w->in, at, w->diag, "expected a row of %llu elements as row 0, got %llu",
                      (unsigned long long)dim[1], (unsigned long long)elements);
    dim[1] = elements;
    return r;
}

int kaldi_sparse_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    uint64_t rows = 0;
    int r;

    kaldi_values_clear(&w->values);
    if (o->store == KALDI_SV)
        return measure_vector(w, 0, &o->dim[0], &o->dim[2]);
    r = kaldi_walk_count(w, "rows", &rows);
    if (r == 0 && rows > ROWS_MOST)
        r = kaldi_bad(w->in, w->at - 4, w->diag,
                      "expected at most %u rows of a sparse matrix, as Kaldi does, got %llu",
                      ROWS_MOST, (unsigned long long)rows);
    if (r == 0)
        r = kaldi_expect(w, rows, 13, "rows");
    for (uint64_t i = 0; i < rows && r == 0; i++)
        r = measure_row(w, i, o->dim);
    if (r == 0 && rows && !o->dim[1])
        r = kaldi_bad(w->in, w->at, w->diag, "expected rows of elements, got %llu rows of none",
                      (unsigned long long)rows);
    o->dim[0] = rows;
    return r;
}
