/* Encoders: how samples look as files. One table of functions each; format/encode/encode.h has
 * them.
 *
 * An encoder is a folder of the tree (`samples/npy`, `batches/<plan>/npy`). For each sample or
 * batch that folder holds one file of every kind that the encoder offers for the dataset. */
#ifndef EPOCHFS_FORMAT_CORE_ENCODER_H
#define EPOCHFS_FORMAT_CORE_ENCODER_H

#include "format/core/layout.h"

struct encoder;
struct offers;

enum scope { SCOPE_SAMPLES, SCOPE_BATCHES, N_SCOPES };

#define KINDS_MAX    64 /* of a folder: fs/ numbers them with 6 bits */
#define ENCODERS_MAX 16

struct file_kind {
    char suffix[FIELD_NAME_SIZE +
                8]; /* what follows the key or the number of the batch: ".image.npy" */
    const struct encoder *encoder;
    const struct field *field; /* the one that it holds; NULL: all */
};

struct folder {
    const struct encoder *encoder;
    unsigned n_kinds[N_SCOPES];
    struct file_kind *kind[N_SCOPES]; /* sorted by suffix */
};

/* What the bytes of a file are, for those who read them without a header. */
enum shows { SHOWS_CONTAINER, SHOWS_ITEMS, SHOWS_STORED };

struct encoder {
    const char *name;
    enum shows shows;

    /* Call offer() for each kind of file. 0 or -ENOMEM. */
    int (*offer)(const struct dataset *ds, enum scope scope, struct offers *offers);

    /* Add the parts of the file of that kind for l->selection. 0 or -errno; -EDOM: see
     * file_kind_is_mixed(). */
    int (*layout)(struct layout *l, const struct file_kind *kind);

    bool all_arrays; /* a file of all fields has each as an array, those of IN_NPZ_BATCHES */
};

/* Is there a selection that cannot be a file of that kind, because arrays of its samples cannot be
 * one? Once ds is ready. */
bool file_kind_is_mixed(const struct dataset *ds, const struct file_kind *kind);

/* A file of one field, or of all (field NULL): ".<field>.<ext>" or, of all, ".<ext>". */
int offer(struct offers *offers, const struct field *field, const char *ext);

/* The same, ".<ext>" where the field need not be named. */
int offer_alone(struct offers *offers, const struct field *field, const char *ext);

/* Ask each of n encoders what it offers for ds and fill ds->folder; once its fields are known.
 * 0, -ENOMEM or -E2BIG (more than KINDS_MAX kinds in a folder). */
int dataset_fill_folders(struct dataset *ds, const struct encoder *const *encoders, unsigned n);
void dataset_free_folders(struct dataset *ds);

/* Axis i of an item as it stands in the source. */
uint64_t field_stored_dim(const struct field *f, unsigned i);

#endif
