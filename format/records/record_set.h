/* A dataset of records whose contents are fixed: the files of a format, their records in sequence,
 * and a field or more for each content. A format says how a file is opened and prepared, and where
 * in it a content of a record is; all else is here. See docs/internals/formats.md, "Write a format
 * in a day". */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_SET_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_SET_H

#include "format/index/index.h"
#include "format/records/records.h"
#include "format/records/shards.h"

enum record_shown {
    RECORD_NUMBERS, /* a number, or an array */
    RECORD_BYTES,   /* a file of its own, under an extension */
    RECORD_TEXT,
};

struct record_column {
    const char *name; /* of the field */
    enum record_shown shown;
    const char *ext; /* of RECORD_BYTES */
    enum dtype dtype;
    unsigned ndim;
    uint64_t dim[RECORD_AXES]; /* DIM_VARIES: the first axis, at least, differs */
};

struct record_format {
    const struct format *format;
    struct shard_ops file;
    /* Open a file, which has one user then; takes blob over, also on error. Its index has keys. 0,
     * or -errno with the reason in d: the file becomes ERROR.txt. */
    int (*open)(struct blob *blob, const struct format_setup *setup, struct shard *ret,
                struct diag *d);
    void (*share)(void *file);              /* it has one user more */
    int (*add_folders)(struct dataset *ds); /* dataset_add_folders() */
    const struct record_column *column;     /* [n_columns] */
    unsigned n_columns;

    /* The length of the first axis of a column that varies, in a row of a file's index; and where
     * the source has the bytes of any column, as the mount shows them. They never read. */
    uint64_t (*length)(const struct index *index, uint64_t row, unsigned column);
    uint64_t (*place)(const struct index *index, uint64_t row, unsigned column);
};

/* open_folder() of struct format: a dataset for each file, and one of all. */
int record_set_open_folder(const struct record_format *rf, struct source_file *source, size_t n,
                           const struct format_setup *setup, struct finds *finds);

#endif
