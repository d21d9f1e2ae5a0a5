/* How many samples each class has, for people: counted when asked, and not kept. */
#ifndef EPOCHFS_FORMAT_LABELS_CLASS_COUNTS_H
#define EPOCHFS_FORMAT_LABELS_CLASS_COUNTS_H

#include "format/core/dataset.h"
#include "format/core/numbered.h"

struct class_counts {
    uint64_t n;            /* classes */
    int64_t *value;        /* [n] ascending; owned */
    uint64_t *count;       /* [n] samples, at least 1; owned */
    uint64_t least, most;  /* classes with the fewest and the most samples; the first of several */
    struct numbered texts; /* of a field of texts: value i is text i in their order */
    bool has_texts;
};

/* The label, if each sample has a number, or a text that the user has chosen, of that name (struct
 * dataset). NULL: not. */
const struct field *class_counts_field(const struct dataset *ds);

/* Are these numbers known without a source: from an index, or from names of folders? */
bool class_counts_are_known(const struct dataset *ds, const struct field *f);

/* Known, or to be had in a moment: the labels are on this machine and small; or the user has chosen
 * the label, and all files are. */
bool class_counts_are_cheap(const struct dataset *ds, const struct field *f);

/* Count. 0; or -errno with the reason in d, as an index of the same classes has it. Blocks. */
int class_counts_init(struct class_counts *ret, const struct dataset *ds, const struct field *f,
                      struct diag *d);
void class_counts_release(struct class_counts *c); /* takes a zeroed one */
#define AUTO_CLASS_COUNTS AUTO(class_counts_release)

#endif
