/* Parts of one dataset, such as train and val of a folder, are datasets of their own here. What
 * differs between their fields would be an error where they are one, so it is said. */
#ifndef EPOCHFS_FS_TREE_SPLITS_H
#define EPOCHFS_FS_TREE_SPLITS_H

#include "fs/tree/catalog.h"

struct text;

/* Add a line for each other part of item's dataset that is ready, is in catalog before `end`, and
 * whose fields differ: in their types, their number of axes, or because one has not the other's.
 * Pictures and other bytes do not count: their names are extensions. Add a line if a number is
 * another class there. item is ready. */
void splits_note(const struct catalog *catalog, const struct catalog_item *item,
                 const struct catalog_item *end, struct text *t);

#endif
