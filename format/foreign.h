/* Kinds of files that no format reads, recognised so that errors name them: a user that mounts
 * Parquet reads "Parquet" instead of its first bytes. A format that gets a reader loses its line in
 * the table. */
#ifndef EPOCHFS_FORMAT_FOREIGN_H
#define EPOCHFS_FORMAT_FOREIGN_H

#include "format/core/format.h"

/* The kind of the file, in words; NULL: unknown. Judges by the head of the file, and by its name
 * where the head says little; it never sees the file's end. */
const char *foreign_kind(const struct probed_file *file);

/* Is the file certainly of such a kind, though a format claims it? */
bool foreign_is_mistaken(const struct probed_file *file);

/* Add what the formats of formats[] read: "IDX, libsvm text and Kaldi tables". */
void foreign_add_readable(struct text *t);

#endif
