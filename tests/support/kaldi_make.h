/* Binary objects of Kaldi tables, made from numbers by the description of the format alone. */
#ifndef EPOCHFS_TESTS_SUPPORT_KALDI_MAKE_H
#define EPOCHFS_TESTS_SUPPORT_KALDI_MAKE_H

#include "base/text.h"
#include "format/kaldi/object/object.h"

/* ---- pieces ---- */

void kaldi_put(struct text *t, const void *bytes, size_t n);
void kaldi_put_text(struct text *t, const char *s);

/* The low bytes of v, little-endian. */
void kaldi_put_raw(struct text *t, uint64_t v, unsigned bytes);

/* A double (wide) or a float. */
void kaldi_put_value(struct text *t, double v, bool wide);

/* An integer, with the byte before it that gives its size. */
void kaldi_put_int(struct text *t, int64_t v);
void kaldi_put_real(struct text *t, double v, bool wide);

/* 00 'B' and a token. */
void kaldi_put_start(struct text *t, const char *token);

/* 00 'B' and a header of .npy with that text, of total bytes without 00 'B'. */
void kaldi_put_npy_header(struct text *t, unsigned version, const char *text, size_t total);

/* ---- objects ---- */

/* An object, and the values expected from it: integers as int32, real numbers as double. */
struct kaldi_made {
    struct kaldi_object object; /* start is not set */
    struct text bytes;
    struct text array[KALDI_ARRAYS_MAX];
};

/* Every type with each of its stores. A few objects of a kind with wide numbers have only narrow
 * ones; those are of the store KALDI_BINARY. */
#define N_KALDI_KINDS 30
extern const struct kaldi_object kaldi_kinds[N_KALDI_KINDS];

/* A small object of that type and store with random numbers. */
void kaldi_make(struct kaldi_made *m, const struct kaldi_object *kind, uint64_t *random);
void kaldi_made_release(struct kaldi_made *m);
#define AUTO_KALDI_MADE AUTO(kaldi_made_release)

/* A compressed matrix, of the store in m->object. Its header makes every byte decode to itself, in
 * CM plus the number of its column. */
void kaldi_make_compressed(struct kaldi_made *m, uint64_t rows, uint64_t columns, uint64_t *random);

/* ---- measuring ---- */

/* Measure the object at byte at of a file that has the bytes, then zeros up to size. window: bytes
 * from there on that the window already holds, from which it then grows; 0: none. */
int kaldi_measure_bytes(const struct text *bytes, uint64_t size, uint64_t at, enum kaldi_type want,
                        size_t window, struct kaldi_object *ret, struct diag *d);

#endif
