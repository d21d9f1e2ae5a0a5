/* What the parts of manifests share: manifest.c (index, opening) and manifest_shown.c (what
 * datasets show). Only they include this. */
#ifndef EPOCHFS_FORMAT_FILES_MANIFEST_PARTS_H
#define EPOCHFS_FORMAT_FILES_MANIFEST_PARTS_H

#include "format/files/claim/names.h"
#include "format/files/manifest.h"
#include "format/files/source.h"
#include "format/records/column_table.h"
#include "format/rows/row.h"

#define USAGE_MAX 64 /* bytes of the name of a usage */

/* What the datasets of a collection share. */
struct manifest_set {
    struct files_source source;
    unsigned users;
};

/* Columns of the index; the numbers of labels follow. */
enum {
    MANIFEST_MEMBER, /* 1 + the number of the picture; 0: there is no such file */
    MANIFEST_LABELS, /* how many */
    MANIFEST_FIXED,
};

struct manifest_file {
    struct record_file base;
    struct manifest_set *set;
    size_t table; /* the member that is the manifest, */
    char *name;   /* and its path below SOURCE; owned */
    char usage[USAGE_MAX];

    struct row_walk walk; /* while the index is made */
    uint64_t line;        /* the last one */
    uint64_t *number;     /* of a row of the index */
    unsigned columns;     /* of the index, so far */

    struct column_table names; /* labels, as they were found */
    uint64_t dropped;          /* lines whose file is no picture */

    /* Once it is prepared: */
    uint32_t *label;          /* [names.n] numbers of the names */
    uint32_t *sorted;         /* [names.n] their places in names */
    uint64_t missing;         /* lines whose file is not there */
    struct column_table exts; /* of pictures: number 0 is how many have it */
    struct manifest_column {
        char name[RECORD_NAME_MAX + 1], ext[RECORD_NAME_MAX + 1];
    } * shows;                    /* [exts.n] */
    struct record_column *column; /* [n_columns] exts.n, then labels, and one label as text */
};

/* Set columns of a prepared file. 0 or -ENOMEM. */
int manifest_make_columns(struct manifest_file *file);

#endif
