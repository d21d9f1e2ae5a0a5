/* The lengths of the samples of a mix: those of its sources. */
#ifndef EPOCHFS_FS_TREE_MIX_LENGTHS_H
#define EPOCHFS_FS_TREE_MIX_LENGTHS_H

#include "base/diag.h"
#include "fs/plan/labels.h"

struct list_label;
struct mix_lengths;
struct mixture;
struct plan_data;

/* Set data->lengths, as list_labels_lengths() does for a dataset, of a mix that is ready.
 * *ret_labels: [sources] those of the sources. They live as long as the mix. */
int mix_lengths_get(struct mixture *m, const char *word, struct plan_data *data,
                    const struct list_label *const **ret_labels, struct diag *d);

void mix_lengths_free(struct mix_lengths *first); /* all of a mix; takes NULL */

#endif
