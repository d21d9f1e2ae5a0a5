#include "format/labels/class_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/core/extents.h"
#include "format/labels/class_table.h"
#include "format/labels/field_input.h"

#define CHEAP_BYTES (UINT64_C(16) << 20)
#define SMALL_BYTES (UINT64_C(64) << 20) /* of all files of a dataset */
#define LOOKED_AT   16                   /* samples */

const struct field *class_counts_field(const struct dataset *ds)
{
    const struct field *f = dataset_field(ds, ds->label);

    if (f && !field_is_number(f))
        f = ds->label_is_chosen ? field_of_texts(ds, ds->label) : NULL;
    return f && ds->samples && ds->samples < LABEL_SAMPLES_MAX ? f : NULL;
}

bool class_counts_are_known(const struct dataset *ds, const struct field *f)
{
    struct extent extent[EXTENTS_MOST];

    for (uint64_t i = 0; i < LOOKED_AT; i++)
        if (dataset_extents(ds, (ds->samples - 1) * i / (LOOKED_AT - 1), f, extent))
            return false;
    return !f->blob && field_is_number(f) && ds->samples * f->width <= CHEAP_BYTES;
}

/* All of it is on this machine, and small. */
static bool is_here_and_small(const struct dataset *ds)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < ds->n_blobs; i++) {
        if (ds->blob[i]->ops->fetch || ds->blob[i]->size > SMALL_BYTES - bytes)
            return false;
        bytes += ds->blob[i]->size;
    }
    return true;
}

bool class_counts_are_cheap(const struct dataset *ds, const struct field *f)
{
    bool is_here = f->blob && !f->read_stored && !f->blob->ops->fetch;

    return class_counts_are_known(ds, f) || (ds->label_is_chosen && is_here_and_small(ds)) ||
           (is_here && ds->samples * f->width <= CHEAP_BYTES);
}

void class_counts_release(struct class_counts *c)
{
    free(c->value);
    free(c->count);
    numbered_release(&c->texts);
    *c = (struct class_counts){0};
}

static int sorted(const struct class_table *t, struct class_counts *ret)
{
    AUTO_FREE uint32_t *order = malloc(8 * ((size_t)t->n + 1));
    struct class_counts c = {.n = t->n};
    int r = order ? class_table_sort(t, order, order + t->n) : -ENOMEM;

    c.value = malloc(8 * ((size_t)t->n + 1));
    c.count = malloc(8 * ((size_t)t->n + 1));
    if (r < 0 || !c.value || !c.count) {
        class_counts_release(&c);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        c.value[i] = t->value[order[i]];
        c.count[i] = t->count[order[i]];
        c.least = c.count[i] < c.count[c.least] ? i : c.least;
        c.most = c.count[i] > c.count[c.most] ? i : c.most;
    }
    *ret = c;
    return 0;
}

static void table_free(struct class_table **t)
{
    if (*t)
        class_table_release(*t);
    free(*t);
}

int class_counts_init(struct class_counts *ret, const struct dataset *ds, const struct field *f,
                      struct diag *d)
{
    AUTO(table_free) struct class_table *table = calloc(1, sizeof(*table));
    AUTO_FREE int64_t *value = malloc(8 * LABEL_READ);
    AUTO(field_input_release) struct field_input in = {0};
    bool is_label = !strcmp(f->name, "label") && ds->ops && ds->ops->class_size;
    uint32_t number;
    int r = table && value ? field_input_init(&in, ds, f->name, LABEL_CLASSES, d) : -ENOMEM;

    for (uint64_t i = 0, n; r == 0 && is_label && ds->ops->class_size(ds, i, &n); i++) {
        r = n ? class_table_add(table, (int64_t)i, &number) : 0;
        if (r == 0 && n)
            table->count[number] = n;
    }
    for (uint64_t at = r == 0 && table->n ? ds->samples : 0, n; r == 0 && at < ds->samples;
         at += n) {
        n = min_u64(LABEL_READ, ds->samples - at);
        r = label_read_whole(&in.input, READ_WAITS, at, (size_t)n, value, d);
        for (uint64_t i = 0; i < n && r == 0; i++)
            r = class_table_add(table, value[i], &number);
    }
    if (r == 0 && in.input.number)
        r = in.input.number(&in.input, table->value, table->n);
    if (r == 0)
        r = sorted(table, ret);
    if (r == 0 && in.input.number) {
        ret->texts = in.texts;
        ret->has_texts = true;
        in.texts = (struct numbered){0};
    }
    return r;
}
