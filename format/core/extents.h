/* Extents: where in the sources stands what a sample is made of. For those who fetch bytes before
 * they are read, and who ask when they will be. */
#ifndef EPOCHFS_FORMAT_CORE_EXTENTS_H
#define EPOCHFS_FORMAT_CORE_EXTENTS_H

#include "format/core/dataset.h"

#define EXTENTS_MOST 64

struct extent {
    const struct blob *blob;
    uint64_t off, len; /* bytes; inside the blob, len > 0 */
};

/* The extents of a sample, or of only one of its fields (NULL: all). Returns how many, EXTENTS_MOST
 * at most. The dataset is ready. It is a hint: a reader may need a little more, such as a header at
 * the start of a file, and where it cannot be told without reading the source there are fewer, or
 * none. Never reads a source. Any thread. */
unsigned dataset_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                         struct extent ret[static EXTENTS_MOST]);

#endif
