/* Classes and weights of a list for tests: arrays, counted out one place after another. */
#ifndef EPOCHFS_TESTS_SUPPORT_TEST_LABELS_H
#define EPOCHFS_TESTS_SUPPORT_TEST_LABELS_H

#include "fs/plan/labels.h"

#define TEST_PLACES_MOST 1024

struct test_labels {
    struct plan_classes classes;
    struct plan_weights weights;
    uint64_t count[TEST_PLACES_MOST];  /* [classes.n] */
    uint64_t *place[TEST_PLACES_MOST]; /* [classes.n][count] in: */
    uint64_t all[TEST_PLACES_MOST];
    uint64_t sum[TEST_PLACES_MOST + 1];
};

/* label, weight: [n] of each place, n <= TEST_PLACES_MOST; labels are below TEST_PLACES_MOST, and
 * the weights of n > 0 places are not all 0. ret may not be copied. */
void test_labels_make(struct test_labels *ret, uint64_t n, const uint64_t *label,
                      const uint64_t *weight);

#endif
