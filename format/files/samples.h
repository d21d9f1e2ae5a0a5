/* A collection whose names say which files are one sample: those with one stem. */
#ifndef EPOCHFS_FORMAT_FILES_SAMPLES_H
#define EPOCHFS_FORMAT_FILES_SAMPLES_H

#include "format/files/file.h"
#include "format/files/keys.h"

/* Columns of the index that each collection has; those of values follow. */
enum {
    SAMPLES_FIRST, /* the number of the first member */
    SAMPLES_FAULT, /* of a sample whose values cannot be read: errno, or 0 */
    SAMPLES_FIXED,
};

struct values_pass;

struct samples_file {
    struct files_file base; /* exts: of members, in lower case */
    enum files_layout layout;
    enum files_media media;

    uint32_t n_classes;
    uint32_t *class_of;      /* [members->n_folders] for LAYOUT_CLASSES */
    const char **class_name; /* [n_classes] in members */
    uint64_t *class_n;       /* [n_classes] samples, once it is prepared */

    /* While the index is made: */
    struct sample_walk walk;
    struct sample_keys keys;
    struct values_pass *values;

    char *values_note; /* what a user has to know of values: lines */
};

/* The members of a sample, in an index that may not be the file's yet. */
void samples_read(const struct samples_file *file, const struct index *index, uint64_t row,
                  struct sample_files *ret);

/* The extension of a member of that sample: see name_ext(). */
size_t samples_ext(const struct samples_file *file, const struct sample_files *sample,
                   size_t member, char ret[static EXT_MOST + 1]);

/* The member of a sample before member `end` that has that extension; false: none has. */
bool samples_find(const struct samples_file *file, const struct sample_files *sample, size_t end,
                  const char *ext, size_t len, size_t *ret);

/* ---- the pass: extensions of members become columns, and members that are values
 * (format/records/member_values.h) are read; nothing else is opened. One thread ---- */

/* Add columns of the index for values of `file` from number SAMPLES_FIXED on. 0 or -ENOMEM. */
int values_pass_new(struct samples_file *file, struct values_pass **ret);
void values_pass_free(struct values_pass *pass); /* takes NULL */

/* Learn the extensions of a sample's members and read its values: *ret, valid until the next call,
 * is the row of the index except SAMPLES_FIRST. ahead: the walk behind the sample. 0; or -errno
 * with the reason in d: the next call is for the same sample. A value that cannot be read is no
 * error: the row has it in SAMPLES_FAULT. */
int values_pass_sample(struct values_pass *pass, const struct sample_files *sample,
                       const struct sample_walk *ahead, uint64_t **ret, struct diag *d);

/* Has it read something since it was asked last? */
bool values_pass_has_read(struct values_pass *pass);

/* At the end: what a user has to know, as lines. */
void values_pass_notes(const struct values_pass *pass, struct text *t);

/* Are the values of a kept index inside their members? It is hostile. */
bool values_are_good(const struct samples_file *file, const struct index *index);

#endif
