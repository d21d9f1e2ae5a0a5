/* What the parsers of binary Kaldi objects share: a walk over an object from front to back, and
 * real numbers of 4 and 8 bytes.
 *
 * Measuring walks over a blob. Decoding has all bytes in memory: it measures them once more, and
 * may trust each of them after that. */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_WALK_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_WALK_H

#include <string.h>

#include "base/bytes.h"
#include "format/kaldi/object/object.h"

struct kaldi_walk {
    struct kaldi_in *in;
    struct diag *diag;
    uint64_t at;       /* byte of the blob, <= in->size */
    const uint8_t *p;  /* the bytes there, */
    size_t have;       /* that many; may be 0 */
    uint64_t expected; /* bytes known to be taken from here on */
};

/* ---- steps of a walk: 0, or an error with a message. what: its name in messages. ---- */

/* The next n bytes, valid until the next step. */
int kaldi_take(struct kaldi_walk *w, size_t n, const char *what, const uint8_t **ret);

/* An int32 with its size byte. */
int kaldi_take_int(struct kaldi_walk *w, const char *what, int32_t *ret);

/* The same, of 0 or more. */
int kaldi_take_count(struct kaldi_walk *w, const char *what, uint64_t *ret);

/* Skip n int32, each with its size byte. */
int kaldi_skip_ints(struct kaldi_walk *w, uint64_t n, const char *what);

/* Skip a real number of 4 or 8 bytes with its size byte; sets *wide if it has 8. */
int kaldi_skip_real(struct kaldi_walk *w, bool *wide);

/* Check that n times each bytes remain, and count them as expected from now on. */
int kaldi_expect(struct kaldi_walk *w, uint64_t n, uint64_t each, const char *what);

/* Skip n values of each bytes, or fail. */
int kaldi_skip(struct kaldi_walk *w, uint64_t n, uint64_t each, const char *what);

/* ---- families of objects ----
 *
 * measure: w is past 00 'B' and the token, if any; *o has type and store, and measure fills in dim.
 * It may change store to KALDI_BINARY8 or KALDI_NPY8. decode: writes to dst, from bytes that were
 * measured just before. */

/* KALDI_INTS to KALDI_GAUSS_POST. */
int kaldi_lists_measure(struct kaldi_walk *w, struct kaldi_object *o);
void kaldi_lists_decode(const struct kaldi_object *o, const uint8_t *bytes, unsigned i,
                        enum dtype dtype, uint8_t *dst);

/* KALDI_SM, KALDI_SV. */
int kaldi_sparse_measure(struct kaldi_walk *w, struct kaldi_object *o);
void kaldi_sparse_decode(const struct kaldi_object *o, const uint8_t *bytes, enum dtype dtype,
                         uint8_t *dst);

/* KALDI_CM, KALDI_CM2, KALDI_CM3. */
int kaldi_compressed_measure(struct kaldi_walk *w, struct kaldi_object *o);
void kaldi_compressed_decode(const struct kaldi_object *o, const uint8_t *bytes, enum dtype dtype,
                             uint8_t *dst);

/* KALDI_NPY; decides the type too. The token is the magic of .npy files. */
int kaldi_numpy_measure(struct kaldi_walk *w, struct kaldi_object *o);

/* ---- numbers ---- */

static inline float kaldi_load_f4(const uint8_t *p)
{
    uint32_t bits = load_le32(p);
    float v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline double kaldi_load_f8(const uint8_t *p)
{
    uint64_t bits = load_le64(p);
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline void kaldi_store_f4(uint8_t *p, float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof(v));
    store_le32(p, bits);
}

static inline void kaldi_store_f8(uint8_t *p, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(v));
    store_le64(p, bits);
}

/* The width in bytes of a value, if an object's values are one array at its end; 0: they are
 * not. */
unsigned kaldi_plain_width(const struct kaldi_object *object);

/* Write the n real numbers at p, of 8 bytes (wide) or 4, to dst as dtype. Returns the end of the
 * written bytes. */
uint8_t *kaldi_put_reals(uint8_t *dst, enum dtype dtype, const uint8_t *p, uint64_t n, bool wide);

#endif
