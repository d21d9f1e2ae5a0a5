/* Sparse matrices and vectors of Kaldi tables: SM and SV (matrix/sparse-matrix.cc).
 *
 *     SM   rows, for each: "SV " and its vector
 *     SV   elements, entries, for each: index, real number of 4 or 8 bytes
 *
 * As in Kaldi, entries may be in any order, and the last of two with the same index counts. */
#include "format/kaldi/object/walk.h"

#define ROWS_MOST 9999999 /* Kaldi's limit */

static int measure_entry(struct kaldi_walk *w, uint64_t elements, bool *wide)
{
    int32_t index = 0;
    int r = kaldi_take_int(w, "an index", &index);

    if (r < 0)
        return r;
    if ((uint64_t)index >= elements) /* true for a negative index too */
        return kaldi_bad(w->in, w->at - 4, w->diag, "expected an index below %llu, got %d",
                         (unsigned long long)elements, index);
    return kaldi_skip_real(w, wide);
}

static int kaldi_sparse_measure_vector(struct kaldi_walk *w, uint64_t *ret_elements, bool *wide)
{
    uint64_t elements = 0, entries = 0;
    int r = kaldi_take_count(w, "elements", &elements);

    if (r == 0)
        r = kaldi_take_count(w, "entries", &entries);
    if (r == 0 && entries > elements)
        r = kaldi_bad(w->in, w->at - 4, w->diag, "expected at most %llu entries, got %llu",
                      (unsigned long long)elements, (unsigned long long)entries);
    if (r == 0)
        r = kaldi_expect(w, entries, 10, "entries");
    for (uint64_t i = 0; i < entries && r == 0; i++)
        r = measure_entry(w, elements, wide);
    if (r == 0)
        *ret_elements = elements;
    return r;
}

/* Measure a row, which must have as many columns as row 0. */
static int measure_row(struct kaldi_walk *w, uint64_t row, uint64_t *columns, bool *wide)
{
    uint64_t at = w->at, elements = 0;
    const uint8_t *token;
    int r = kaldi_take(w, 3, "a row", &token);

    if (r < 0)
        return r;
    if (memcmp(token, "SV ", 3) != 0)
        return kaldi_bad(w->in, at, w->diag, "expected a row (SV), got bytes %02x %02x %02x",
                         token[0], token[1], token[2]);
    r = kaldi_sparse_measure_vector(w, &elements, wide);
    if (r == 0 && row && elements != *columns)
        r = kaldi_bad(w->in, at, w->diag, "expected a row of %llu elements as row 0, got %llu",
                      (unsigned long long)*columns, (unsigned long long)elements);
    if (r == 0)
        *columns = elements;
    return r;
}

static int measure_matrix(struct kaldi_walk *w, struct kaldi_object *o, bool *wide)
{
    uint64_t rows = 0, columns = 0;
    int r = kaldi_take_count(w, "rows", &rows);

    if (r == 0 && rows > ROWS_MOST)
        r = kaldi_bad(w->in, w->at - 4, w->diag,
                      "expected at most %u rows of a sparse matrix, as Kaldi does, got %llu",
                      ROWS_MOST, (unsigned long long)rows);
    if (r == 0)
        r = kaldi_expect(w, rows, 13, "rows");
    for (uint64_t i = 0; i < rows && r == 0; i++)
        r = measure_row(w, i, &columns, wide);
    if (r == 0 && rows && !columns)
        r = kaldi_bad(w->in, w->at, w->diag, "expected rows of elements, got %llu rows of none",
                      (unsigned long long)rows);
    o->dim[0] = rows;
    o->dim[1] = columns;
    return r;
}

int kaldi_sparse_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    bool wide = false;
    int r = o->store == KALDI_SM ? measure_matrix(w, o, &wide)
                                 : kaldi_sparse_measure_vector(w, &o->dim[0], &wide);

    o->dim[2] = wide;
    return r;
}

/* p: after "SV "; dst: zeros for all elements. Returns the end of the vector. */
static const uint8_t *decode_vector(const uint8_t *p, enum dtype dtype, uint8_t *dst)
{
    size_t width = dtype == DTYPE_F8 ? 8 : 4;
    uint64_t entries = load_le32(p + 6);

    p += 10;
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t index = load_le32(p + 1);
        bool wide = p[5] == 8;

        kaldi_put_reals(dst + index * width, dtype, p + 6, 1, wide);
        p += wide ? 14 : 10;
    }
    return p;
}

void kaldi_sparse_decode(const struct kaldi_object *o, const uint8_t *bytes, enum dtype dtype,
                         uint8_t *dst)
{
    size_t width = dtype == DTYPE_F8 ? 8 : 4;
    const uint8_t *p = bytes + 5; /* 00 'B', the token */
    uint64_t size = 0;

    kaldi_array_bytes(o, 0, dtype, &size);
    if (size)
        memset(dst, 0, (size_t)size);
    if (o->store == KALDI_SV) {
        decode_vector(p, dtype, dst);
        return;
    }
    p += 5;
    for (uint64_t row = 0; row < o->dim[0]; row++)
        p = decode_vector(p + 3, dtype, dst + row * o->dim[1] * width);
}
