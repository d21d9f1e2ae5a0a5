/* How each joined blob begins, for the files that make one. */
#ifndef EPOCHFS_CACHE_SOURCE_JOINED_BLOB_H
#define EPOCHFS_CACHE_SOURCE_JOINED_BLOB_H

#include "cache/source/joined.h"

struct joined_blob {
    struct blob blob;
    struct members members; /* owned */
};

/* Fill it in from head, all but blob.ops, and take members over, also on error. 0 or -ENOMEM;
 * joined_blob_release() in either case. */
int joined_blob_init(struct joined_blob *ret, const struct joined_head *head,
                     struct members *members);
void joined_blob_release(struct joined_blob *joined);

/* identity() of struct blob_ops. */
int joined_blob_identity(const struct blob *blob, char **ret);

/* join() of local sources whose files are read in place. */
int joined_local(const struct source *source, const struct joined_head *head,
                 struct members *members, struct blob **ret, struct diag *d);

/* join() of sources with a stage: the blob is one of the stage. */
int joined_staged(const struct source *source, const struct joined_head *head,
                  struct members *members, struct blob **ret, struct diag *d);

#endif
