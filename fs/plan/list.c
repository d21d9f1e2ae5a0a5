/* The list of only=NAME, looked up by samples: bucket, then entry.
 *
 * Both steps lead to memory far from the last one. So each is made for all samples that are looked
 * for before the next one: as none depends on another, their waits for memory overlap. */
#include "fs/plan/list.h"

#include <assert.h>
#include <stdbool.h>

#include "base/checked.h"
#include "base/search.h"

#define LINE       64 /* bytes that come from memory together */
#define LINES_MOST 4  /* of a bucket that are read ahead */

/* The entries of the bucket of a sample; none of one beyond all buckets. */
static struct plan_entries plan_list_bucket_of(const struct plan_list *list, uint64_t sample)
{
    uint64_t bucket = sample >> list->shift;

    if (bucket >= list->buckets)
        return (struct plan_entries){list->n, list->n};
    return (struct plan_entries){list->start[bucket], list->start[bucket + 1]};
}

/* Does the entry come before those of the wanted sample? target: the sample's last bits above those
 * of a place; or, where entries are places, the sample. */
static inline bool plan_list_is_before(const struct plan_list *list, uint64_t entry,
                                       uint64_t target)
{
    return list->entry ? plan_list_entry(list, entry) < target : list->sample[entry] < target;
}

/* The first entry of a bucket whose sample is at least `sample`, or, if `above`, above it; in.end:
 * none is. Without a branch for the outcome, as any is as likely. */
static uint64_t first_entry(const struct plan_list *list, struct plan_entries in, uint64_t sample,
                            bool above)
{
    uint64_t last_bits = sample & ((UINT64_C(1) << list->shift) - 1);
    uint64_t target = list->entry ? (last_bits + above) << list->place_bits : sample + above;

    return in.begin + SEARCH(in.end - in.begin, i, plan_list_is_before(list, in.begin + i, target));
}

static uint64_t plan_list_end_of(const struct plan_list *list, struct plan_entries bucket,
                                 const struct plan_samples *wanted)
{
    if (wanted->last >> list->shift != wanted->first >> list->shift)
        bucket = plan_list_bucket_of(list, wanted->last);
    return first_entry(list, bucket, wanted->last, true);
}

/* Read a byte of each line of a bucket, all of which is read soon. No prefetch: a processor may
 * drop that if the page is not in its TLB. */
static void touch(const struct plan_list *list, struct plan_entries bucket)
{
    size_t each = list->entry ? PLAN_ENTRY_BYTES : sizeof(*list->sample);
    const char *bytes = list->entry ? (const char *)list->entry : (const char *)list->sample;
    const char *at = bytes + bucket.begin * each, *end = bytes + bucket.end * each;

    if (at == end)
        return;
    for (unsigned i = 0; i < LINES_MOST && (size_t)(end - at) > i * LINE; i++)
        (void)*(const volatile char *)(at + i * LINE);
    (void)*(const volatile char *)(end - 1);
}

void plan_list_find(const struct plan_list *list, size_t count, const struct plan_samples *wanted,
                    struct plan_entries *ret)
{
    assert(list->start);
    for (size_t i = 0; i < count; i++)
        ret[i] = plan_list_bucket_of(list, wanted[i].first);
    for (size_t i = 0; i < count; i++)
        touch(list, ret[i]);
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct plan_entries){first_entry(list, ret[i], wanted[i].first, false),
                                       plan_list_end_of(list, ret[i], &wanted[i])};
}
