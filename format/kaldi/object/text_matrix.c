/* Kaldi's text in brackets: matrices, vectors and packed matrices, dense and sparse. */
#include "format/kaldi/object/text.h"

#define PACKED_ROWS_MAX 46340 /* for more, Kaldi's count of values overflows 32 bits */

static int end_row(struct kaldi_text *t, uint64_t *row_start)
{
    uint64_t columns = t->v.n[ARRAY_ONLY] - *row_start, *dim = t->o->dim;

    if (!columns)
        return 0;
    if (dim[0] && columns != dim[1])
        return kaldi_text_fail(t, "rows of one length");
    if (dim[0] == INT32_MAX || columns > INT32_MAX)
        return kaldi_text_fail(t, "less than 2^31 rows and columns");
    dim[0]++;
    dim[1] = columns;
    *row_start = t->v.n[ARRAY_ONLY];
    return 0;
}

/* The numbers of a packed matrix are those of a triangle. */
static int end_triangle(struct kaldi_text *t)
{
    uint64_t n = t->v.n[ARRAY_ONLY], rows = kaldi_triangle_rows(n);

    return rows > PACKED_ROWS_MAX || rows * (rows + 1) / 2 != n
               ? kaldi_text_fail(t, "the n (n + 1) / 2 numbers of a triangle before this")
               : 0;
}

/* Numbers in brackets, of a matrix, a packed matrix or a vector.
 *
 * Kaldi wants a vector on one line, but overlooks a newline between other white space and a word:
 * it reads `[ \f\n nan ]`. */
static int in_brackets(struct kaldi_text *t, enum kaldi_type type, unsigned array)
{
    bool is_matrix = type == KALDI_MATRIX, is_vector = type == KALDI_VECTOR, closed = false;
    uint64_t row_start = 0;
    int r = kaldi_text_open(t, type == KALDI_PACKED ? NULL : &closed);

    while (r == 0 && !closed) {
        uint8_t c = kaldi_scan_peek(&t->s);

        if (kaldi_is_digit(c) || c == '-') { /* no plus, and no point */
            r = kaldi_text_put_real(t, array);
            c = is_vector ? kaldi_scan_peek(&t->s) : ' ';
            if (r == 0 && !kaldi_is_blank(c) && c != ']')
                r = kaldi_text_fail(t, "white space or \"]\" after the number");
        } else if (c == ']' || (is_matrix && (c == '\n' || c == ';'))) {
            r = is_matrix ? end_row(t, &row_start) : is_vector ? 0 : end_triangle(t);
            t->s.p++;
            closed = c == ']';
            if (closed)
                kaldi_text_line_end(t);
        } else if (is_vector && (c == '\n' || c == '\r')) {
            r = kaldi_text_fail(t, "\"]\" in the line of the vector");
        } else if (is_vector ? c == ' ' || c == '\t' : kaldi_is_blank(c)) {
            t->s.p++;
        } else {
            r = kaldi_text_word(t, array);
        }
    }
    return r;
}

int kaldi_dense_vector(struct kaldi_text *t, unsigned array)
{
    return in_brackets(t, KALDI_VECTOR, array);
}

/* `rows=3`, `dim=7`. Like Kaldi, ignores anything from the integer to the next white space. */
static int text_named_size(struct kaldi_text *t, const char *name, const char *expected,
                           uint64_t *ret)
{
    size_t len = strlen(name);
    int32_t v;

    kaldi_scan_skip_blanks(&t->s);
    kaldi_scan_need(&t->s, len);
    if ((size_t)(t->s.end - t->s.p) < len || memcmp(t->s.p, name, len) != 0)
        return kaldi_text_fail(t, expected);
    t->s.p += len;
    if (!kaldi_scan_int(&t->s, &v) || v < 0)
        return kaldi_text_fail(t, expected);
    kaldi_scan_skip_token(&t->s);
    *ret = (uint64_t)v;
    return 0;
}

/* Take an index and a value. *before: the index before; becomes this one. */
static int sparse_entry(struct kaldi_text *t, uint64_t row, uint64_t dim, int64_t *before)
{
    uint64_t place;
    int32_t index;
    double v;
    int r = kaldi_text_int(t, &index);

    if (r < 0)
        return r;
    if (index <= *before || (uint64_t)index >= dim)
        return kaldi_text_fail(t, "indices that grow, below dim, before this");
    *before = index;
    place = row * dim + (uint64_t)index;
    kaldi_scan_skip_blanks(&t->s);
    r = kaldi_text_real(t, &v);
    if (r == 0)
        kaldi_text_store(t, ARRAY_ONLY, place, v);
    return r;
}

/* Take row number row, of *ret elements, into an array of zeros. */
static int sparse_row(struct kaldi_text *t, uint64_t row, uint64_t *ret)
{
    int64_t before = -1;
    uint64_t dim;
    int r = text_named_size(t, "dim=", "dim= and a size up to 2147483647", &dim);

    if (r == 0)
        r = kaldi_text_open(t, NULL);
    while (r == 0) {
        kaldi_scan_skip_blanks(&t->s);
        if (kaldi_scan_peek(&t->s) == ']') {
            t->s.p++;
            *ret = dim;
            return 0;
        }
        r = sparse_entry(t, row, dim, &before);
    }
    return r;
}

/* A sparse matrix has no rows, or rows of one length that is not 0: Kaldi cannot make others
 * dense. */
static int sparse_matrix(struct kaldi_text *t)
{
    int r = text_named_size(t, "rows=", "rows= and a size up to 2147483647", &t->o->dim[0]);

    kaldi_values_clear(&t->v);
    for (uint64_t row = 0; r == 0 && row < t->o->dim[0]; row++) {
        uint64_t dim;

        r = sparse_row(t, row, &dim);
        if (r == 0 && (row ? dim != t->o->dim[1] : !dim))
            r = kaldi_text_fail(t, "rows of one dim, not 0, before this");
        else if (r == 0)
            t->o->dim[1] = dim;
    }
    return r;
}

int kaldi_text_matrix(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    return kaldi_scan_peek(&t->s) == 'r' ? sparse_matrix(t)
                                         : in_brackets(t, KALDI_MATRIX, ARRAY_ONLY);
}

int kaldi_text_vector(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    if (kaldi_scan_peek(&t->s) != 'd')
        return kaldi_dense_vector(t, ARRAY_ONLY);
    kaldi_values_clear(&t->v);
    return sparse_row(t, 0, &t->v.n[ARRAY_ONLY]);
}

/* The old form: FP or DP, the number of rows, the values. */
static int packed_sized(struct kaldi_text *t)
{
    int32_t rows;
    int r;

    if (*t->s.p == 'D')
        kaldi_expect_doubles(t);
    t->s.p += 2;
    r = kaldi_text_size(t, &rows);
    if (r == 0 && rows > PACKED_ROWS_MAX)
        r = kaldi_text_fail(t, "at most 46340 rows before this");
    if (r < 0)
        return r;
    for (uint64_t left = (uint64_t)rows * ((uint64_t)rows + 1) / 2; r == 0 && left; left--) {
        kaldi_scan_skip_blanks(&t->s);
        r = kaldi_text_put_real(t, ARRAY_ONLY);
    }
    return r;
}

int kaldi_text_packed(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    kaldi_scan_need(&t->s, 3);
    if ((*t->s.p == 'F' || *t->s.p == 'D') && t->s.p[1] == 'P' && kaldi_is_blank(t->s.p[2]))
        return packed_sized(t);
    return in_brackets(t, KALDI_PACKED, ARRAY_ONLY);
}
