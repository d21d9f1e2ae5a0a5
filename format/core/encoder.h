/* Encoders: how samples look as files. Each is a table of functions; format/encode/encode.h lists
 * them.
 *
 * A folder of the tree (`samples/npy`, `batches/<plan>/npy`) holds one file of every kind that is
 * offered for the dataset, for each sample or batch: by the encoder of that name, and by fields
 * that offer bytes as they are (field_offer_bytes()). */
#ifndef EPOCHFS_FORMAT_CORE_ENCODER_H
#define EPOCHFS_FORMAT_CORE_ENCODER_H

#include "format/core/layout.h"

struct encoder;

/* Whose files they are: those of samples, of batches, and of batches of plans that make pictures,
 * which have other fields (plan_fields.h). */
enum scope { SCOPE_SAMPLES, SCOPE_BATCHES, SCOPE_PICTURES, N_SCOPES };

#define KINDS_MAX   64 /* of a folder: fs/ numbers them with 6 bits */
#define FOLDERS_MAX 255
#define SUFFIX_SIZE 75 /* with a name of KEY_NAME_MAX bytes, a name of a file */

struct file_kind {
    char suffix[SUFFIX_SIZE]; /* what follows the key or the number of the batch: ".image.npy" */
    const char *folder;       /* the name of its folder */
    const struct encoder *encoder;
    const struct field *field; /* the field that the file holds; NULL: all */
};

struct folder {
    const char *name;
    unsigned n_kinds[N_SCOPES];
    struct file_kind *files[N_SCOPES]; /* sorted by suffix */
};

/* Is there a file in it? A folder that was named before the fields were known may be empty, and is
 * not shown then. */
static inline bool folder_is_used(const struct folder *folder)
{
    return folder->n_kinds[SCOPE_SAMPLES] || folder->n_kinds[SCOPE_BATCHES];
}

/* What the bytes of a file are, for readers that use them without a header. */
enum shows { SHOWS_CONTAINER, SHOWS_ITEMS, SHOWS_STORED };

struct encoder {
    const char *name;
    enum shows shows;

    /* The files that it offers for samples, and for batches: ".<field>.<ext>" for each field that
     * is in one of these places (IN_...). has_all: one of all fields, ".<ext>", if any is. */
    unsigned in[N_SCOPES];
    bool has_all;
    const char *ext;                     /* NULL: its name */
    bool (*fits)(const struct field *f); /* what more a field needs; NULL: nothing */
    bool has_labels; /* if it offers any, also ".<field>.cls" for other fields of IN_CLS */

    /* Add to l the parts of the file of that kind for l->selection. 0 or -errno; -EDOM: see
     * file_kind_is_mixed(). */
    int (*layout)(struct layout *l, const struct file_kind *file);

    bool reads;      /* the size of a file takes reading bytes of its samples */
    bool all_arrays; /* a file of all fields holds each field of IN_NPZ_BATCHES as an array */
};

/* Are the bytes of its files those of the field, without a header or a number? */
bool file_kind_is_stored(const struct file_kind *file);

/* Is there a selection that cannot be a file of that kind, because its samples' arrays do not fit
 * into one array? ds must be ready. */
bool file_kind_is_mixed(const struct dataset *ds, const struct file_kind *file);

/* Ask each of n encoders and each field what it offers, and fill ds->folder; the fields of ds must
 * be known. The folders of encoders come first, in that order. 0, -ENOMEM, or -E2BIG: more than
 * FOLDERS_MAX folders, more than KINDS_MAX kinds in one, or a suffix that is too long. */
int dataset_fill_folders(struct dataset *ds, const struct encoder *const *encoders, unsigned n);
void dataset_free_folders(struct dataset *ds);

/* Has the dataset a folder of that name? */
bool dataset_has_folder(const struct dataset *ds, const char *name);

/* Fill the folders again, because fields were added; there are no other folders than before.
 * Nothing may know the files yet. Errors as dataset_fill_folders(). */
int dataset_fill_again(struct dataset *ds, const struct encoder *const *encoders, unsigned n);

/* Name the folders of a dataset whose fields are not known yet; the names must outlive it. A later
 * dataset_fill_folders(), before the dataset is ready, fills them, and adds none. 0 or -ENOMEM. */
int dataset_name_folders(struct dataset *ds, const char *const *names, unsigned n);

#endif
