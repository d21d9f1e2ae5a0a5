/* The mixes of -o mix=: datasets made of others of the catalog. */
#ifndef EPOCHFS_FS_TREE_MIXES_H
#define EPOCHFS_FS_TREE_MIXES_H

#include "fs/plan/mix_order.h"
#include "fs/plan/mix_text.h"
#include "fs/tree/catalog.h"

struct mixture {
    const struct mix_spec *spec;
    struct catalog_tools *tools; /* of the catalog */
    struct dataset **ds;         /* [spec->n_sources] */
    const char **shown;          /* [spec->n_sources] */
    size_t *item;    /* [spec->n_sources] their numbers in the catalog, set when it is made */
    struct mix *mix; /* these three are set when its dataset is ready */
    struct mix_order *order;
    struct order_spec dataset_order;
    struct lock lock;
    struct mix_lengths *lengths; /* guarded by lock; owned */
    const char *left_out;        /* fields that not all sources have; of the dataset */
};

/* Add the mixes of the options, which must outlive the catalog, as items without a folder. The
 * items of the catalog have their final names. A mix that cannot be made of its sources becomes an
 * item with the reason. 0; -EINVAL with the reason in d: what an option says cannot be; -ENOMEM. */
int mixes_add(struct catalog *catalog, const struct options *options, struct diag *d);

/* Call it once the items have their final places. */
void mixes_number_items(struct catalog *catalog);

void mixture_free(struct mixture *mixture); /* takes NULL */

/* What a rank reads in the first epoch of a mix that is ready, about: the places of all lists,
 * their bytes, and how many of these places it reads, as if all had as many bytes. The epoch shows
 * so many positions; part: of them, those that the rank reads, 0 to 1. */
void mixture_epoch(const struct mixture *mixture, uint64_t positions, double part,
                   uint64_t *ret_places, double *ret_bytes, double *ret_shown);

/* Refuse plan parameters that mean nothing for a mix. 0, or -EINVAL with the reason in d. */
int mixture_check_plan(const struct mixture *mixture, const struct plan *plan, struct diag *d);

#endif
