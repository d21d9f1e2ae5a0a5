#include "fs/tree/splits.h"

#include <string.h>

#include "base/text.h"
#include "format/core/split_name.h"
#include "fs/tree/class_page.h"
#include "fs/tree/pages.h"

#define SHOWN         4     /* differences of two parts */
#define CLASSES_MOST  65536 /* that are compared */
#define NUMBERED_MOST 16    /* parts that another one is compared with */

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

/* Do names differ by a number only, such as fold0 and fold1? */
static bool are_numbered(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    size_t n = strcspn(a, digits), m = strcspn(b, digits);

    return n == m && !strncmp(a, b, n) && a[n] && b[m] &&
           !strcmp(a + n + strspn(a + n, digits), b + m + strspn(b + m, digits));
}

static bool splits_has_classes(const struct catalog_item *item)
{
    AUTO_TEXT struct text name = {0};

    return item->ds && dataset_state(item->ds) == DATASET_READY &&
           class_page_name(item->ds, 0, &name);
}

static void splits_add_note(const struct catalog_item *a, const struct catalog_item *b, bool both,
                            const struct text *t)
{
    if (!t->data)
        return;
    if (both)
        notes_add(&a->ds->notes, "%s", t->data);
    notes_add(&b->ds->notes, "%s", t->data);
}

/* Folds and other parts that are numbered: NUMBERED_MOST of them. */
static void note_numbered(const struct catalog_item *first, const struct catalog_item *item,
                          const struct catalog_item *end, bool both)
{
    unsigned n = 0;

    for (; first < end && !strcmp(first->folder, item->folder) && n < NUMBERED_MOST; first++) {
        AUTO_TEXT struct text t = {0};

        if (first == item || !are_numbered(first->name, item->name) || !splits_has_classes(first))
            continue;
        compare_classes(first, item, &t);
        splits_add_note(first, item, both, &t);
        n++;
    }
}

void splits_note(const struct catalog *catalog, const struct catalog_item *item,
                 const struct catalog_item *end, bool both)
{
    const struct catalog_item *first = item;

    while (first > catalog->item && !strcmp(first[-1].folder, item->folder))
        first--;
    if (!is_part(item) && splits_has_classes(item))
        note_numbered(first, item, end, both);
    for (; is_part(item) && first < end && !strcmp(first->folder, item->folder); first++)
        if (first != item && is_ready_part(first) &&
            !strcmp(first->ds->format->name, item->ds->format->name)) {
            AUTO_TEXT struct text t = {0};

            splits_compare(first, item, &t);
            compare_classes(first, item, &t);
            splits_add_note(first, item, both, &t);
        }
}

void splits_note_all(const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->n; i++)
        if (catalog->item[i].ds && dataset_state(catalog->item[i].ds) == DATASET_READY)
            splits_note(catalog, &catalog->item[i], &catalog->item[i], true);
}
