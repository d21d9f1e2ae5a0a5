/* What the parsers of Kaldi objects share: the values that a parser finds, and for binary objects a
 * walk from front to back.
 *
 * A parser measures an object, and decodes an array of it in the same walk: it counts all values,
 * and stores those of one array. So an object is checked each time it is decoded. */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_WALK_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_WALK_H

#include <string.h>

#include "base/real.h"
#include "format/kaldi/object/object.h"

/* ---- values (format/kaldi/object/types.c) ---- */

/* Invariants: no write passes dst[capacity - 1], whatever the bytes say; the array is complete if
 * the dims at the end equal those of the object that was measured. */
struct kaldi_values {
    unsigned array;               /* the one that goes to dst */
    bool wide;                    /* store real numbers as double */
    uint8_t *dst;                 /* [capacity]; NULL: only count */
    uint64_t capacity;            /* elements; 0 without dst */
    uint64_t n[KALDI_ARRAYS_MAX]; /* elements so far */
};

static inline bool kaldi_is_kept(const struct kaldi_values *v, unsigned array, uint64_t i)
{
    return array == v->array && i < v->capacity;
}

static inline void kaldi_put_int32(struct kaldi_values *v, unsigned array, int32_t value)
{
    uint64_t i = v->n[array]++;

    if (kaldi_is_kept(v, array, i))
        store_le32(v->dst + 4 * i, (uint32_t)value);
}

/* A bool. */
static inline void kaldi_put_byte(struct kaldi_values *v, uint8_t value)
{
    if (kaldi_is_kept(v, 0, v->n[0]++))
        *v->dst = value;
}

/* Set those of dim[] that follow from the numbers of values. */
void kaldi_values_dims(const struct kaldi_values *v, enum kaldi_type type,
                       uint64_t dim[static KALDI_DIMS]);

/* All elements are 0 until they are stored: for sparse objects. */
void kaldi_values_clear(struct kaldi_values *v);

/* ---- a walk over a binary object ---- */

struct kaldi_walk {
    struct kaldi_in *in;
    struct diag *diag;
    uint64_t at;       /* byte of the blob, <= in->size */
    const uint8_t *p;  /* the bytes there, */
    size_t have;       /* that many; may be 0 */
    uint64_t expected; /* bytes known to be read from here on */
    struct kaldi_values values;
};

/* Steps: 0, or an error with a message. what: its name in messages. */

/* Have n bytes at p. */
int kaldi_walk_fill(struct kaldi_walk *w, size_t n, const char *what);

/* Go to a byte of the blob. */
static inline void kaldi_walk_to(struct kaldi_walk *w, uint64_t at)
{
    w->at = at;
    w->have = 0;
}

/* The next n bytes, valid until the next step. */
static inline int kaldi_walk_bytes(struct kaldi_walk *w, size_t n, const char *what,
                                   const uint8_t **ret)
{
    int r = w->have < n ? kaldi_walk_fill(w, n, what) : 0;

    if (r < 0)
        return r;
    *ret = w->p;
    w->p += n;
    w->have -= n;
    w->at += n;
    w->expected -= n < w->expected ? n : w->expected;
    return 0;
}

/* An int32 with its size byte. */
int kaldi_walk_int(struct kaldi_walk *w, const char *what, int32_t *ret);

/* The same, of 0 or more. */
int kaldi_walk_count(struct kaldi_walk *w, const char *what, uint64_t *ret);

/* n int32, each with its size byte, of an array. */
int kaldi_walk_ints(struct kaldi_walk *w, unsigned array, uint64_t n, const char *what);

/* A real number with its size byte: its *ret_width bytes, 4 or 8. */
int kaldi_walk_real(struct kaldi_walk *w, const uint8_t **ret, unsigned *ret_width);

/* Check that n times each bytes remain, and count them as expected from now on. */
int kaldi_expect(struct kaldi_walk *w, uint64_t n, uint64_t each, const char *what);

/* Skip n values of each bytes, or fail. */
int kaldi_walk_skip(struct kaldi_walk *w, uint64_t n, uint64_t each, const char *what);

/* ---- families of objects ----
 *
 * Each walks from behind 00 'B' and the token, if any, to the end of the object; *o has type, store
 * and start, and the function fills in dim. It may change store to KALDI_BINARY8 or KALDI_NPY8. */

/* KALDI_INTS to KALDI_GAUSS_POST. Letter k of a record goes to array number array[k]; the elements
 * of a vector to the one after its length. Counts go to array 0. */
struct kaldi_list_layout {
    const char *record;
    uint8_t array[2];
    bool nested, has_counts;              /* has_counts: in text also */
    const char *outer, *inner;            /* names of the counts, for messages */
    const char *before, *after, *between; /* in text, of a nested list, or of a record */
};
extern const struct kaldi_list_layout kaldi_lists[N_KALDI_TYPES];
int kaldi_lists_measure(struct kaldi_walk *w, struct kaldi_object *o);

/* KALDI_SM, KALDI_SV. */
int kaldi_sparse_measure(struct kaldi_walk *w, struct kaldi_object *o);

/* KALDI_CM, KALDI_CM2, KALDI_CM3. It stores no values: decode does, from bytes that were measured
 * just before. */
int kaldi_compressed_measure(struct kaldi_walk *w, struct kaldi_object *o);
void kaldi_compressed_decode(const struct kaldi_object *o, const uint8_t *bytes, enum dtype dtype,
                             uint8_t *dst);

/* KALDI_NPY; decides the type too. The token is the magic of .npy files. */
int kaldi_numpy_measure(struct kaldi_walk *w, struct kaldi_object *o);

/* KALDI_WAVE (format/kaldi/object/wave.c): from its first byte on; decides the store. As Kaldi
 * reads it: 16-bit PCM. Other programs may read a file differently. To Kaldi, chunks after the data
 * are not part of the object, odd chunks have no pad byte, and some sizes in the header mean "to
 * the end of the file". */
int kaldi_wave_measure(struct kaldi_walk *w, struct kaldi_object *o);

/* KALDI_OPAQUE: from 00 'B' on. */
int kaldi_opaque_measure(struct kaldi_walk *w, struct kaldi_object *o);

/* Bytes of an unknown token that a message shows: the walk has them in its window with 00 'B'. */
#define KALDI_TOKEN_SHOWN 40

/* Binary objects after 00 'B' (format/kaldi/object/binary.c), of a type that is not KALDI_WAVE. */
int kaldi_binary_measure(struct kaldi_walk *w, enum kaldi_type type, struct kaldi_object *o);

/* Text (format/kaldi/object/text.c), of a type that is known. Stores values as kaldi_walk does. */
int kaldi_text_measure(struct kaldi_in *in, const struct kaldi_values *values,
                       struct kaldi_object *o, struct diag *d);

/* ---- numbers ---- */

/* The rows of a triangle of n numbers. */
static inline uint64_t kaldi_triangle_rows(uint64_t n)
{
    uint64_t rows = 0;

    while (rows * (rows + 1) / 2 < n)
        rows++;
    return rows;
}

/* Write element number i, a real number, as double (wide) or float. */
static inline void kaldi_store_real(uint8_t *dst, uint64_t i, bool wide, double v)
{
    if (wide)
        store_le64(dst + 8 * i, bits_of_f8(v));
    else
        store_le32(dst + 4 * i, bits_of_f4((float)v));
}

/* The number at p, of that width. */
static inline double kaldi_load_real(const uint8_t *p, unsigned width)
{
    return width == 8 ? f8_of_bits(load_le64(p)) : (double)f4_of_bits(load_le32(p));
}

/* The width in bytes of a value, if an object's values are one array at its end; 0: they are
 * not. */
unsigned kaldi_plain_width(const struct kaldi_object *object);

/* Write the n real numbers at p, of that width, to dst, as double (wide) or float. */
void kaldi_store_reals(uint8_t *dst, bool wide, const uint8_t *p, uint64_t n, unsigned width);

/* Store the n real numbers at p as the next ones of an array. */
void kaldi_put_reals(struct kaldi_values *v, unsigned array, const uint8_t *p, uint64_t n,
                     unsigned width);

#endif
