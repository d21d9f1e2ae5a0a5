/* A dataset: samples 0 .. n-1, each with the same fields.
 *
 * A field is an array per sample, of one dtype and shape for all samples: stored in a source file,
 * or derived from what is stored. Formats fill struct dataset, encoders read it; once opened it is
 * constant and any thread may read it. */
#ifndef EPOCHFS_FORMAT_DATASET_H
#define EPOCHFS_FORMAT_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"
#include "format/dtype.h"
#include "format/selection.h"

struct dataset;
struct field;
struct folder;
struct format;

enum field_role {
    FIELD_STORED,  /* in every encoding */
    FIELD_DERIVED, /* where a file holds one field only (npy) */
    FIELD_NUMBER,  /* the sample numbers: batches only */
    FIELD_KEY,     /* the keys: batches that hold all fields in one file */
};

/* How the bytes of a field are made. */
struct field_ops {
    /* Write bytes [off, off + len) of the field's items of sel, one after another. 0 or -errno. */
    int (*read)(const struct dataset *ds, const struct field *f, const struct selection *sel,
                uint64_t off, size_t len, uint8_t *dst, struct diag *d);
};

struct field {
    char name[32];
    enum field_role role;
    const struct field_ops *ops;

    /* An item as it is shown: little-endian, C order. */
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
    const struct field *of; /* the field that a derived one is derived from */
};

struct dataset {
    const struct format *format;
    uint64_t samples;
    unsigned key_digits; /* a key is the sample number with that many digits */

    unsigned n_fields;
    struct field *field; /* [n_fields]; owned */

    unsigned n_blobs;
    struct blob **blob; /* [n_blobs]; owned */

    /* The files that the encoders offer, see encoder.h. Owned. */
    unsigned n_folders;
    struct folder *folder;
};

/* Frees its blobs too; takes NULL and half-built ones. */
void dataset_free(struct dataset *ds);

static inline void dataset_scope_end(struct dataset **ds)
{
    dataset_free(*ds);
}
#define AUTO_DATASET AUTO(dataset_scope_end)

/* The field of that name, or NULL. */
const struct field *dataset_field(const struct dataset *ds, const char *name);

/* The key of a sample, NUL-terminated. */
#define KEY_ROOM 24
void dataset_key(const struct dataset *ds, uint64_t sample, char ret[static KEY_ROOM]);

/* The sample whose key is key; false where there is none. */
bool dataset_find(const struct dataset *ds, const char *key, size_t len, uint64_t *ret);

/* The fields that every dataset has: index and key. The caller has room for both at the end of
 * ds->field. */
void dataset_add_numbering(struct dataset *ds);

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
