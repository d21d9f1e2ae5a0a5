/* A literal model of plans: the list of an epoch is written out, ordered, dealt to the ranks and
 * cut into batches, element by element, as docs/spec/order.md says in words. */
#ifndef EPOCHFS_TESTS_SUPPORT_PLAN_MODEL_H
#define EPOCHFS_TESTS_SUPPORT_PLAN_MODEL_H

#include "fs/plan/schedule.h"

/* What a plan is applied to. */
struct model_data {
    uint64_t samples;
    const uint64_t *label, *weight; /* [samples]; NULL: none */
    const struct plan_list *only;
};

/* Does the schedule of the plan give the samples of the model in every batch of the epoch, and lead
 * back from every sample? The test fails if not. */
void model_check(const struct plan *p, const struct model_data *data, uint64_t epoch);

#endif
