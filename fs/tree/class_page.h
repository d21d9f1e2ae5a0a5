/* How many samples each class has, as pages show it. */
#ifndef EPOCHFS_FS_TREE_CLASS_PAGE_H
#define EPOCHFS_FS_TREE_CLASS_PAGE_H

#include "format/labels/class_counts.h"

#define CLASS_PAGE_MOST 1000 /* classes of which each is listed, at most */

/* Add the name of the class that has that number in the field `label`. false: it has none. */
bool class_page_name(const struct dataset *ds, int64_t value, struct text *ret);

/* Add the member class_counts of dataset.json; each line begins with indent and ends with a comma.
 */
void class_page_json(const struct dataset *ds, const struct class_counts *c, const char *indent,
                     struct text *t);

/* Add "10 of label, the least 5421 (5), the most 6742 (1)", or "10 of label, each 6000". */
void class_page_words(const struct dataset *ds, const struct class_counts *c, struct text *t);

#endif
