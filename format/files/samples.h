/* A collection whose names say which files are one sample: those with one stem. */
#ifndef EPOCHFS_FORMAT_FILES_SAMPLES_H
#define EPOCHFS_FORMAT_FILES_SAMPLES_H

#include "format/files/file.h"
#include "format/files/keys.h"

/* Columns of the index that each collection has; those of values follow. */
enum {
    SAMPLES_FAULT, /* of a sample whose values cannot be read: errno, or 0 */
    SAMPLES_FIXED,
};

struct values_pass;

/* Row i of a view is sample i of it: the index has its key, and values of its members. */
struct samples_file {
    struct files_file base; /* exts: of members, in lower case */
    const struct files_claim *claim;
    const struct files_view *view;

    uint32_t *class_of; /* [members->n_folders] for LAYOUT_CLASSES */
    uint64_t *class_n;  /* [n_classes] samples, once it is prepared */

    /* While the index is made: */
    uint64_t row;
    struct sample_keys keys;
    struct values_pass *values;

    char *values_note; /* what a user has to know of values: lines */

    /* Once files of boxes are read: */
    bool has_boxes;
    struct value_columns boxes;     /* a row for each sample of the view */
    char *boxes_about, *boxes_note; /* members of dataset.json; lines for people */
};

/* ---- columns behind those of members and labels: values of the claim, then boxes ---- */

unsigned cells_count(const struct samples_file *file);
void cells_add_columns(struct samples_file *file);
bool cells_has(const struct samples_file *file, uint64_t row, unsigned column);

/* cell_dims() and cell_read() of struct files_ops. */
int cells_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
               struct diag *d);
int cells_read(struct read_context *rc, const void *p, uint64_t row, unsigned column, uint64_t off,
               size_t len, uint8_t *dst, struct diag *d);

/* ---- files of boxes: read once for all views of a claim. One thread ---- */

/* Read some, until that time. 0, once file->has_boxes is set or before; or -errno with the reason
 * in d: call it again, or never. */
int boxes_step(struct samples_file *file, int64_t until, struct diag *d);

/* Keep what was read with the index; take it from there, *ret_used bytes, which are hostile: 0,
 * -EBADMSG or -ENOMEM. */
void boxes_write(const struct samples_file *file, struct text *ret);
int boxes_load(struct samples_file *file, const uint8_t *bytes, size_t len, size_t *ret_used);

/* The members of a sample. */
void samples_read(const struct samples_file *file, uint64_t row, struct sample_files *ret);

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
 * is the row of the index. 0; or -errno with the reason in d: the next call is for the same sample.
 * A value that cannot be read is no error: the row has it in SAMPLES_FAULT. */
int values_pass_sample(struct values_pass *pass, uint64_t row, const struct sample_files *sample,
                       uint64_t **ret, struct diag *d);

/* Has it read something since it was asked last? */
bool values_pass_has_read(struct values_pass *pass);

/* At the end: what a user has to know, as lines. */
void values_pass_notes(const struct values_pass *pass, struct text *t);

/* Are the values of a kept index inside their members? It is hostile. */
bool values_are_good(const struct samples_file *file, const struct index *index);

#endif
