/* What the files of record_set share: record_set.c (the dataset), record_contents.c (what one
 * record has) and record_places.c (which columns have files). Only they include this. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_SET_PARTS_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_SET_PARTS_H

#include "format/records/column_union.h"
#include "format/records/keys.h"
#include "format/records/record_set.h"
#include "format/records/record_slabs.h"

struct record_audio;
struct record_pictures;

struct record_set {
    struct shards files; /* first */
    const struct record_format *rf;
    struct keys keys;
    struct column_union learned;        /* without column of the format, once they are known */
    struct record_content *content;     /* [n_columns] of the format or of learned */
    struct record_slabs slabs;          /* with read_rows() */
    struct record_pictures *pictures;   /* with picture= */
    struct record_pictures *thumbnails; /* where there are pictures */
    struct record_audio *audio;         /* where there is audio */
    bool is_known;                      /* its records and columns are */
    struct format_setup setup;
};

static inline const struct record_set *record_set_of(const struct dataset *ds)
{
    return ds->impl;
}

/* The columns of a file: those of the format, or those it has learned. */
const struct record_column *record_set_columns(const struct record_format *rf,
                                               const struct record_file *file, unsigned *ret_n);

/* Is it an array of another length in each record? */
static inline bool record_column_varies(const struct record_column *c)
{
    return c->shown != RECORD_NUMBERS || c->has_holes || (c->ndim && c->dim[0] == DIM_VARIES);
}

/* Which files columns have in folders of samples and batches. Starts as {0}, or with the files that
 * the folders have besides. */
struct record_places {
    unsigned raw, npy_samples, npy_batches, text; /* files of a sample, in each folder */
    unsigned *in;                                 /* [n] of each column: a mask of IN_... */
    unsigned left_out;                            /* columns that some folder has no place for */
    const char *first;                            /* of them; the column's */
};

/* Fill it for the n columns of a dataset. 0 or -ENOMEM. */
int record_places_make(const struct dataset *ds, const struct record_column *column, unsigned n,
                       struct record_places *places);
void record_places_release(struct record_places *places);
#define AUTO_PLACES AUTO(record_places_release)

/* read() of struct record_slabs. */
int record_set_read_slab(struct read_context *rc, const struct dataset *ds, const uint64_t *record,
                         unsigned n, uint8_t *dst, struct diag *d);

/* Are the bytes of a content those at its extent? */
bool record_set_is_copy(const struct dataset *ds, const struct record_content *c, uint64_t record);

/* locate() of struct dataset_ops. */
void record_set_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                       struct text *t);

/* Add what the indexes of the files depend on: also which records there are. 0 or -errno. */
int record_set_set_identity(const struct dataset *ds, struct text *t);

/* Add the arrays of pictures, and of audio, if any of n columns has files of them. 0 or -ENOMEM. */
int record_set_add_pictures(struct dataset *ds, const struct record_column *column, unsigned n);
int record_set_add_audio(struct dataset *ds, const struct record_column *column, unsigned n);

/* The contents of records of a record_set. */
extern const struct record_ops record_set_contents;

#endif
