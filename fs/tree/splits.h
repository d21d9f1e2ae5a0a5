/* Parts of one dataset, such as train and val of a folder, are datasets of their own here. What
 * differs between their fields would be an error where they are one, so it is said. */
#ifndef EPOCHFS_FS_TREE_SPLITS_H
#define EPOCHFS_FS_TREE_SPLITS_H

#include "fs/tree/catalog.h"

/* Add a note for each other part of item's dataset that is ready, is in catalog before `end`, and
 * whose fields differ: in their types, their number of axes, or because one has not the other's.
 * Pictures and other bytes do not count: their names are extensions. Add a note if a number is
 * another class there. For that, datasets whose names differ by a number only are also parts, such
 * as folds. item is ready. both: the other part also gets the note; false: it has been shown
 * already. By the thread that prepares datasets. */
void splits_note(const struct catalog *catalog, const struct catalog_item *item,
                 const struct catalog_item *end, bool both);

/* Add the notes of all datasets that are ready, before any is shown. */
void splits_note_all(const struct catalog *catalog);

#endif
