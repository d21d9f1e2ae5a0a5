/* Labels as WebDataset has them. */
#ifndef EPOCHFS_FORMAT_ENCODE_CLS_H
#define EPOCHFS_FORMAT_ENCODE_CLS_H

#include "format/core/layout.h"

/* Add a scalar integer field as decimal text of fixed width, for WebDataset's .cls: one line per
 * item. */
int cls_add(struct layout *l, const struct field *f);

#endif
