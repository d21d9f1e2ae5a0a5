/* A collection as files of records. Three layouts say which files are a sample: names, a table of
 * metadata, a manifest. Each row of their indexes names members of the collection, one for each
 * column of files, and may have labels, or cells of the table. What a row shows is in file.c, the
 * same for all. */
#ifndef EPOCHFS_FORMAT_FILES_FILE_H
#define EPOCHFS_FORMAT_FILES_FILE_H

#include "format/files/claim/claim.h"
#include "format/records/member_values.h"
#include "format/records/record_set.h"
#include "format/rows/row.h"

/* ---- the bytes of a collection, and what is not in it; its datasets share them ---- */

struct files_source {
    struct blob *blob; /* owned, and has members */
    const struct members *members;
    char *root;
    struct files_claim *claim; /* owned */
    struct claim_boxes *boxes; /* NULL, or what is read of them; owned */
    size_t n_unread;           /* files that cannot be read, */
    char *unread;              /* and why the first cannot; NULL: there are none */
    unsigned users;            /* files of records that read it, and its maker */
};

/* The path of a member below SOURCE, owned by the caller; NULL: no memory. */
char *files_source_name(const struct files_source *source, size_t member);

/* The member at a path below SOURCE; members->n: there is none. */
size_t files_source_find(const struct files_source *source, const char *path);

struct claim_boxes;
void claim_boxes_free(struct claim_boxes *boxes); /* takes NULL */

/* ---- one file of records ---- */

struct files_file;

/* What a layout does in its own way. The file is its struct, which begins with a struct files_file.
 * Columns [0, n_members) show members; then come n_labels, the label as a number and as text; then
 * cells. */
struct files_ops {
    struct record_file_ops file; /* release() ends with files_file_release() */
    /* As has() of struct record_format. A column of members that are lost has all of them. */
    bool (*has)(const void *file, uint64_t row, unsigned column);
    /* The member that a row has in a column. 1; 0: it has none; or -errno with the reason in d: it
     * is lost. */
    int (*member)(const void *file, uint64_t row, unsigned column, size_t *ret, struct diag *d);
    /* Can the values of a row be read? 0, or -errno with the reason in d. NULL: there are none. */
    int (*fault)(const void *file, uint64_t row, struct diag *d);
    /* The labels of a row: how many, NULL: one; and number i of them. NULL: there are none. */
    uint64_t (*labels)(const void *file, uint64_t row);
    int64_t (*label)(const void *file, uint64_t row, uint64_t i);
    /* The columns behind those of labels: as dims() and read() of struct record_format. */
    int (*cell_dims)(const void *file, uint64_t row, unsigned column,
                     uint64_t ret[static RECORD_AXES], struct diag *d);
    int (*cell_read)(struct read_context *rc, const void *file, uint64_t row, unsigned column,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d);
    /* As of struct record_format. */
    bool (*class_name)(const void *file, int64_t number, struct text *t);
    void (*note)(const void *file, struct text *t);
    void (*describe)(const void *file, const char *indent, struct text *t);
};

struct files_file {
    struct record_file base;
    const struct files_ops *ops;
    struct files_source *source;

    /* For tables and manifests: */
    size_t table;         /* the member that is the table, */
    char *name;           /* and its path below SOURCE; owned */
    struct row_walk walk; /* while the index is made, */
    uint64_t *number;     /* and the numbers of a row of it */

    /* Once it is prepared: */
    struct column_table exts;     /* of members: extensions in lower case, or names with them */
    struct member_column *shows;  /* [n_columns] of columns of members: those of exts */
    struct record_column *column; /* [n_columns] */
    unsigned n_members, n_labels; /* columns of members, and of labels */
    uint64_t missing;             /* names of files that are not there */
};

/* A new file of a layout; *ret is a pointer to the layout's struct, zeroed behind its base. 0 or
 * -ENOMEM. */
int files_file_new(const struct files_ops *ops, struct files_source *source,
                   const struct format_setup *setup, void *ret);
void files_file_release(struct files_file *file);

static inline const struct index *files_index(const struct files_file *file)
{
    return &file->base.prepared.index;
}

/* Report a dataset of a file, which is dropped, also on error. 0 or -ENOMEM. */
int files_add_dataset(struct files_file *file, const char *name, const struct format_setup *setup,
                      struct finds *finds);

/* What a column of members shows. */
static inline const struct learned_column *files_ext_of(const struct files_file *file,
                                                        unsigned column)
{
    return &file->exts.column[file->shows[column].field];
}

/* Make the columns of the extensions, whose MEMBER_ROWS are known, with room for `more` of other
 * columns. 0 or -ENOMEM. */
int files_make_columns(struct files_file *file, unsigned more);

/* Add `label` as number, or as an array of least to most, and, of one, as text. in_tar: 0, or
 * RECORD_NOT_TAR. */
void files_add_labels(struct files_file *file, uint64_t least, uint64_t most, unsigned in_tar);

/* Parts of describe(): what is ignored, and the names of classes. */
void files_describe_source(const struct files_source *source, const char *indent, struct text *t);
void files_describe_classes(const char *const *name, uint32_t n, const char *indent,
                            struct text *t);

/* ---- files that a table names ---- */

/* The member is the table. 0 or -ENOMEM. */
int files_table_open(struct files_file *file, size_t member);

/* begin() of struct prepared_ops; rows of the index have at most so many numbers. 0 or -ENOMEM. */
int files_table_begin(struct files_file *file, enum table_format format, size_t numbers);

/* step() of struct prepared_ops: add_row() for each row; what names the row in messages. */
int files_table_step(struct files_file *file,
                     int (*add_row)(void *file, const struct row_bytes *row, const char *what,
                                    struct diag *d),
                     struct diag *d);

/* ---- the layouts ---- */

extern const struct format format_files;

/* Report the dataset, or those, of a collection. 0 or -ENOMEM. */
int files_open_samples(struct files_source *source, const char *name,
                       const struct format_setup *setup, struct finds *finds);
int files_open_metadata(struct files_source *source, const char *name,
                        const struct format_setup *setup, struct finds *finds);
int files_open_manifests(struct files_source *source, const char *name,
                         const struct format_setup *setup, struct finds *finds);

#endif
