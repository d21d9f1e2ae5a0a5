/* What the user has promised of the reads (-o kaldi=o: no utterance twice in an epoch; cs: in the
 * order of their keys), and which reads break it. Reads that the kernel serves from its page cache
 * are not seen. Any thread. */
#ifndef EPOCHFS_FS_SERVE_PROMISES_H
#define EPOCHFS_FS_SERVE_PROMISES_H

#include "fs/status/status.h"
#include "fs/tree/view.h"

struct promises;

/* 0 or -ENOMEM. *ret is NULL if nothing was promised. */
int promises_new(bool once, bool sorted, struct promises **ret);
void promises_free(struct promises *promises); /* takes NULL */

/* Call when the start of the file of a sample or a batch is read: counts in status what breaks a
 * promise. promises may be NULL. */
void promises_read(struct promises *promises, struct open_files *files, const struct node *node,
                   struct status *status);

#endif
