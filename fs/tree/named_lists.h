/* The lists that -o list=NAME=FILE gives to a mount, for plans with only=NAME. A file is read when
 * the source is opened, and stays open; which samples its lines are is found out for each dataset
 * when a plan first needs it, and kept. */
#ifndef EPOCHFS_FS_TREE_NAMED_LISTS_H
#define EPOCHFS_FS_TREE_NAMED_LISTS_H

#include "base/lock.h"
#include "base/memory.h"
#include "format/core/dataset.h"
#include "fs/options/options.h"
#include "fs/plan/list.h"

struct named_list;
struct known_list;

struct named_lists {
    /* Constant: */
    size_t n;
    struct named_list *list; /* [n] */
    bool back;               /* samples are looked for in the lists */
    struct lock lock;
    /* Guarded by lock; lists are only added, at the start: */
    struct known_list *known;
};

/* Read the files. back: samples are looked for in the lists, as staging does. 0; -EINVAL and others
 * with the reason in d. named_lists_release() also after an error. */
int named_lists_init(struct named_lists *ret, const struct options *options, bool back,
                     struct diag *d);
void named_lists_release(struct named_lists *lists); /* no plan that uses one may be left */

/* The list of that name as samples of a dataset that is ready; valid as long as the lists. 0;
 * -EINVAL with the reason in d: there is no such list, or some of its lines are no samples of the
 * dataset, or its file has changed; -ENOMEM, or the -errno of a read. Any thread; blocks while a
 * long list is looked up. */
int named_lists_get(struct named_lists *lists, const struct dataset *ds, const char *name,
                    const struct plan_list **ret, struct diag *d);

#endif
