/* Objects of Kaldi tables: what they are, how long, and their values.
 *
 * An object follows its key in an archive, or begins at an offset that an scp file names. Its type
 * is what a program reads it as; its store is how its bytes are encoded. Source of all rules: the
 * Kaldi source (util/kaldi-holder-inl.h, matrix/kaldi-matrix.cc, matrix/compressed-matrix.cc,
 * feat/wave-reader.cc, base/io-funcs.cc). */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_OBJECT_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_OBJECT_H

#include "format/core/dtype.h"
#include "format/kaldi/object/window.h"

/* The type that an object is read as. */
enum kaldi_type {
    KALDI_UNKNOWN, /* not known yet */
    KALDI_MATRIX,
    KALDI_VECTOR,
    KALDI_PACKED, /* the lower triangle of a square matrix, row by row: SpMatrix, TpMatrix */
    KALDI_INT,
    KALDI_FLOAT,
    KALDI_DOUBLE,
    KALDI_BOOL,
    KALDI_INTS,      /* a vector of int32: alignments */
    KALDI_INT_LISTS, /* a vector of vectors of int32 */
    KALDI_INT_PAIRS,
    KALDI_FLOAT_PAIRS,
    KALDI_POSTERIOR,  /* a list of (int32, float) per frame */
    KALDI_GAUSS_POST, /* a list of (int32, vector of float) per frame */
    KALDI_TOKEN,
    KALDI_TOKENS,
    KALDI_WAVE,
    KALDI_OPAQUE, /* "<Token> ...": only the program that wrote it knows more */
    N_KALDI_TYPES,
};

/* How an object's bytes are encoded. */
enum kaldi_store {
    KALDI_BAD,  /* the object cannot be read: only in tables */
    KALDI_TEXT, /* as text, and so of any type but KALDI_WAVE and KALDI_OPAQUE */
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
    KALDI_BINARY,  /* the only binary form of the type; real numbers of 4 bytes */
    KALDI_BINARY8, /* the same, but at least one real number has 8 bytes */
    KALDI_RIFF,    /* of KALDI_WAVE */
    KALDI_RIFX,
    N_KALDI_STORES,
};

/* dim[], by type; for the stores SM and SV dim[2] is 1 if any value is a double:
 *
 *     MATRIX       rows, columns
 *     VECTOR       elements
 *     PACKED       values: n (n + 1) / 2
 *     INT, FLOAT, DOUBLE, BOOL   none
 *     TOKEN, TOKENS   bytes of the tokens, without the white space around them; where they begin in
 *                  the object
 *     INTS         elements
 *     INT_LISTS    lists, integers in all
 *     INT_PAIRS, FLOAT_PAIRS   pairs
 *     POSTERIOR    frames, entries in all
 *     GAUSS_POST   frames, entries in all, values in all
 *     OPAQUE       none
 *     WAVE         samples of a channel, channels, samples per second
 */
#define KALDI_DIMS 3

struct kaldi_object {
    enum kaldi_type type;
    enum kaldi_store store;
    uint64_t start; /* byte of its file: after the key and the space that follows it */
    uint64_t len;   /* bytes; of text, with the end of the line if there is one */
    uint64_t dim[KALDI_DIMS];
    uint64_t data; /* of a wave: where its samples begin in the object */
    bool is_open;  /* text without the end of its line */
};

/* An array of an object. Most types have one array; lists of lists have one per level. */
struct kaldi_array {
    const char *suffix; /* of the field's name: "", "_counts" */
    enum dtype dtype;   /* of the values; callers may ask for real ones as DTYPE_F4 or DTYPE_F8 */
    bool real;
    unsigned ndim;         /* 0 to 2 */
    uint8_t dim[2];        /* for each axis, an index into the object's dim[], or: */
#define KALDI_DIM_TWO 0xff /* an axis of size 2: pairs */
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
 *     TOKEN, TOKENS, WAVE, OPAQUE   none here: files show text and audio in other ways
 *     all others  ""
 */
extern const struct kaldi_type_info kaldi_types[N_KALDI_TYPES];

/* The type of that name; KALDI_UNKNOWN: there is none. */
enum kaldi_type kaldi_type_called(const char *name, size_t len);

/* Measure the object at byte at of the blob: its type, store, length and dims. type: the type to
 * read it as. KALDI_UNKNOWN: the type that the object states itself, as waves and binary objects of
 * the stores FM to NPY8 do; others fail. KALDI_MATRIX and KALDI_VECTOR accept any of their stores.
 * in: a window on the blob. Fills in all of *ret, start too. Checks every number: an object that
 * does not fit into its file is bad. 0; -EBADMSG with "file: byte: expected, got" in d, or -errno
 * of reading.
 *
 * An opaque object at byte 0 is all of its file. Another one ends where the first "</Token> " of
 * its own class is followed by the end of the file, or by a key and an object of that class,
 * and has at most 256 MiB. */
int kaldi_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type type, struct kaldi_object *ret,
                  struct diag *d);

/* *ret: the bytes of array number i of an object, with real numbers as dtype. false: more than
 * 2^63. */
bool kaldi_array_bytes(const struct kaldi_object *object, unsigned i, enum dtype dtype,
                       uint64_t *ret);

/* Write all of array number i to dst, little-endian, C order, real numbers as dtype (DTYPE_F4 or
 * DTYPE_F8). bytes: the object's, [object->len]; they must not change during the call. If they have
 * changed since the object was measured, the result is 0 or -EBADMSG, and no access leaves them or
 * dst. name: of the file, for messages. Any thread. */
int kaldi_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                 enum dtype dtype, uint8_t *dst, const char *name, struct diag *d);

/* Are its real numbers, or some of them, double? */
bool kaldi_is_wide(const struct kaldi_object *object);

/* About the bytes of an object, from its type, store and dims: an index keeps the difference. */
uint64_t kaldi_len_estimate(const struct kaldi_object *object);

/* Does the object hold the array's bytes exactly as files show them? *ret: where, from the start of
 * the object. (FM as float32, DM as float64, FV, DV, ...) */
bool kaldi_plain(const struct kaldi_object *object, unsigned i, enum dtype dtype, uint64_t *ret);

/* Write an object as Kaldi's programs do: as text with 7 digits, and its line's end; or in binary.
 * type: none of tokens and waves. dim: of what is written, for matrices rows and columns. array:
 * each one's values, real ones as double (wide) or float. *ret: malloc'd, head bytes that the
 * caller sets, then the *ret_len bytes of the object. 0 or -ENOMEM. */
struct kaldi_written {
    enum kaldi_type type;
    bool as_text, wide;
    uint64_t dim[KALDI_DIMS];
    const uint8_t *array[KALDI_ARRAYS_MAX];
};
int kaldi_write(const struct kaldi_written *written, size_t head, uint8_t **ret, size_t *ret_len);

/* Write the header of a .wav file as Kaldi's writer makes it: format 1, then the data. Sizes that
 * do not fit into 32 bits are FFFFFFFF, "to the end of the file". */
#define KALDI_WAVE_HEADER 44
void kaldi_wave_header(unsigned channels, uint32_t rate, uint64_t frames,
                       uint8_t ret[static KALDI_WAVE_HEADER]);

#endif
