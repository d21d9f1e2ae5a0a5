/* The order of a mix: the kind of order that its dataset has, see fs/plan/epoch_order.h. Its places
 * are the samples of the mix: those of the first source, then those of the second, and so on.
 *
 * An epoch is the next `length` positions of the mix. Element e of a source is place e mod n of its
 * list of n places, in pass e div n; with a seed each pass is shuffled in an order of its own. */
#ifndef EPOCHFS_FS_PLAN_MIX_ORDER_H
#define EPOCHFS_FS_PLAN_MIX_ORDER_H

#include "fs/plan/mix.h"
#include "fs/plan/schedule.h"

/* The samples of a source, and those of them that the mix shows. */
struct mix_list {
    uint64_t first;           /* of its samples, the number of the first in the mix */
    uint64_t samples;         /* of its dataset */
    struct schedule schedule; /* of the words of the source, with batch=1 and without a seed */
    /* Set by mix_order_set(): */
    struct epoch_order order;
    bool is_whole; /* the list is all samples as they are stored */
};

struct mix_order {
    const struct mix *mix;
    uint64_t length;        /* of an epoch */
    unsigned n;             /* sources */
    struct mix_list list[]; /* [n] each with places */
};

extern const struct order_ops order_mix;

/* Complete it, and write the order for struct plan_data. o must outlive ret. */
void mix_order_set(struct mix_order *o, struct order_spec *ret);

#endif
