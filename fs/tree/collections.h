/* Datasets of very many files, which formats take by their names before any file is opened. */
#ifndef EPOCHFS_FS_TREE_COLLECTIONS_H
#define EPOCHFS_FS_TREE_COLLECTIONS_H

#include "fs/tree/catalog.h"

/* What is done with each collection. */
struct collections_user {
    /* Takes blob over; NULL: it cannot be made, and error says why. 0 or -ENOMEM. */
    int (*add)(struct collections_user *user, const struct format *format, struct collection *c,
               struct blob *blob, const char *error);
    /* Takes what else was claimed: groups, moved folders, notes. 0 or -ENOMEM. NULL: files of
     * groups are also in the rest. */
    int (*others)(struct collections_user *user, const struct source *source,
                  const struct known *listing, struct claims *claims);
    char **recipe; /* where what was found is put, as a recipe; NULL: nowhere */
    char **unmet;  /* where the first rule by which pictures are in none is put; NULL: nowhere */
};

/* List a source and hand over the collections that formats find in it, with what the user says of
 * formats; *ret_rest: the files that are in none, sorted. 0; -EOPNOTSUPP: this source is not listed
 * that way, and all its files are the rest; or -errno with the reason in d. */
int collections_each(const struct source *source, const struct format_options *options,
                     struct collections_user *user, struct source_list *ret_rest, struct diag *d);

/* The same: each becomes a dataset of catalog, whose tools are set. */
int collections_open(const struct source *source, struct catalog *catalog,
                     struct source_list *ret_rest, struct diag *d);

#endif
