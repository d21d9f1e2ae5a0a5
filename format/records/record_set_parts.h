/* What the files of record_set share: record_set.c (the dataset) and record_contents.c (what one
 * record has). Only they include this. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_SET_PARTS_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_SET_PARTS_H

#include "format/records/column_union.h"
#include "format/records/keys.h"
#include "format/records/record_set.h"
#include "format/records/record_slabs.h"

struct record_pictures;

struct record_set {
    const struct record_format *rf;
    struct shards files;
    struct keys keys;
    struct column_union learned;        /* with columns(), once they are known */
    struct record_content *content;     /* [n_columns] of the format or of learned */
    struct record_slabs slabs;          /* with read_rows() */
    struct record_pictures *pictures;   /* with picture= */
    struct record_pictures *thumbnails; /* where there are pictures */
    struct format_setup setup;
};

static inline const struct record_set *record_set_of(const struct dataset *ds)
{
    return ds->impl;
}

/* The columns of a file: those of the format, or those it has learned. */
const struct record_column *record_set_columns(const struct record_format *rf, const void *file,
                                               unsigned *ret_n);

/* read() of struct record_slabs. */
int record_set_read_slab(struct read_context *rc, const struct dataset *ds, const uint64_t *record,
                         unsigned n, uint8_t *dst, struct diag *d);

/* locate() of struct dataset_ops. */
void record_set_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                       struct text *t);

/* The contents of records of a record_set. */
extern const struct record_ops record_set_contents;

#endif
