/* Arrays that grow by one element at a time. */
#ifndef EPOCHFS_BASE_ARRAY_H
#define EPOCHFS_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Make space for element number n of the array at *array, whose n elements were added one by one
 * from 0 (NULL) on; an element has `each` bytes. The array moves when n + 1 is a power of two. 0,
 * or -ENOMEM with the array as it was. */
static inline int array_capacity(void *array, size_t n, size_t each)
{
    void **at = array;
    void *grown;

    if (n & (n + 1))
        return 0;
    if (n >= SIZE_MAX / 4 / each)
        return -ENOMEM;
    grown = realloc(*at, (2 * n + 2) * each);
    if (!grown)
        return -ENOMEM;
    *at = grown;
    return 0;
}

/* The same for an array whose elements before n are zeros, and which is at NULL until now. */
static inline int array_begin(void *array, size_t n, size_t each)
{
    void **at = array;
    size_t capacity = 2;

    while (capacity <= n + 1) /* what array_capacity() has made of it by then */
        capacity *= 2;
    *at = calloc(capacity, each);
    return *at ? 0 : -ENOMEM;
}

#endif
