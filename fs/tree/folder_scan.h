/* What the formats make of the files of a source, folder by folder. */
#ifndef EPOCHFS_FS_TREE_FOLDER_SCAN_H
#define EPOCHFS_FS_TREE_FOLDER_SCAN_H

#include "fs/tree/catalog.h"

/* Bytes of a file that is fetched whole, because there are few files. */
#define FOLDER_SCAN_WHOLE 65536

/* Add an item to catalog for each dataset of the listed files, and for each file that cannot be
 * used. list is sorted by folder; catalog->tools is set. 0 or -errno. Blocks for as long as packed
 * files are unpacked. */
int folder_scan_all(const struct source *source, const struct source_list *list,
                    struct catalog *catalog);

/* The same for the files of a group, which are one dataset. */
int folder_scan_group(const struct source *source, const struct source_list *list,
                      const struct named_group *group, struct catalog *catalog);

/* Add an item, a dataset, which it takes over, or an error: the other is NULL. root: the folder
 * that it is of, which may be shown elsewhere; NULL: the item is not. 0 or -ENOMEM. */
int folder_scan_add(struct catalog *catalog, const char *root, const char *folder, const char *name,
                    struct dataset *ds, const char *error);

/* Does a format take the file? */
bool folder_scan_takes(const struct probed_file *file);

/* May the one file of a remote that SOURCE is have side files? Not if it cannot be read, or is of a
 * format that has none. Blocks until its head is present. */
bool folder_scan_wants_sides(const struct source *source);

#endif
