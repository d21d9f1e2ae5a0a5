/* A collection as one file of records: its samples, their keys, fields and labels. */
#ifndef EPOCHFS_FORMAT_FILES_FILE_H
#define EPOCHFS_FORMAT_FILES_FILE_H

#include "format/files/claim/names.h"
#include "format/files/keys.h"
#include "format/files/source.h"
#include "format/records/member_values.h"
#include "format/records/record_set.h"

/* Columns of the index that each collection has; those of values follow. */
enum {
    FILES_FIRST, /* the number of the first member */
    FILES_FAULT, /* of a sample whose values cannot be read: errno; else 0 */
    FILES_FIXED,
};

struct values_pass;

struct files_file {
    struct record_file base; /* the index: of each sample its key, its first member, values */
    struct files_source source;
    enum files_layout layout;
    enum files_kind kind;

    uint32_t n_classes;
    uint32_t *class_of;      /* [members->n_folders] for LAYOUT_CLASSES */
    const char **class_name; /* [n_classes] in members */
    uint64_t *class_n;       /* [n_classes] samples, once it is prepared */

    /* While the index is made: */
    struct sample_walk walk;
    struct sample_keys keys;
    struct values_pass *values;

    char *values_note; /* what a user has to know of values: lines */

    /* Once it is prepared: */
    struct column_table exts;     /* extensions of members, in lower case */
    struct member_column *shows;  /* [label] */
    struct record_column *column; /* [n_columns] */
    unsigned label; /* the number of the column of labels; the next one has them as text */
};

/* Open a collection; takes over blob and what c->impl owns, also on error. 0 or -ENOMEM. */
int files_open(struct collection *c, struct blob *blob, const struct members *members,
               const struct format_setup *setup, struct record_file **ret);

extern const struct format format_files;

/* The members of a sample. */
void files_sample(const struct files_file *file, uint64_t row, struct sample_files *ret);
void files_sample_in(const struct files_file *file, const struct index *index, uint64_t row,
                     struct sample_files *ret);

/* The extension of a member of that sample: see name_ext(). */
size_t files_ext(const struct files_file *file, const struct sample_files *sample, size_t member,
                 char ret[static EXT_MOST + 1]);

/* The class of a sample. */
uint32_t files_class(const struct files_file *file, uint64_t row);

#endif
