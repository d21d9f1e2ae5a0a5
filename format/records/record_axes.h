/* The axes of arrays that are one array in a batch. Behind the first axis they are the same in the
 * whole selection; or, with pads_axes of struct record_content, they may differ as well: then
 * arrays are padded along each axis, or lie one after another as flat elements. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_AXES_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_AXES_H

#include "format/records/record_items.h"

/* Find the axes of a selection: sets items->axis, ->tail; where they differ, ->differs and ->most.
 * An array without rows fits next to any other. 0, -EINTR, -ENOMEM; or what dims() of the content
 * has returned. */
int record_axes_find(struct record_items *items);

/* Set the axes behind the first from those of one array. */
void record_axes_set(struct record_items *items, const uint64_t *dim);

/* Where they differ: the elements of an array padded to items->most. They fit where the form of the
 * whole file does. */
uint64_t record_axes_padded(const struct record_items *items);

/* Where they differ: write bytes [off, off + len) of a sample's array, padded with zeros to
 * items->most. As record_item_fn. */
int record_axes_read(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d);

#endif
