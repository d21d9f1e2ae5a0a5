/* Extents: the ranges of the sources that a sample is made of. For code that fetches bytes before
 * readers need them, and for code that asks when they will be needed. */
#ifndef EPOCHFS_FORMAT_CORE_EXTENTS_H
#define EPOCHFS_FORMAT_CORE_EXTENTS_H

#include "format/core/dataset.h"

#define EXTENTS_MOST 64

struct extent {
    const struct blob *blob;
    uint64_t off, len; /* bytes; inside the blob, len > 0 */
};

/* The extents of a sample, or of only one of its fields (NULL: all). Returns how many, EXTENTS_MOST
 * at most. The dataset must be ready. The result is a hint: a reader may need a little more, such
 * as a header at the start of a file; and there are fewer extents, or none, where finding them
 * would take reading a source. Never reads a source. Any thread. */
unsigned dataset_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                         struct extent ret[static EXTENTS_MOST]);

/* Is the file that shows this field of a sample as it is stored (`raw`) a copy of one range of a
 * blob, byte for byte? true: of *ret. The dataset must be ready. Never reads a source. Any thread.
 */
bool dataset_copy(const struct dataset *ds, uint64_t sample, const struct field *field,
                  struct extent *ret);

/* The same of the file that shows this field of all samples in their stored order, as lines. */
bool dataset_copy_of_all(const struct dataset *ds, const struct field *field, struct extent *ret);

#endif
