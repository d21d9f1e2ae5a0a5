/* The texts that describe a mount to people and programs. All texts are malloc'd; NULL: no memory.
 */
#ifndef EPOCHFS_FS_TREE_PAGES_H
#define EPOCHFS_FS_TREE_PAGES_H

#include "fs/tree/catalog.h"

/* README.txt; mountpoint: its absolute path. */
char *page_readme(const struct catalog *catalog, const char *source, const char *mountpoint);

/* dataset.json, or ERROR.txt where there is no dataset. The same on every machine. */
char *page_item(const struct catalog_item *item);

/* The members of the dataset's JSON object, without braces; each line begins with indent. */
struct text;
void page_dataset_members(const struct dataset *ds, const char *indent, struct text *t);

/* Lines as a JSON list of texts. */
void page_lines(const char *lines, struct text *t);

/* Does a short description name the field? It omits the numbering, and what is derived from
 * other fields. */
bool page_shows(const struct field *f);

/* "uint8", "float32", "bytes6": as numpy names it. */
void page_dtype(const struct field *f, struct text *t);

/* "28 x 28", "scalar", "254 dimensions". */
void page_shape(const struct field *f, struct text *t);

#endif
