#include "fs/tree/splits.h"

#include <string.h>

#include "base/text.h"
#include "format/core/split_name.h"
#include "fs/tree/class_page.h"
#include "fs/tree/pages.h"

#define SHOWN        4     /* differences of two parts */
#define CLASSES_MOST 65536 /* that are compared */

/* Is it a part of a dataset by its name: train, or train.csv? */
static bool is_part(const struct catalog_item *item)
{
    return item->ds && is_split_name(item->name, strcspn(item->name, "."));
}

static bool is_ready_part(const struct catalog_item *item)
{
    return is_part(item) && dataset_state(item->ds) == DATASET_READY;
}

/* A field that samples are made of, and whose name is no extension. */
static bool splits_counts(const struct field *f)
{
    return page_shows(f) && !f->derived && !(f->form == FORM_RAGGED && f->dtype == DTYPE_U1);
}

static const struct field *splits_find(const struct dataset *ds, const char *name)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (page_shows(&ds->field[i]) && !strcmp(ds->field[i].name, name))
            return &ds->field[i];
    return NULL;
}

static void add_kind(const struct field *f, struct text *t)
{
    text_add(t, "%s", dtype_info(f->dtype)->name);
    if (f->ndim)
        text_add(t, " with %u ax%s", f->ndim, f->ndim > 1 ? "es" : "is");
}

/* Add how field f of a differs from that of b. false: it does not. */
static bool add_difference(const struct catalog_item *a, const struct catalog_item *b,
                           const struct field *f, const char *joint, struct text *t)
{
    const struct field *other = splits_find(b->ds, f->name);

    if (other && other->dtype == f->dtype && other->ndim == f->ndim)
        return false;
    text_add(t, "%s '%s' is ", joint, f->name);
    if (!other) {
        text_add(t, "in %s only", a->name);
        return true;
    }
    add_kind(f, t);
    text_add(t, " in %s and ", a->name);
    add_kind(other, t);
    text_add(t, " in %s", b->name);
    return true;
}

/* Differences of a's fields from b's; missing: only those that b has not. */
static void add_differences(const struct catalog_item *a, const struct catalog_item *b,
                            bool missing, unsigned *n, struct text *t)
{
    for (unsigned i = 0; i < a->ds->n_fields; i++) {
        const struct field *f = &a->ds->field[i];
        struct text unused = {0};

        if (!splits_counts(f) || (missing && splits_find(b->ds, f->name)))
            continue;
        if (*n < SHOWN)
            *n += add_difference(a, b, f, *n ? "," : ":", t);
        else
            *n += add_difference(a, b, f, "", &unused);
        text_release(&unused);
    }
}

static void splits_compare(const struct catalog_item *a, const struct catalog_item *b,
                           struct text *t)
{
    AUTO_TEXT struct text found = {0};
    unsigned n = 0;

    add_differences(a, b, false, &n, &found);
    add_differences(b, a, true, &n, &found);
    if (!n || found.failed)
        return;
    text_add(t, "the fields of %s and %s differ%s", a->name, b->name, found.data);
    if (n > SHOWN)
        text_add(t, ", and %u others", n - SHOWN);
    text_add(t, "\n");
}

/* Add the first number that is another class in each of the parts: a model of one would be wrong
 * with the other. */
static void compare_classes(const struct catalog_item *a, const struct catalog_item *b,
                            struct text *t)
{
    for (int64_t i = 0; i < CLASSES_MOST; i++) {
        AUTO_TEXT struct text x = {0}, y = {0};

        if (!class_page_name(a->ds, i, &x) || !class_page_name(b->ds, i, &y))
            return;
        if (!strcmp(x.data, y.data))
            continue;
        text_add(t, "the classes of %s and %s differ: label %lld is '%s' in %s and '%s' in %s\n",
                 a->name, b->name, (long long)i, x.data, a->name, y.data, b->name);
        return;
    }
}

void splits_note(const struct catalog *catalog, const struct catalog_item *item,
                 const struct catalog_item *end, struct text *t)
{
    const struct catalog_item *first = item;

    if (!is_part(item))
        return;
    while (first > catalog->item && !strcmp(first[-1].folder, item->folder))
        first--;
    for (; first < end && !strcmp(first->folder, item->folder); first++)
        if (first != item && is_ready_part(first) &&
            !strcmp(first->ds->format->name, item->ds->format->name)) {
            splits_compare(first, item, t);
            compare_classes(first, item, t);
        }
}
