/* Lengths of an index of labels, and units: runs of samples of one class. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/search.h"
#include "fs/tree/list_labels_parts.h"

/* The class of a sample, as its value. */
int64_t list_labels_value_of(const struct label_arrays *a, uint64_t sample)
{
    uint64_t where = a->where[sample];

    return a->label[search_last_up_to(a->begin, sizeof(*a->begin), a->classes, where)];
}

/* The index may be changed while it is mapped: no sample is after the last, and any length will do.
 */
static void get_lengths(const struct plan_lengths *lengths, size_t count, const uint64_t *sample,
                        uint32_t *ret)
{
    const struct label_arrays *a = ((const struct mapped_lengths *)lengths)->arrays;

    for (size_t i = 0; i < count; i++)
        ret[i] = a->length[min_u64(sample[i], a->n - 1)];
}

const struct plan_lengths_ops list_labels_lengths_ops = {.get = get_lengths};

static void unit_lengths(const struct plan_lengths *lengths, size_t count, const uint64_t *sample,
                         uint32_t *ret)
{
    const struct plan_units *units = (const struct plan_units *)(const void *)lengths;

    for (size_t i = 0; i < count; i++) {
        uint64_t unit = plan_units_of(units, sample[i]);

        ret[i] = units->start[unit + 1] - units->start[unit];
    }
}

/* Find where the class of a sample differs from that before. */
int list_labels_make_units(struct list_label *l, const struct label_arrays *a)
{
    static const struct plan_lengths_ops ops = {unit_lengths};
    uint32_t *start = NULL;
    int64_t before = 0;
    size_t n = 0;

    for (uint64_t i = 0; i <= a->n; i++) {
        int64_t value = i < a->n ? list_labels_value_of(a, i) : 0;

        if (i && i < a->n && value == before)
            continue;
        before = value;
        if (array_capacity(&start, n, sizeof(*start)) < 0) {
            free(start);
            return -ENOMEM;
        }
        start[n++] = (uint32_t)i;
    }
    l->starts = start;
    l->units = (struct plan_units){
        .lengths = {.ops = &ops, .word = "rows"},
        .n = a->n ? n - 1 : 0,
        .start = start,
        .repeated = a->n ? n - 1 - a->classes : 0,
    };
    l->held = 4 * n;
    atomic_fetch_add(&l->all->memory.used, l->held);
    return 1;
}
