/* The text of a list, as users write it: a key or #number a line. */
#ifndef EPOCHFS_FS_PLAN_LIST_TEXT_H
#define EPOCHFS_FS_PLAN_LIST_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "fs/plan/list.h"

/* Where its samples are looked for. */
struct list_samples {
    uint64_t samples;
    /* The sample of that key, in constant time; false: there is none. */
    bool (*find)(const void *ctx, const char *key, size_t len, uint64_t *ret);
    const void *ctx;
};

/* Make the list: one entry for each line that is not empty, in their order. 0; -EINVAL with the
 * reason in d, which begins with name: no line exists, or some have no sample, of which the first
 * three and the number of others are named; -ENOMEM. list_release() frees it. back: samples are
 * looked for in it; making the way back takes O(n log n). */
int list_parse(const char *name, const char *text, size_t len, const struct list_samples *samples,
               bool back, struct plan_list *ret, struct diag *d);

/* Make the list of n samples, 0 < n < PLAN_LIST_MOST; owns them on success. 0 or -ENOMEM. */
int list_make(uint32_t *sample, uint64_t n, bool back, struct plan_list *ret);

/* The memory of its arrays. */
uint64_t list_bytes(const struct plan_list *list);

void list_release(struct plan_list *list); /* takes {0} */

#endif
