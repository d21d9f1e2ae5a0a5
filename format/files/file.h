/* A view of a claim as a file of records: row i of its index is a sample of the view, with the
 * sample's key, and values of its members. Which members a sample has, their sizes and places, its
 * class, and what tables say of it is known without the index. What a row shows is in file.c, how
 * the index is made in samples.c. */
#ifndef EPOCHFS_FORMAT_FILES_FILE_H
#define EPOCHFS_FORMAT_FILES_FILE_H

#include "format/files/claim/claim.h"
#include "format/files/keys.h"
#include "format/records/member_values.h"
#include "format/records/record_set.h"

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

void files_source_drop(struct files_source *source); /* one user less: the last one frees it */

struct claim_boxes;
void claim_boxes_free(struct claim_boxes *boxes); /* takes NULL */

/* ---- one file of records ---- */

/* Columns of the index that each collection has; those of values follow. */
enum {
    SAMPLES_FAULT, /* of a sample whose values cannot be read: errno, or 0 */
    SAMPLES_FIXED,
    SAMPLES_ROW = SAMPLES_FIXED, /* of a claim that drops samples: the row of the view */
};

struct values_pass;

/* Columns [0, n_members) show members; then come n_labels, the class as a number and as text; then
 * cells: values of the view, and boxes. */
struct files_file {
    struct record_file base;
    struct files_source *source;
    const struct files_claim *claim;
    const struct files_view *view;

    uint32_t *class_of; /* [members->n_folders] for LAYOUT_CLASSES */
    uint64_t *class_n;  /* [n_classes] samples, once it is prepared */

    /* While the index is made: */
    uint64_t row; /* of the view */
    struct sample_keys keys;
    struct values_pass *values;

    char *values_note; /* what a user has to know of values: lines */

    /* Once files of boxes are read: */
    bool has_boxes;
    struct value_columns boxes;     /* a row for each row of the view */
    char *boxes_about, *boxes_note; /* members of dataset.json; lines for people */

    /* Once it is prepared: */
    struct column_table exts;     /* of members: extensions in lower case, or names with them */
    struct member_column *shows;  /* [n_columns] of columns of members: those of exts */
    struct record_column *column; /* [n_columns] */
    unsigned n_members, n_labels; /* columns of members, and of labels */
};

extern const struct record_format files_records;
extern const struct format format_files;

static inline const struct index *files_index(const struct files_file *file)
{
    return &file->base.prepared.index;
}

/* What a column of members shows. */
static inline const struct learned_column *files_ext(const struct files_file *file, unsigned column)
{
    return &file->exts.column[file->shows[column].field];
}

/* ---- samples.c ---- */

/* Columns of the index before those of values. */
unsigned samples_fixed(const struct files_file *file);

/* The row of the view that a row of the index is. */
uint64_t samples_row(const struct files_file *file, uint64_t row);

/* The extension of a member of that sample: see name_ext(). */
size_t samples_ext(const struct files_file *file, const struct sample_files *sample, size_t member,
                   char ret[static EXT_MOST + 1]);

/* The member of a sample before member `end` that has that extension; false: none has. */
bool samples_find(const struct files_file *file, const struct sample_files *sample, size_t end,
                  const char *ext, size_t len, size_t *ret);

/* The class of a row. */
int64_t samples_label(const struct files_file *file, uint64_t row);

/* Why a row has no member in a column of members, though a table names one; NULL: none does. */
const char *samples_lost(const struct files_file *file, uint64_t row, unsigned column);

/* Report the datasets of a collection. 0 or -ENOMEM. */
int files_open_samples(struct files_source *source, const char *name,
                       const struct format_setup *setup, struct finds *finds);

/* ---- cells.c: columns behind those of members and labels. dims and read as in struct
 * record_format ---- */

unsigned cells_count(const struct files_file *file);
void cells_add_columns(struct files_file *file);
bool cells_has(const struct files_file *file, uint64_t row, unsigned column);
void cells_dims(const struct files_file *file, uint64_t row, unsigned column,
                uint64_t ret[static RECORD_AXES]);
int cells_read(struct read_context *rc, const struct files_file *file, uint64_t row,
               unsigned column, uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* ---- boxes.c: files of boxes, read once for all views of a claim. One thread ---- */

/* Read some, until that time. 0, once file->has_boxes is set or before; or -errno with the reason
 * in d: call it again, or never. */
int boxes_step(struct files_file *file, int64_t until, struct diag *d);

/* What was read is kept with the index. */
void boxes_keep(struct kept *k, struct files_file *file);

/* ---- values.c, the pass: extensions of members become columns, and members that are values
 * (format/records/member_values.h) are read; nothing else is opened. One thread ---- */

/* Add columns of the index for values of `file` from number samples_fixed() on. 0 or -ENOMEM. */
int values_pass_new(struct files_file *file, struct values_pass **ret);
void values_pass_free(struct values_pass *pass); /* takes NULL */

/* Learn the extensions of a sample's members and read its values: *ret, valid until the next call,
 * is the row of the index. row: of the view. 0; or -errno with the reason in d: the next call is
 * for the same sample. A value that cannot be read is no error: the row has it in SAMPLES_FAULT. */
int values_pass_sample(struct values_pass *pass, uint64_t row, const struct sample_files *sample,
                       uint64_t **ret, struct diag *d);

/* Has it read something since it was asked last? */
bool values_pass_has_read(struct values_pass *pass);

/* At the end: what a user has to know, as lines. */
void values_pass_notes(const struct values_pass *pass, struct text *t);

/* Are the values of a kept index inside their members? It is hostile. */
bool values_are_good(const struct files_file *file, const struct index *index);

#endif
