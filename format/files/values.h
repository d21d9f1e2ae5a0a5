/* The pass over a collection: extensions of members become columns, and members that are values
 * (format/records/member_values.h) are read. Nothing else is opened. One thread. */
#ifndef EPOCHFS_FORMAT_FILES_VALUES_H
#define EPOCHFS_FORMAT_FILES_VALUES_H

#include "format/files/file.h"

struct values_pass;

/* Add columns of the index for values of `file` from number FILES_FIXED on. 0 or -ENOMEM. */
int values_pass_new(struct files_file *file, struct values_pass **ret);
void values_pass_free(struct values_pass *pass); /* takes NULL */

/* Learn the extensions of a sample's members and read its values: *ret, valid until the next call,
 * is the row of the index but for FILES_FIRST. ahead: the walk behind the sample. 0; or -errno with
 * the reason in d: the next call is for the same sample. A value that cannot be read is no error:
 * the row has it in FILES_FAULT. */
int values_pass_sample(struct values_pass *pass, const struct sample_files *sample,
                       const struct sample_walk *ahead, uint64_t **ret, struct diag *d);

/* Has it read something since it was asked last? */
bool values_pass_has_read(struct values_pass *pass);

/* At the end: what a user has to know, as lines. */
void values_pass_notes(const struct values_pass *pass, struct text *t);

/* Are the values of a kept index inside their members? It is hostile. */
bool values_are_good(const struct files_file *file, const struct index *index);

#endif
