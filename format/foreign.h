/* Kinds of files that no format reads, recognised so that errors name them: a user that mounts
 * Parquet reads "Parquet" instead of its first bytes. A format that gets a reader loses its line in
 * the table. */
#ifndef EPOCHFS_FORMAT_FOREIGN_H
#define EPOCHFS_FORMAT_FOREIGN_H

#include "format/core/format.h"

struct foreign {
    const char *name; /* "a JPEG picture" */
    const char *fix;  /* what the user can do, an imperative without its full stop */
    bool is_picture;  /* read in folders of files: where it is not, a rule of these says no */
};

/* The kind of the file; NULL: unknown. Judges by the head of the file, and by its name where the
 * head says little; it never sees the file's end. */
const struct foreign *foreign_find(const struct probed_file *file);

/* Is the file certainly of such a kind, though a format claims it? */
bool foreign_is_mistaken(const struct probed_file *file);

#endif
