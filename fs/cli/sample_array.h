/* The array of a field in one sample, in memory, and its elements as numbers. */
#ifndef EPOCHFS_FS_CLI_SAMPLE_ARRAY_H
#define EPOCHFS_FS_CLI_SAMPLE_ARRAY_H

#include "format/core/dataset.h"

struct sample_array {
    struct form form;
    uint8_t *bytes; /* owned */
    uint64_t n;     /* elements read: all, or the first ones */
};

void sample_array_release(struct sample_array *a);
#define AUTO_SAMPLE_ARRAY AUTO(sample_array_release) /* of an array that starts as {0} */

/* Read the array, or as many of its elements as fit in `most` bytes. Blocks until they are present.
 * 0 or -errno, with the reason in d. */
int sample_array_read(const struct dataset *ds, const struct field *f, uint64_t sample,
                      uint64_t most, struct sample_array *ret, struct diag *d);

/* Element i, below n; 0 of text. */
double sample_array_element(const struct sample_array *a, uint64_t i);

#endif
