/* Datasets of arrays. */
#ifndef EPOCHFS_FORMAT_ARRAY_SET_H
#define EPOCHFS_FORMAT_ARRAY_SET_H

#include "format/array/pairs.h"
#include "format/core/format.h"

struct array_sets;

/* Where arrays come from. */
struct arrays_source {
    const struct format *format;
    const char *stem; /* of their file; NULL: they are files of a folder */
    bool alone; /* there is no other such file in the folder: names need not contain the stem */
    const char *where;             /* for messages: the file, or the folder */
    const struct array_sets *sets; /* says what datasets lack: format/array/shards.h */
};

/* Make the datasets of the arrays: groups by arrays_pair(). Arrays that are omitted are listed in
 * each of them. What cannot be used is reported to finds. 0 or -ENOMEM. */
int arrays_make_sets(struct arrays *arrays, const struct arrays_source *source,
                     const struct format_setup *setup, struct finds *finds);

/* Python lines that read such a dataset. */
void array_set_example(const struct dataset *ds, struct text *t);

#endif
