/* Lists of only= made from their samples. */
#ifndef EPOCHFS_TESTS_SUPPORT_TEST_LISTS_H
#define EPOCHFS_TESTS_SUPPORT_TEST_LISTS_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fs/plan/list_text.h"

/* The list of n samples; list_release() frees it. Without memory the test ends. */
static inline struct plan_list test_list(const uint32_t *sample, uint64_t n)
{
    uint32_t *copy = memory_array(n, sizeof(*copy));
    struct plan_list ret;

    if (!copy)
        abort();
    memcpy(copy, sample, n * sizeof(*copy));
    if (list_make(copy, n, true, &ret) < 0)
        abort();
    return ret;
}

#endif
