/* The list of only=NAME: samples of the dataset, in the order in which a plan takes them. Read-only
 * arrays that outlive the schedules that use them. */
#ifndef EPOCHFS_FS_PLAN_LIST_H
#define EPOCHFS_FS_PLAN_LIST_H

#include <stdint.h>

/* Entries have 4 bytes, so lists and the samples that they name are below this. */
#define PLAN_LIST_MOST (UINT64_C(1) << 32)

/* A sample may be in it several times. */
struct plan_list {
    uint64_t n;             /* > 0, < PLAN_LIST_MOST */
    const uint32_t *sample; /* [n] in the list's order */
    const uint32_t *sorted; /* [n] places of the list by their sample, then by place; NULL: the list
                               is in ascending order already */
    const uint32_t *start; /* [buckets + 1] of each bucket, its first entry in the order of samples;
                              NULL: there are none */
    uint32_t buckets;
    unsigned shift; /* a sample is in bucket sample >> shift */
};

#define PLAN_LIST_BUCKET 4 /* entries of a bucket, on average */

/* The first entry, in the order of samples, whose sample is not below; n: there is none. */
uint64_t plan_list_from(const struct plan_list *list, uint64_t sample);

/* The entries of samples first .. last, in the order of samples: *ret_begin up to the end that is
 * returned. */
uint64_t plan_list_range(const struct plan_list *list, uint64_t first, uint64_t last,
                         uint64_t *ret_begin);

#endif
