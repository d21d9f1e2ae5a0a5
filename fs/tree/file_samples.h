/* The samples of one file of the tree: a selection made from its node. */
#ifndef EPOCHFS_FS_TREE_FILE_SAMPLES_H
#define EPOCHFS_FS_TREE_FILE_SAMPLES_H

#include "base/memo.h"
#include "format/core/selection.h"
#include "fs/tree/tree.h"

#define LIST_SAMPLES 65536 /* samples of a shuffled batch that is remembered as a list */

struct file_samples {
    struct selection sel; /* rc and reason: of the request that uses it now */
    char *file;           /* of sel; owned */
    struct node node;
    struct memo *lists;
    struct memo_thing *list;     /* uint64_t [sel.count], made when first needed; NULL: none */
    bool has_no_list;            /* there was no memory for it: do not try again in this request */
    struct schedule_batch batch; /* of a NODE_BATCH */
    bool has_order;
    struct epoch_order order; /* made when first needed */
};

/* lists: a memo for the samples of shuffled batches. mountpoint: absolute, for contents that name
 * their file. Both must outlive ret, which one thread uses at a time. 0 or -ENOMEM; release it in
 * either case. */
int file_samples_init(struct file_samples *ret, struct memo *lists, const char *mountpoint,
                      const struct node *node);
void file_samples_release(struct file_samples *v); /* takes one that is {0} */
#define AUTO_FILE_SAMPLES AUTO(file_samples_release)

#endif
