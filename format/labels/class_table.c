#include "format/labels/class_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/scope.h"
#include "format/labels/label_file.h"

static uint64_t class_table_slot_of(const struct class_table *t, int64_t value)
{
    uint64_t h = (uint64_t)value * UINT64_C(0x9e3779b97f4a7c15);

    return (h ^ h >> 32) & (t->slots - 1);
}

/* The slot of a value, or a free one for it. */
static uint32_t *class_table_find(const struct class_table *t, int64_t value)
{
    uint64_t i = class_table_slot_of(t, value);

    while (t->slot[i] && t->value[t->slot[i] - 1] != value)
        i = (i + 1) & (t->slots - 1);
    return &t->slot[i];
}

/* At most half of the slots are taken. */
static int class_table_grow(struct class_table *t)
{
    uint32_t *old = t->slot;
    uint64_t slots = t->slots;

    if (2 * (t->others + 1) <= slots)
        return 0;
    t->slots = slots ? 2 * slots : 64;
    t->slot = calloc(t->slots, sizeof(*t->slot));
    if (!t->slot) {
        t->slot = old;
        t->slots = slots;
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < slots; i++)
        if (old[i])
            *class_table_find(t, t->value[old[i] - 1]) = old[i];
    free(old);
    return 0;
}

static int add_class(struct class_table *t, int64_t value, uint32_t *at)
{
    if (t->n >= LABEL_CLASSES_MAX)
        return -E2BIG;
    if (array_capacity(&t->value, t->n, sizeof(*t->value)) < 0 ||
        array_capacity(&t->count, t->n, sizeof(*t->count)) < 0)
        return -ENOMEM;
    t->value[t->n] = value;
    t->count[t->n] = 0;
    *at = ++t->n;
    return 0;
}

int class_table_add(struct class_table *t, int64_t value, uint32_t *ret)
{
    bool is_small = value >= 0 && value < CLASS_TABLE_SMALL;
    uint32_t *at;
    int r = is_small ? 0 : class_table_grow(t);

    if (r < 0)
        return r;
    at = is_small ? &t->small[value] : class_table_find(t, value);
    if (!*at) {
        r = add_class(t, value, at);
        if (r < 0)
            return r;
        t->others += !is_small;
    }
    *ret = *at - 1;
    t->count[*ret]++;
    return 0;
}

struct ranked {
    int64_t value;
    uint32_t number;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return x->value < y->value ? -1 : x->value > y->value;
}

int class_table_sort(const struct class_table *t, uint32_t *sorted, uint32_t *rank)
{
    AUTO_FREE struct ranked *all = malloc(sizeof(*all) * (t->n + 1u));

    if (!all)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n; i++)
        all[i] = (struct ranked){t->value[i], i};
    qsort(all, t->n, sizeof(*all), by_value);
    for (uint32_t i = 0; i < t->n; i++) {
        sorted[i] = all[i].number;
        rank[all[i].number] = i;
    }
    return 0;
}

void class_table_release(struct class_table *t)
{
    free(t->value);
    free(t->count);
    free(t->slot);
    t->value = NULL;
    t->count = NULL;
    t->slot = NULL;
}
