/* Searches in sorted arrays. */
#ifndef EPOCHFS_BASE_SEARCH_H
#define EPOCHFS_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The index of the last of n numbers that is at most `at`; 0 if there is none. The numbers never
 * fall, and each is `stride` bytes after the one before: they may be members of structs. */
static inline size_t search_last_up_to(const uint64_t *first, size_t stride, size_t n, uint64_t at)
{
    size_t low = 0, high = n;

    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;

        if (*(const uint64_t *)(const void *)((const uint8_t *)first + middle * stride) <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
