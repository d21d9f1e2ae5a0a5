/* Files that have several arrays each: .npz and safetensors. */
#ifndef EPOCHFS_FORMAT_ARRAY_ARCHIVES_H
#define EPOCHFS_FORMAT_ARRAY_ARCHIVES_H

#include "format/array/set.h"

struct archive_kind {
    const struct format *format;
    const char *suffix; /* of names */
    /* Read the arrays of a file, and add them to ret, which is empty; takes over blob. ctx: the
     * caller's. 0, or -errno with the reason in d. */
    int (*read)(struct blob *blob, const struct format_setup *setup, void *ctx, struct arrays *ret,
                struct diag *d);
};

/* open_folder() of struct format. The files of a set (format/core/siblings.h) that have the same
 * arrays are one: each array goes on from file to file. */
int archives_open_folder(const struct archive_kind *kind, struct source_file *files, size_t n,
                         const struct format_setup *setup, void *ctx, struct finds *finds);

#endif
