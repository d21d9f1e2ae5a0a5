/* The classes that a pass has found: values, numbered in the order in which they first came. */
#ifndef EPOCHFS_FORMAT_LABELS_CLASS_TABLE_H
#define EPOCHFS_FORMAT_LABELS_CLASS_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define CLASS_TABLE_SMALL 65536 /* values from 0 that need no search */

struct class_table {
    uint32_t n;
    int64_t *value;                    /* [n] */
    uint64_t *count;                   /* [n] */
    uint32_t small[CLASS_TABLE_SMALL]; /* number + 1 */
    uint32_t *slot;                    /* [slots] number + 1 of other values; 0: free */
    uint64_t slots;                    /* a power of two, or 0 */
    uint64_t others;
};

/* Count a value. 0; -E2BIG: there are more than LABEL_CLASSES_MAX; or -ENOMEM. Takes a zeroed
 * table. */
int class_table_add(struct class_table *t, int64_t value, uint32_t *ret);

/* rank[i]: the place of class i in ascending order of values; sorted[r]: the way back. Both have n
 * elements. 0 or -ENOMEM. */
int class_table_sort(const struct class_table *t, uint32_t *sorted, uint32_t *rank);

void class_table_release(struct class_table *t);

#endif
