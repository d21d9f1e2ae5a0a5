/* Why rows of an index cannot be read: lines "<row> <reason>" of the first such rows, which
 * kept_growing() keeps with the index. */
#ifndef EPOCHFS_FORMAT_INDEX_REASONS_H
#define EPOCHFS_FORMAT_INDEX_REASONS_H

#include "base/diag.h"
#include "base/text.h"

/* Rows rise. */
void reasons_add(struct text *reasons, uint64_t row, const char *why);

/* Set d to the reason of that row; false: it has none here. */
bool reasons_find(const struct text *reasons, uint64_t row, struct diag *d);

#endif
