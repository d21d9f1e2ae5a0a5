/* What the parsers of Kaldi's text share. text.c of this folder calls the parsers, in text_matrix.c
 * and text_lines.c; they call text_values.c.
 *
 * Each type has one parser, which reads what Kaldi reads and refuses what makes Kaldi throw or
 * abort. It counts all values and can store those of one array in dst, so the same walk measures an
 * object and decodes an array of it.
 *
 * Invariants: no write passes dst[capacity - 1], whatever the bytes say; an array is complete if
 * all counts at the end equal those of the object. */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_TEXT_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_TEXT_H

#include <string.h>

#include "format/kaldi/object/object.h"
#include "format/kaldi/object/text_scan.h"

/* Arrays of the types that have more than one; the order is that of kaldi_types. */
enum {
    ARRAY_ONLY = 0,
    ARRAY_COUNTS = 0,
    ARRAY_LIST_VALUES = 1,
    ARRAY_POST_INDEX = 1,
    ARRAY_POST_VALUES = 2,
    ARRAY_GAUSS_DIMS = 2,
    ARRAY_GAUSS_VALUES = 3,
};

struct kaldi_text {
    struct kaldi_scan s;
    enum kaldi_type type;
    const char *name; /* of the file, if s reads memory */
    uint64_t start;   /* byte of the file where byte 0 of s is */
    struct diag *d;
    bool wide;                    /* read and store real numbers as double */
    unsigned array;               /* the one that goes to dst */
    uint8_t *dst;                 /* [capacity]; NULL: only measure the object */
    uint64_t capacity;            /* elements; 0 without dst */
    uint64_t n[KALDI_ARRAYS_MAX]; /* elements read so far */
    uint64_t rows, columns;       /* of matrices; columns: of sparse vectors, too */
};

/* Report "expected ..., got ..." with the text at p; returns -EBADMSG, or the error of reading. All
 * int functions below return 0 or that result. */
int kaldi_text_fail(struct kaldi_text *t, const char *want);

/* ---- values ---- */

static inline bool kaldi_is_kept(const struct kaldi_text *t, unsigned array, uint64_t i)
{
    return array == t->array && i < t->capacity;
}

/* v: a float unless t->wide. */
static inline void kaldi_store_real(struct kaldi_text *t, uint64_t i, double v)
{
    float narrow = (float)v;
    uint32_t bits;
    uint64_t wide_bits;

    if (t->wide) {
        memcpy(&wide_bits, &v, sizeof(wide_bits));
        store_le64(t->dst + 8 * i, wide_bits);
    } else {
        memcpy(&bits, &narrow, sizeof(bits));
        store_le32(t->dst + 4 * i, bits);
    }
}

static inline void kaldi_put_real(struct kaldi_text *t, unsigned array, double v)
{
    uint64_t i = t->n[array]++;

    if (kaldi_is_kept(t, array, i))
        kaldi_store_real(t, i, v);
}

void kaldi_text_put(struct kaldi_text *t, unsigned array, int32_t v);

/* The integer after white space; take_size: the length of a list that follows. */
int kaldi_text_int(struct kaldi_text *t, int32_t *ret);
int kaldi_take_size(struct kaldi_text *t, int32_t *ret);

/* Accept numbers in the range of double from here on; as float, some become infinite. */
void kaldi_expect_doubles(struct kaldi_text *t);

/* The real number at p, with no white space before it. */
static inline int kaldi_take_real(struct kaldi_text *t, double *ret)
{
    float narrow;

    if (t->wide ? kaldi_scan_double(&t->s, ret) : kaldi_scan_float(&t->s, &narrow)) {
        if (!t->wide)
            *ret = (double)narrow;
        return 0;
    }
    return kaldi_text_fail(t, t->wide ? "a number in the range of double"
                                      : "a number in the range of float");
}

static inline int kaldi_take_into(struct kaldi_text *t, unsigned array)
{
    double v;
    int r = kaldi_take_real(t, &v);

    if (r == 0)
        kaldi_put_real(t, array, v);
    return r;
}

/* ---- tokens ---- */

/* `[` and white space; with ret_closed also `[]`. */
int kaldi_take_open(struct kaldi_text *t, bool *ret_closed);

/* Skip what Kaldi consumes after `]`: "\n", or "\r" and any byte. */
void kaldi_take_line_end(struct kaldi_text *t);

/* The words for infinity and NaN; no sign is allowed. */
int kaldi_take_word(struct kaldi_text *t, unsigned array);

/* ---- the parsers: p moves from the start of the object to its end ---- */

/* The values of a vector. */
int kaldi_dense_vector(struct kaldi_text *t, unsigned array);

int kaldi_text_matrix(struct kaldi_text *t);
int kaldi_text_vector(struct kaldi_text *t);
int kaldi_text_packed(struct kaldi_text *t);
int kaldi_text_one_int(struct kaldi_text *t);
int kaldi_text_one_real(struct kaldi_text *t);
int kaldi_text_one_double(struct kaldi_text *t);
int kaldi_text_one_bool(struct kaldi_text *t);
int kaldi_text_ints(struct kaldi_text *t);
int kaldi_text_int_lists(struct kaldi_text *t);
int kaldi_text_int_pairs(struct kaldi_text *t);
int kaldi_text_float_pairs(struct kaldi_text *t);
int kaldi_text_posterior(struct kaldi_text *t);
int kaldi_text_gauss_post(struct kaldi_text *t);
int kaldi_text_token(struct kaldi_text *t);
int kaldi_text_tokens(struct kaldi_text *t);

#endif
