/* Kinds of files that no reader takes, called by their names: who mounts Parquet reads that it is
 * Parquet, not its first bytes. A format that gets a reader loses its line in the table. */
#ifndef EPOCHFS_FORMAT_FOREIGN_H
#define EPOCHFS_FORMAT_FOREIGN_H

#include "format/core/format.h"

/* What kind of file that is, in words; NULL: none that is known. The last page of a file is not
 * seen: its head has to do, and its name where that says little. */
const char *foreign_kind(const struct probed_file *file);

/* Is it of such a kind for sure, though a reader claims it? */
bool foreign_is_mistaken(const struct probed_file *file);

/* "IDX, libsvm text and Kaldi tables": what the readers of formats[] take. */
void foreign_add_readable(struct text *t);

#endif
