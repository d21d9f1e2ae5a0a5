/* A dataset: samples 0 .. n-1, each with the same fields.
 *
 * A field is an array per sample: stored in a source file, or made from what is stored. Formats
 * fill struct dataset, encoders read it. Its fields' names, roles and ops are there once it is
 * opened; the rest, the number of samples too, once it is ready. From then on it is constant and
 * any thread may read it. */
#ifndef EPOCHFS_FORMAT_CORE_DATASET_H
#define EPOCHFS_FORMAT_CORE_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/text.h"
#include "format/core/dtype.h"
#include "format/core/key_name.h"
#include "format/core/selection.h"

struct dataset;
struct extent;
struct field;
struct folder;
struct format;
struct memo;

enum field_role {
    FIELD_STORED,  /* an array per sample, all alike */
    FIELD_PARSED,  /* the same, made of text */
    FIELD_DERIVED, /* made of another one: where a file holds one field only */
    FIELD_MEMBER,  /* an array that makes sense beside others only */
    FIELD_TEXT,    /* the text of samples: svm */
    FIELD_NUMBER,  /* the sample numbers */
    FIELD_KEY,     /* the keys: where a file holds all fields */
    /* Of samples whose arrays differ in length: */
    FIELD_VALUE,     /* one element a sample */
    FIELD_RAGGED,    /* the arrays, one after another */
    FIELD_DECODED,   /* the same, of what other encodings show better than tar: audio */
    FIELD_PADDED,    /* the arrays, filled up with zeros to the longest */
    FIELD_LENGTHS,   /* how long each was before that */
    FIELD_OFFSETS,   /* where each begins in FIELD_RAGGED */
    FIELD_STRING,    /* text, an element a sample */
    FIELD_LINE,      /* the same as lines */
    FIELD_KEY_LINES, /* the keys as lines */
    FIELD_AUDIO,     /* a .wav file */
    FIELD_OBJECT,    /* the bytes as they are stored, of samples that differ */
    FIELD_ARCHIVE,   /* a Kaldi archive */
    FIELD_SCRIPT,    /* the scp file to that archive */
    N_FIELD_ROLES,
};

/* Where a field of a role is shown. */
enum {
    IN_NPY_SAMPLES = 1,
    IN_NPY_BATCHES = 2,
    IN_NPZ_SAMPLES = 4,
    IN_NPZ_BATCHES = 8,
    IN_TAR = 16,
    IN_PAGES = 32, /* dataset.json: what is known of each sample's items */
};

/* An array as a file shows it. */
#define FORM_AXES_MAX 256
struct form {
    enum dtype dtype;
    uint64_t width; /* bytes of an element */
    unsigned ndim;
    uint64_t dim[FORM_AXES_MAX]; /* [ndim] */
};

/* How the bytes of a field are made. */
struct field_ops {
    /* Write bytes [off, off + len) of the field's array for sel. 0 or -errno. */
    int (*read)(const struct dataset *ds, const struct field *f, const struct selection *sel,
                uint64_t off, size_t len, uint8_t *dst, struct diag *d);
    /* The form of that array. NULL: the items of the samples, one after another. 0, or -errno with
     * the reason in sel->reason; -EDOM: items of samples of the selection differ, they cannot be
     * one array. That takes no reading of the sources. */
    int (*form)(const struct dataset *ds, const struct field *f, const struct selection *sel,
                struct form *ret);
};

#define FIELD_NAME_SIZE 64
#define DIM_VARIES      UINT64_MAX /* in dim[]: it differs from sample to sample */

struct field {
    char name[FIELD_NAME_SIZE];
    enum field_role role;
    bool unnamed; /* a file of this field alone need not name it */
    const struct field_ops *ops;
    bool mixed; /* for some selections its form is -EDOM; once the dataset is ready */

    /* An item as it is shown: little-endian, C order. Not of fields that have a form of their own.
     */
    enum dtype dtype;
    unsigned ndim;       /* axes of one sample's item */
    uint64_t *dim;       /* [ndim]; owned */
    uint64_t width;      /* bytes of an element */
    uint64_t item_bytes; /* width x product of dim */

    /* Where it comes from; blob is NULL for FIELD_NUMBER and FIELD_KEY. */
    const struct blob *blob; /* owned by the dataset */
    uint64_t offset;         /* of sample 0 in blob */
    enum dtype stored_dtype;
    uint64_t stored_width; /* bytes of a stored element */
    uint64_t stored_bytes; /* of a sample's item */
    bool stored_big_endian;
    const struct field *base_field; /* the field that a derived one is derived from */
    const void *impl;               /* the format's */
};

/* Is it shown there? place: one of IN_... */
bool field_is_in(const struct field *f, unsigned place);

enum dataset_state { DATASET_READY, DATASET_PREPARING, DATASET_FAILED };

#define KEY_SIZE 1024 /* bytes of a key, at most */

/* What a format does in its own way; NULL members, and no ops at all, mean the usual way. */
struct dataset_ops {
    /* Get ready a step further; the calls come one after another. 1: ready, 0: not yet, or -errno
     * with the reason in d: it never will be; but after -EREMOTEIO and -EINTR the next call goes
     * on. NULL: it is ready once opened. */
    int (*prepare)(struct dataset *ds, struct diag *d);
    /* How far it is: bytes of the sources. Any thread. */
    void (*progress)(const struct dataset *ds, uint64_t *ret_done, uint64_t *ret_total);
    /* The share part of parts of the stored order. NULL: equal counts. */
    void (*share)(const struct dataset *ds, uint64_t part, uint64_t parts, uint64_t *ret_start,
                  uint64_t *ret_length);
    /* Parse everything and report what cannot be. NULL: reading is all that can go wrong. */
    int (*check)(const struct dataset *ds, void (*report)(void *ctx, const char *text), void *ctx,
                 struct diag *d);
    /* Members of dataset.json that only this format has, each line begun with indent and ended by a
     * comma. */
    void (*describe)(const struct dataset *ds, const char *indent, struct text *t);
    /* Where a sample, or one of its fields (NULL: all), stands: "file:offset+length". NULL: as its
     * fields are stored. */
    void (*locate)(const struct dataset *ds, uint64_t sample, const struct field *only,
                   struct text *t);
    /* See dataset_extents() in format/core/extents.h; room for EXTENTS_MOST, and the same bytes may
     * be told twice. NULL: as its fields are stored. */
    unsigned (*extents)(const struct dataset *ds, uint64_t sample, const struct field *only,
                        struct extent *ret);
    /* The key of a sample, and the sample of a name. NULL: keys are the sample numbers. */
    size_t (*key)(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE]);
    bool (*find)(const struct dataset *ds, const char *name, size_t len, uint64_t *ret);
    /* Free what own and blob[] hold. */
    void (*free)(struct dataset *ds);
    bool checks_reads; /* each read has checked the blobs that it used */
    bool walks;        /* the sizes of files of many samples take a walk, in stored order, too */
};

struct dataset {
    const struct format *format;
    const struct dataset_ops *ops; /* NULL: all usual */
    void *impl;                    /* the format's */
    _Atomic int state;             /* enum dataset_state */
    int failed;                    /* -errno of a failed one, and why; constant from then on: */
    struct diag reason;
    struct diag note;    /* what is not as it should be with one that is ready */
    struct diag trouble; /* why the last dataset_prepare() got no further; the preparing thread's */
    uint64_t samples;
    unsigned key_digits; /* a key is the sample number with that many digits */

    unsigned n_fields;
    struct field *field; /* [n_fields]; owned */

    unsigned n_blobs;
    struct blob **blob; /* [n_blobs]; owned */
    bool shares_blobs;  /* with other datasets, which count them */
    unsigned denied; /* permission bits that files have not which are read, too; once it is ready */

    struct memo *memo; /* of what was made of samples that differ in size; another's; else NULL */

    /* The files that the encoders offer, see encoder.h. Owned. */
    unsigned n_folders;
    struct folder *folder;
};

static inline enum dataset_state dataset_state(const struct dataset *ds)
{
    return (enum dataset_state)atomic_load_explicit(&ds->state, memory_order_acquire);
}

/* Prepare a step further and publish the state that it has then. Not in two threads at once. 1:
 * ready or failed, 0: not yet. A remote that is gone says nothing of the dataset: it is not ready
 * yet, ds->trouble is set, and each call tries again, which takes as long as a read waits. */
int dataset_prepare(struct dataset *ds);

/* Add "file:offset+length" of a sample's stored fields, or of only one of them. */
void dataset_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                    struct text *t);

/* Frees its blobs too; takes NULL and half-built ones. */
void dataset_free(struct dataset *ds);

static inline void dataset_scope_end(struct dataset **ds)
{
    dataset_free(*ds);
}
#define AUTO_DATASET AUTO(dataset_scope_end)

/* The field of that name, or NULL. */
const struct field *dataset_field(const struct dataset *ds, const char *name);

/* The key of a sample; returns its bytes, which may be any. */
size_t dataset_key(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE]);

/* The name of a sample's files, without what follows it; NUL-terminated. See key_name(). */
size_t dataset_name(const struct dataset *ds, uint64_t sample, bool dots,
                    char ret[static KEY_NAME_SIZE]);

/* Set the number of samples, and the width of keys by it. */
void dataset_set_samples(struct dataset *ds, uint64_t samples);

/* The sample of that name; false where there is none. */
bool dataset_find(const struct dataset *ds, const char *name, size_t len, uint64_t *ret);

/* The fields that every dataset has: index and key. The caller has room for both at the end of
 * ds->field. */
void dataset_add_numbering(struct dataset *ds);

/* The form of a field's array for a selection, and its bytes. 0, -EFBIG where no file can hold it,
 * or what the field's own form() gives. */
int field_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
               struct form *ret, uint64_t *ret_bytes);

/* The same of the bytes as they are stored; f has no form of its own. */
void field_stored_form(const struct field *f, const struct selection *sel, struct form *ret);

/* numpy's text of a shape: "(128, 28, 28)", "(3,)", "()". */
void form_shape_text(const struct form *form, struct text *t);

/* Ops of fields whose items are stored one after another; chosen by what must be converted. */
extern const struct field_ops field_as_stored;  /* same bytes */
extern const struct field_ops field_swapped;    /* big-endian elements of 2, 4, 8 bytes */
extern const struct field_ops field_unit;       /* uint8 to float32 in 0..1: v / 255.0f */
extern const struct field_ops field_one_hot;    /* an integer to float32 [dim[0]] */
extern const struct field_ops field_transposed; /* the two axes of an item exchanged */
extern const struct field_ops field_unit_transposed;
extern const struct field_ops field_number;
extern const struct field_ops field_key;

/* The bytes as they stand in the source, whatever the field shows. Units: stored_bytes. */
int field_read_stored(const struct field *f, const struct selection *sel, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d);

/* The integer of one sample of a scalar stored integer field. */
int field_integer(const struct field *f, uint64_t sample, int64_t *ret, struct diag *d);

/* A stored integer as it stands in the source. */
int64_t stored_integer(const struct field *f, const uint8_t *p);

static inline bool field_is_scalar_integer(const struct field *f)
{
    return f->ndim == 0 && (f->dtype == DTYPE_U1 || f->dtype == DTYPE_I1 || f->dtype == DTYPE_I2 ||
                            f->dtype == DTYPE_I4);
}

/* A picture is what viewers show as grey: uint8, two axes, neither empty. */
static inline bool field_is_picture(const struct field *f)
{
    return f->role == FIELD_STORED && f->dtype == DTYPE_U1 && f->ndim == 2 && f->item_bytes > 0;
}

#endif
