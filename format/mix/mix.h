/* A dataset made of other datasets: the samples of the first, then those of the second, and so on.
 *
 * It has the fields that all of them have by the same name and type; the first axis may differ. It
 * is ready when all sources are, which it prepares itself: so the thread that prepares datasets
 * must be the only one that prepares these. */
#ifndef EPOCHFS_FORMAT_MIX_MIX_H
#define EPOCHFS_FORMAT_MIX_MIX_H

#include "format/core/dataset.h"

/* What a mix is made of, and who uses it. */
struct mix_setup {
    const char *name;          /* for messages; outlives the dataset, and so do: */
    struct dataset *const *ds; /* [n] the sources, not mixes; one may come several times */
    const char *const *shown;  /* [n] their names */
    unsigned n;                /* at least 1 */
    struct memo *memo;

    /* The last step of preparing, with the sources ready and the fields known. It is called again
     * after an error that does not last (dataset_ops.prepare). 0 or -errno with the
     * reason in d. */
    int (*ready)(void *ctx, struct dataset *ds, struct diag *d);
    /* Members of dataset.json, and lines for people: as in struct dataset_ops. */
    void (*describe)(const void *ctx, const char *indent, struct text *t);
    void (*about)(const void *ctx, struct text *t);
    void *ctx;
};

/* 0 or -ENOMEM. */
int mix_dataset_new(const struct mix_setup *setup, struct dataset **ret);

bool mix_dataset_is(const struct dataset *ds);

/* The number of the source of a sample; *ret_own: the sample's number there. */
unsigned mix_dataset_find(const struct dataset *ds, uint64_t sample, uint64_t *ret_own);

/* The number of the first sample of a source; of source n: of all samples. */
uint64_t mix_dataset_first(const struct dataset *ds, unsigned source);

/* Fields that some sources have and others have not, separated by commas; "": none. */
const char *mix_dataset_left_out(const struct dataset *ds);

#endif
