/* Which field of a dataset is its label: its numbers are the classes that plans, pages and the
 * one-hot field `label1h` are about. */
#ifndef EPOCHFS_FORMAT_LABELS_LABEL_CHOICE_H
#define EPOCHFS_FORMAT_LABELS_LABEL_CHOICE_H

#include "format/core/dataset.h"

struct label_choice {
    const char *field; /* what label= says (format_label_of()): a field of datasets, or what a
                        * source calls the field `label`; NULL: the field `label` of each dataset */
    uint64_t classes;  /* columns of label1h; 0: the largest label + 1 */
};

/* Let a dataset all of which is prepared follow the choice. A note says why it cannot: it keeps its
 * own label if it has no such field; if the field is no number, plans refuse it. 0 or -ENOMEM. May
 * read labels that are on this machine. */
int label_choice_apply(const struct label_choice *choice, struct dataset *ds);

#endif
