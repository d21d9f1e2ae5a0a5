/* Catalogs of datasets in memory, trees of them, and nodes by their paths. Failures end the test.
 */
#ifndef EPOCHFS_TESTS_SUPPORT_TREE_MAKE_H
#define EPOCHFS_TESTS_SUPPORT_TREE_MAKE_H

#include "fs/tree/tree.h"

/* Add a dataset of that many samples of two bytes, with labels; or an error, "is broken". */
void catalog_add(struct catalog *catalog, const char *folder, const char *name, uint32_t samples);
void catalog_add_error(struct catalog *catalog, const char *folder, const char *name);

/* The pages are "read me", "{}" of a dataset, and the text of an error. NULL options: none. */
struct tree *tree_make(const struct catalog *catalog, const struct tree_options *options);

/* The node at a path, for the owner: 0 or the error of the first lookup that fails. */
int tree_walk(struct tree *tree, const char *path, struct node *ret);

/* A node that exists. */
struct node tree_node_at(struct tree *tree, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
