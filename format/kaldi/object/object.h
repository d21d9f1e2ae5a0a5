/* Objects of Kaldi tables: what they are, how long, and their values.
 *
 * An object stands behind its key in an archive, or at an offset that an scp file names. Its type
 * is what a program would read it as; its store is how its bytes stand. Source of all rules: the
 * Kaldi source (util/kaldi-holder-inl.h, matrix/kaldi-matrix.cc, matrix/compressed-matrix.cc,
 * feat/wave-reader.cc, base/io-funcs.cc). */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_OBJECT_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_OBJECT_H

#include "format/core/dtype.h"
#include "format/kaldi/object/window.h"

/* What an object is read as. */
enum kaldi_type {
    KALDI_UNKNOWN, /* to be found out */
    KALDI_MATRIX,
    KALDI_VECTOR,
    KALDI_PACKED, /* the lower triangle of a square matrix, row by row: SpMatrix, TpMatrix */
    KALDI_INT,
    KALDI_FLOAT,
    KALDI_DOUBLE,
    KALDI_BOOL,
    KALDI_INTS,      /* a vector of int32: alignments */
    KALDI_INT_LISTS, /* a vector of them */
    KALDI_INT_PAIRS,
    KALDI_FLOAT_PAIRS,
    KALDI_POSTERIOR,  /* for each frame a list of (int32, float) */
    KALDI_GAUSS_POST, /* for each frame a list of (int32, vector of float) */
    KALDI_TOKEN,
    KALDI_TOKENS,
    KALDI_WAVE,
    N_KALDI_TYPES,
};

/* How its bytes stand. */
enum kaldi_store {
    KALDI_BAD,  /* it cannot be read: only in tables */
    KALDI_TEXT, /* as text, and so of any type but KALDI_WAVE */
    KALDI_FM,   /* the stores of KALDI_MATRIX: float, double, ... */
    KALDI_DM,
    KALDI_CM,
    KALDI_CM2,
    KALDI_CM3,
    KALDI_SM, /* sparse; each value is float or double */
    KALDI_FV, /* of KALDI_VECTOR */
    KALDI_DV,
    KALDI_SV,
    KALDI_FP, /* of KALDI_PACKED */
    KALDI_DP,
    KALDI_NPY,     /* a .npy file of float (matrix/numpy-array.cc): two axes are a KALDI_MATRIX,
                      one is a KALDI_VECTOR */
    KALDI_NPY8,    /* the same of double */
    KALDI_BINARY,  /* the one binary form of the type; real numbers of 4 bytes */
    KALDI_BINARY8, /* the same, and at least one of its real numbers has 8 bytes */
    KALDI_RIFF,    /* of KALDI_WAVE */
    KALDI_RIFX,
    N_KALDI_STORES,
};

/* dim[], by type; of the stores SM and SV dim[2] is 1 if any value is a double:
 *
 *     MATRIX       rows, columns
 *     VECTOR       elements
 *     PACKED       values: n (n + 1) / 2
 *     INT, FLOAT, DOUBLE, BOOL, TOKEN, TOKENS   none
 *     INTS         elements
 *     INT_LISTS    lists, integers in all
 *     INT_PAIRS, FLOAT_PAIRS   pairs
 *     POSTERIOR    frames, entries in all
 *     GAUSS_POST   frames, entries in all, values in all
 *     WAVE         samples of a channel, channels, samples a second
 */
#define KALDI_DIMS 3

struct kaldi_object {
    enum kaldi_type type;
    enum kaldi_store store;
    uint64_t start; /* byte of its file: behind the key and the blank after it */
    uint64_t len;   /* bytes; of text with what ends it (a line's end), where that is there */
    uint64_t dim[KALDI_DIMS];
};

/* An array of an object. Most types have one; lists of lists have one for each level. */
struct kaldi_array {
    const char *suffix; /* of the field's name: "", "_counts" */
    enum dtype dtype;   /* of the values; real ones may be asked for as DTYPE_F4 and DTYPE_F8 */
    bool real;
    unsigned ndim;         /* 0 to 2 */
    uint8_t dim[2];        /* which of the object's dim[] each axis is, or: */
#define KALDI_DIM_TWO 0xff /* this axis is 2: of pairs */
};

#define KALDI_ARRAYS_MAX 4

struct kaldi_type_info {
    const char *name; /* of -o kaldi_type= */
    unsigned n_arrays;
    struct kaldi_array array[KALDI_ARRAYS_MAX];
};

/* The arrays, in this order:
 *
 *     INT_LISTS   _counts int32 [lists]; "" int32 [integers]
 *     POSTERIOR   _counts int32 [frames]; _index int32 [entries]; "" float [entries]
 *     GAUSS_POST  _counts int32 [frames]; _index int32 [entries]; _dims int32 [entries];
 *                 "" float [values]
 *     BOOL        "" uint8, 0 or 1
 *     TOKEN, TOKENS, WAVE   none here: text and audio are shown in other ways
 *     all others  ""
 */
extern const struct kaldi_type_info kaldi_types[N_KALDI_TYPES];

/* Measure the object at byte at of the blob: its type, store, length and dims. want: the type that
 * it is to be read as; KALDI_UNKNOWN: by what it says itself, which binary objects of the stores FM
 * to NPY8 and waves do, others fail. KALDI_MATRIX and KALDI_VECTOR take any store of theirs. in: on
 * its blob. Fills in all of *ret, start too. Every number is checked: an object that does not fit
 * into its file is bad. 0; -EBADMSG with "file: byte: want, found" in d, or -errno of reading. */
int kaldi_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type want, struct kaldi_object *ret,
                  struct diag *d);

/* Bytes of array number i of an object, with real numbers as dtype. false: more than 2^63. */
bool kaldi_array_bytes(const struct kaldi_object *object, unsigned i, enum dtype dtype,
                       uint64_t *ret);

/* Write all of array number i to dst, little-endian, C order, real numbers as dtype (DTYPE_F4 or
 * DTYPE_F8). bytes: the object's, [object->len], as they were when it was measured, or not: then
 * 0 or -EBADMSG, and never a byte outside of them or of dst. They must not change meanwhile. name:
 * of the file, for messages. Any thread. */
int kaldi_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                 enum dtype dtype, uint8_t *dst, const char *name, struct diag *d);

/* Do the bytes of the array stand in the object as they are to be shown? *ret: where, from the
 * start of the object. (FM as float32, DM as float64, FV, DV, ...) */
bool kaldi_plain(const struct kaldi_object *object, unsigned i, enum dtype dtype, uint64_t *ret);

/* ---- what format/kaldi/object/object.c is made of: binary (format/kaldi/object/binary.c) and text
 * (format/kaldi/object/text.c) ---- */

/* At byte at stand 00 'B'. want is never KALDI_WAVE. As kaldi_measure(). */
int kaldi_binary_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type want,
                         struct kaldi_object *ret, struct diag *d);
int kaldi_binary_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                        enum dtype dtype, uint8_t *dst, const char *name, struct diag *d);

/* want is never unknown. As kaldi_measure(). */
int kaldi_text_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type want,
                       struct kaldi_object *ret, struct diag *d);
int kaldi_text_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                      enum dtype dtype, uint8_t *dst, const char *name, struct diag *d);

/* The tokens of a text object without blanks around them: *ret_at from the start of bytes,
 * *ret_len bytes; blanks inside stay as they are. */
void kaldi_text_trim(const uint8_t *bytes, uint64_t len, uint64_t *ret_at, uint64_t *ret_len);

#endif
