/* Files that have several arrays each: .npz and safetensors. */
#ifndef EPOCHFS_FORMAT_ARRAY_ARCHIVES_H
#define EPOCHFS_FORMAT_ARRAY_ARCHIVES_H

#include "format/array/set.h"

struct archive_format {
    const struct format *format;
    const char *suffix;     /* of names */
    const char *one, *many; /* what a file has: "an array", "arrays" */
    /* Read the arrays of a file, and add them to ret, which is empty; each becomes a user of held.
     * left: bytes of memory for arrays in Fortran's order, of all files of the folder. 0, or -errno
     * with the reason in d, and with ret in any state. */
    int (*read)(struct held_blob *held, const struct format_setup *setup, uint64_t *left,
                struct arrays *ret, struct diag *d);
};

/* open_folder() of struct format. The files of a set (format/core/siblings.h) that have the same
 * arrays are one: each array goes on from file to file. */
int archives_open_folder(const struct archive_format *format, struct source_file *files, size_t n,
                         const struct format_setup *setup, struct finds *finds);

#endif
