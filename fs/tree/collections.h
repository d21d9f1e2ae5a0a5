/* Datasets of very many files, which formats take by their names before any file is opened. */
#ifndef EPOCHFS_FS_TREE_COLLECTIONS_H
#define EPOCHFS_FS_TREE_COLLECTIONS_H

#include "fs/tree/catalog.h"

/* List a source and add the collections that formats find in it to catalog, whose tools are set;
 * *ret_rest: the files that are in none, sorted. 0; -EOPNOTSUPP: this source is not listed that
 * way, and all its files are the rest; or -errno with the reason in d. */
int collections_open(const struct source *source, struct catalog *catalog,
                     struct source_list *ret_rest, struct diag *d);

#endif
