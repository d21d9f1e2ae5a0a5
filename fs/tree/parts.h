/* What the files of fs/tree/ share; no other file includes this. */
#ifndef EPOCHFS_FS_TREE_PARTS_H
#define EPOCHFS_FS_TREE_PARTS_H

#include "base/lock.h"
#include "fs/tree/span.h"
#include "fs/tree/tree.h"

struct fixed {
    enum node_type type;
    char *name; /* owned */
    uint32_t parent;
    uint32_t first_child, n_children; /* children are neighbours, sorted by name */
    const struct catalog_item *item;
    const struct folder *folder;
    uint64_t number;
    char *text; /* NODE_PAGE; owned */
    size_t text_len;
    bool is_late;    /* NODE_PREVIEW: whether it is there is known once the dataset is ready */
    bool has_access; /* a folder of the source, with allow_other: */
    struct access access;
};

/* The plans of one dataset, in the order in which they were opened. */
struct item_plans {
    struct plan_entry **entry;
    size_t n;
};

/* What a user other than the owner has opened. */
struct user_plans {
    uid_t user;
    size_t spans, epochs;
};

/* What all users but the owner have: of their parts, and more than those. */
struct shared_plans {
    size_t parts, more;
};

struct tree {
    /* Constant once made: */
    const struct catalog *catalog;
    struct fixed *fixed;
    size_t n_fixed;
    struct tree_options options;
    char *(*page)(const struct catalog_item *item);

    /* Set by tree_open_item(), constant once the item is open: */
    uint64_t *sample_base; /* [catalog->n] base of the span of samples */
    _Atomic int *opened;   /* [catalog->n] 0: not yet, 1: opened, -errno: it cannot be */
    size_t *page_of;       /* [catalog->n] number of its page in fixed; constant */

    struct lock lock;
    /* Guarded by lock: */
    struct spans spans;
    struct item_plans *plans; /* [catalog->n] */
    size_t n_plans;           /* of all datasets */
    size_t n_epochs;          /* in all plans' lists */
    struct user_plans *user;  /* [n_users] */
    size_t n_users;
    struct shared_plans spans_shared, epochs_shared;
};

/* Open the plan, or find it opened. *ret_new: it was not known before. 0; -EINVAL with the reason
 * in d: its words do not hold for this dataset; -ENFILE, -ENOMEM. user: see tree_lookup(). */
int tree_open_plan(struct tree *tree, const struct catalog_item *item, const struct plan *plan,
                   uid_t user, struct plan_entry **ret, bool *ret_new, struct diag *d);

/* Open an epoch: give it a span and remember it for listings. *ret_new: it was not listed before.
 */
int tree_open_epoch(struct tree *tree, struct plan_entry *entry, uint64_t epoch, uid_t user,
                    struct span *ret_span, bool *ret_new, struct diag *d);

#endif
