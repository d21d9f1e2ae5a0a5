/* Searches in sorted arrays. */
#ifndef EPOCHFS_BASE_SEARCH_H
#define EPOCHFS_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The first i below n, a size_t, for which the expression `before` is false; n: it is true for all.
 * It is true up to there, and false from there on. Without a branch for its outcome, as any is as
 * likely. */
#define SEARCH(n, i, before)                                                                       \
    __extension__({                                                                                \
        size_t search_low = 0, search_half;                                                        \
        for (size_t search_left = (n); search_left; search_left -= search_half) {                  \
            size_t i = search_low + (search_half = (search_left + 1) / 2) - 1;                     \
            search_low = (before) ? i + 1 : search_low;                                            \
        }                                                                                          \
        search_low;                                                                                \
    })

/* The last i below n for which `fits` is true; 0: it is for none. It is not made for 0. */
#define SEARCH_LAST(n, i, fits)                                                                    \
    __extension__({                                                                                \
        size_t search_low = 0;                                                                     \
        for (size_t search_left = (n); search_left > 1; search_left -= search_left / 2) {          \
            size_t i = search_low + search_left / 2;                                               \
            search_low = (fits) ? i : search_low;                                                  \
        }                                                                                          \
        search_low;                                                                                \
    })

/* The index of the last of n numbers that is at most `at`; 0 if there is none. The numbers never
 * fall, and each is `stride` bytes after the one before: they may be members of structs. */
static inline size_t search_last_up_to(const uint64_t *first, size_t stride, size_t n, uint64_t at)
{
    return SEARCH_LAST(
        n, i, *(const uint64_t *)(const void *)((const uint8_t *)first + i * stride) <= at);
}

/* For qsort(), bsearch() and tsearch() of uint64_t. */
static inline int search_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

#endif
