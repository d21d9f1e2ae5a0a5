/* What the parsers of Kaldi's text share. text.c of this folder calls the parsers, in text_matrix.c
 * and text_lines.c.
 *
 * Each parser reads what Kaldi reads and refuses what makes Kaldi throw or abort. */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_TEXT_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_TEXT_H

#include "format/kaldi/object/text_scan.h"
#include "format/kaldi/object/walk.h"

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
    struct kaldi_object *o; /* of a type that is known; parsers set dim[] of matrices and tokens */
    struct diag *d;
    struct kaldi_values v; /* wide: real numbers are also read as double */
};

/* Report "expected ..., got ..." with the text at p; returns -EBADMSG, or the error of reading. All
 * int functions below return 0 or that result. */
int kaldi_text_fail(struct kaldi_text *t, const char *expected);

/* ---- values ---- */

/* The integer after white space; size: the length of a list that follows; put: it goes to an
 * array. */
int kaldi_text_int(struct kaldi_text *t, int32_t *ret);
int kaldi_text_size(struct kaldi_text *t, int32_t *ret);
int kaldi_text_put_int(struct kaldi_text *t, unsigned array);

/* Accept numbers in the range of double from here on; as float, some become infinite. */
void kaldi_expect_doubles(struct kaldi_text *t);

/* The real number at p, with no white space before it. */
static inline int kaldi_text_real(struct kaldi_text *t, double *ret)
{
    float narrow;

    if (t->v.wide ? kaldi_scan_double(&t->s, ret) : kaldi_scan_float(&t->s, &narrow)) {
        if (!t->v.wide)
            *ret = (double)narrow;
        return 0;
    }
    return kaldi_text_fail(t, t->v.wide ? "a number in the range of double"
                                        : "a number in the range of float");
}

/* v: a float unless t->v.wide. */
static inline void kaldi_text_store(struct kaldi_text *t, unsigned array, uint64_t i, double v)
{
    if (kaldi_is_kept(&t->v, array, i))
        kaldi_store_real(t->v.dst, i, t->v.wide, v);
}

static inline int kaldi_text_put_real(struct kaldi_text *t, unsigned array)
{
    double v;
    int r = kaldi_text_real(t, &v);

    if (r == 0)
        kaldi_text_store(t, array, t->v.n[array]++, v);
    return r;
}

/* ---- tokens ---- */

/* `[` and white space; with ret_closed also `[]`. */
int kaldi_text_open(struct kaldi_text *t, bool *ret_closed);

/* Skip what Kaldi consumes after `]`: "\n", or "\r" and any byte. */
void kaldi_text_line_end(struct kaldi_text *t);

/* The words for infinity and NaN, as a value of an array; no sign is allowed. */
int kaldi_text_word(struct kaldi_text *t, unsigned array);

/* ---- the parsers: p moves from the start of the object to its end ---- */

/* The values of a vector. */
int kaldi_dense_vector(struct kaldi_text *t, unsigned array);

int kaldi_text_matrix(struct kaldi_text *t);
int kaldi_text_vector(struct kaldi_text *t);
int kaldi_text_packed(struct kaldi_text *t);
int kaldi_text_one(struct kaldi_text *t); /* KALDI_INT to KALDI_BOOL */
int kaldi_text_ints(struct kaldi_text *t);
int kaldi_text_separated(struct kaldi_text *t); /* KALDI_INT_LISTS to KALDI_FLOAT_PAIRS */
int kaldi_text_posterior(struct kaldi_text *t);
int kaldi_text_gauss_post(struct kaldi_text *t);
int kaldi_text_token(struct kaldi_text *t);
int kaldi_text_tokens(struct kaldi_text *t);

#endif
