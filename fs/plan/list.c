/* The list of only=NAME, looked up by samples. */
#include "fs/plan/list.h"

#include "base/checked.h"

uint64_t plan_list_from(const struct plan_list *list, uint64_t sample)
{
    uint64_t low = 0, high = list->n, bucket = sample >> list->shift;

    if (list->start) {
        low = list->start[min_u64(bucket, list->buckets)];
        high = bucket < list->buckets ? list->start[bucket + 1] : low;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t at = list->sorted ? list->sorted[middle] : middle;

        if (list->sample[at] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
