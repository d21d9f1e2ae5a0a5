/* The list of only=NAME, looked up by samples. */
#include "fs/plan/list.h"

uint64_t plan_list_from(const struct plan_list *list, uint64_t sample)
{
    uint64_t low = 0, high = list->n;

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
