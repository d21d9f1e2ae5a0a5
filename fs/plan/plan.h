/* A plan: which samples are in which batch, as the user writes it in a path or an option.
 *
 *     batch=<n|all>[,part=KofN][,rank=KofN][,seed=S][,shuffle=full|window:M][,tail=keep|drop|wrap]
 *
 * The canonical name has the parameters in that order, and leaves out defaults. */
#ifndef EPOCHFS_FS_PLAN_PLAN_H
#define EPOCHFS_FS_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "fs/plan/order.h"

enum plan_tail { TAIL_KEEP, TAIL_DROP, TAIL_WRAP };

struct plan {
    uint64_t batch;       /* samples of a batch; 0: all */
    uint64_t part, parts; /* part < parts */
    uint64_t rank, ranks; /* rank < ranks */
    bool seeded;
    uint64_t seed;
    uint64_t window; /* 0: shuffle=full */
    enum plan_tail tail;
};

#define PLAN_NAME_SIZE  256 /* enough for every canonical name and its NUL */
#define PLAN_NUMBER_MAX ORDER_MAX

/* Parse a name with its parameters in any order. separator: the character between them, ',' in a
 * path, '+' in a mount option. 0, or -EINVAL with the reason in d and *ret undefined. */
int plan_parse(const char *name, size_t len, char separator, struct plan *ret, struct diag *d);

/* Write the canonical name, NUL-terminated. */
void plan_name(const struct plan *plan, char ret[static PLAN_NAME_SIZE]);

/* The canonical name of the plan that a name which does not parse probably means: it may have
 * misspelt parameters, or other separators. false: no such plan. */
bool plan_guess(const char *name, char ret[static PLAN_NAME_SIZE]);

/* Is word the name of a parameter? */
bool plan_has_parameter(const char *word);

/* A plan applied to a dataset. The list is the plan's part of the dataset, in stored order or in
 * the order of an epoch; the rank's elements are cut into batches. */
struct schedule {
    const struct plan *plan;
    uint64_t start;    /* first sample of the part */
    uint64_t length;   /* samples of the part = positions of the list */
    uint64_t elements; /* of the rank, over all batches */
    uint64_t batch;    /* samples of a batch but a short last one */
    uint64_t batches;
};

/* start, length: the part's share of the dataset, as its format cuts it; plan must outlive ret. */
void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t start, uint64_t length);

/* Share number part of n samples in equal parts; the first n mod parts shares have one more. */
void plan_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                uint64_t *ret_length);

/* How many samples batch number has; number < batches. */
uint64_t schedule_count(const struct schedule *s, uint64_t number);

/* Are the samples of batch number, which has some, consecutive in the stored order? *ret_first: the
 * first. */
bool schedule_in_order(const struct schedule *s, uint64_t number, uint64_t *ret_first);

/* The samples at places first .. first + count - 1 of batch number. order: of the epoch, over
 * length positions; NULL without a seed. */
void schedule_samples(const struct schedule *s, const struct order *order, uint64_t number,
                      uint64_t first, size_t count, uint64_t *ret);

#endif
