/* What plans of epochfs-bench-orders take from their dataset: classes, weights and a list that are
 * arithmetic as far as possible, so that what is measured is the order and not the memory of an
 * index. Included once. */
#ifndef EPOCHFS_BENCH_ORDERS_DATA_H
#define EPOCHFS_BENCH_ORDERS_DATA_H

#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"
#include "bench/common.h"
#include "fs/plan/list_text.h"
#include "fs/plan/schedule.h"

#define CLASSES   100                 /* of equal sizes: the samples are a multiple of it */
#define LIST_MOST (UINT64_C(1) << 24) /* entries of the list, which has arrays */
#define PERIOD    4                   /* weights are 1 to PERIOD, again and again */
#define SUM       (PERIOD * (PERIOD + 1) / 2)

static uint64_t class_count(const struct plan_classes *c, uint64_t class)
{
    (void)class;
    return c->places / CLASSES;
}

static uint64_t class_place(const struct plan_classes *c, uint64_t class, uint64_t i)
{
    (void)c;
    return i * CLASSES + class;
}

static void class_find(const struct plan_classes *c, uint64_t place, uint64_t *ret_c,
                       uint64_t *ret_i)
{
    (void)c;
    *ret_c = place % CLASSES;
    *ret_i = place / CLASSES;
}

static uint64_t weight_before(const struct plan_weights *w, uint64_t place)
{
    uint64_t within = place % PERIOD;

    (void)w;
    return place / PERIOD * SUM + within * (within + 1) / 2;
}

static uint64_t weight_place(const struct plan_weights *w, uint64_t value)
{
    uint64_t place = value / SUM * PERIOD;

    while (weight_before(w, place + 1) <= value)
        place++;
    return place;
}

/* The samples 0, step, 2 step, ... from the last to the first. */
static const struct plan_list *make_list(uint64_t samples, uint64_t *ret_step)
{
    static struct plan_list list;
    uint64_t n = min_u64(samples, LIST_MOST);
    uint32_t *sample = memory_array(n, sizeof(*sample));

    *ret_step = samples / n;
    for (uint64_t i = 0; sample && i < n; i++)
        sample[i] = (uint32_t)((n - 1 - i) * *ret_step);
    if (!sample || list_make(sample, n, true, &list) < 0)
        die("no memory", ENOMEM);
    return &list;
}

/* Set what the plan needs. *ret_step: the samples that the plan shows are multiples of it. */
static void make_data(const struct plan *plan, uint64_t samples, struct plan_data *ret,
                      uint64_t *ret_step)
{
    static const struct plan_classes_ops classes_ops = {class_count, class_place, class_find};
    static const struct plan_weights_ops weights_ops = {weight_before, weight_place};
    static struct plan_classes classes;
    static struct plan_weights weights;

    classes = (struct plan_classes){.ops = &classes_ops,
                                    .places = samples,
                                    .n = CLASSES,
                                    .least = samples / CLASSES,
                                    .most = samples / CLASSES};
    weights = (struct plan_weights){
        .ops = &weights_ops, .places = samples, .total = samples / PERIOD * SUM};
    *ret_step = 1;
    ret->classes = &classes;
    ret->weights = &weights;
    if (plan->only[0])
        ret->only = make_list(samples, ret_step);
}

#endif
