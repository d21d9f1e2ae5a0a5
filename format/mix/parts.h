/* What the files of format/mix/ share; no other file includes this. */
#ifndef EPOCHFS_FORMAT_MIX_PARTS_H
#define EPOCHFS_FORMAT_MIX_PARTS_H

#include "format/core/plan_fields.h"
#include "format/mix/mix.h"
#include "format/records/records.h"

/* A field of the mix, or several that show one content. */
struct mix_column {
    struct record_content content;
    const struct field **field;           /* [n] the field of each source that has it; owned */
    const struct record_content **record; /* [n] its content, where it is one of records; owned */
};

struct mix_set {
    struct mix_setup setup;
    uint64_t *first; /* [n + 1] sample; set when all sources are ready */
    unsigned n_columns;
    struct mix_column *column; /* [n_columns] */
    struct text left_out;
    uint64_t columns; /* of a sparse matrix */
    bool has_fields;
    struct picture_source pictures; /* of the dataset, where all sources have pictures in files */
};

static inline struct mix_set *mix_set_of(const struct dataset *ds)
{
    return ds->impl;
}

static inline const struct mix_column *mix_column_of(const struct dataset *ds,
                                                     const struct record_content *c)
{
    return &mix_set_of(ds)->column[c->column];
}

/* A sample, and a content of it, in its source. */
struct mix_origin {
    unsigned source;
    const struct dataset *ds;
    uint64_t sample;
    const struct field *field;           /* NULL: of no content */
    const struct record_content *record; /* NULL: the field is not one of records */
};

/* c: a content of the mix; NULL: none. */
struct mix_origin mix_origin_of(const struct dataset *ds, const struct record_content *c,
                                uint64_t sample);

/* Make the fields and columns of a mix whose sources are ready. 0; -EINVAL with the reason in d:
 * they differ; -ENOMEM. */
int mix_fields_make(struct dataset *ds, struct diag *d);
void mix_columns_free(struct mix_set *set);

/* Do the names of columns and of classes mean the same in all sources? Notes of ds say where a
 * source has none. 0; -EINVAL with the lists in d: they differ; -ENOMEM. */
int mix_names_check(struct dataset *ds, struct diag *d);

/* Offer the pictures of sources that are ready, if they are files of one name in all of them. */
void mix_offer_pictures(struct dataset *ds);

/* Make room for the fields of the next column, and count it. 0 or -ENOMEM, with nothing to release.
 */
int mix_column_init(struct mix_set *set, struct mix_column *c);

/* Add the members of a sparse matrix, if all sources have them: MIX_MATRIX_FIELDS at most, and
 * three columns. 0 or -errno with the reason in d. */
#define MIX_MATRIX_FIELDS 7
int mix_matrix_add(struct dataset *ds, struct diag *d);

extern const struct record_ops mix_contents;  /* contents that the sources have as arrays */
extern const struct field_ops mix_bytes_ops;  /* files of samples, and of batches */
extern const struct field_ops mix_source_ops; /* the number of the source */
field_read mix_read_stored;                   /* an item as it is stored */
field_read mix_read_shown;                    /* the same, as the sources show it */

#endif
