/* The list of only=NAME, looked up by samples. */
#include "fs/plan/list.h"

#include "base/checked.h"

static uint32_t sample_of(const struct plan_list *list, uint64_t entry)
{
    return list->sample[list->sorted ? list->sorted[entry] : entry];
}

uint64_t plan_list_from(const struct plan_list *list, uint64_t sample)
{
    uint64_t low = 0, high = list->n, bucket = sample >> list->shift;

    if (list->start) {
        low = list->start[min_u64(bucket, list->buckets)];
        high = bucket < list->buckets ? list->start[bucket + 1] : low;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (sample_of(list, middle) < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#define NEXT_ENTRIES 8 /* that are looked at before the end is searched for */

uint64_t plan_list_range(const struct plan_list *list, uint64_t first, uint64_t last,
                         uint64_t *ret_begin)
{
    uint64_t end = *ret_begin = plan_list_from(list, first);

    for (unsigned i = 0; i < NEXT_ENTRIES; i++, end++)
        if (end == list->n || sample_of(list, end) > last)
            return end;
    return last == UINT64_MAX ? list->n : plan_list_from(list, last + 1);
}
