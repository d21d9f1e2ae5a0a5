/* Arrays in several files: the rows of the first file, then those of the second, and so on. */
#ifndef EPOCHFS_FORMAT_ARRAY_SHARDS_H
#define EPOCHFS_FORMAT_ARRAY_SHARDS_H

#include "format/array/array.h"
#include "format/core/siblings.h"

/* Join the arrays of each set of siblings, whose name number i is that of array i, into the first
 * one, if they agree in type and shape. A remark says which rule was taken. 0 or -ENOMEM. */
int arrays_join_sets(struct arrays *arrays, const struct siblings *siblings);

/* Make a[0] the array of n arrays, one after another: number[i] is that of the file of a[i]. They
 * are parts from then on. 0; -EDOM: type or shape differ; or -ENOMEM. */
int array_join(struct array *const *a, const uint64_t *number, size_t n);

#endif
