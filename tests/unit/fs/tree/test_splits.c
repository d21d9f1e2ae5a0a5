/* Parts of one dataset whose fields differ, and what does not count as that. */
#include "fs/tree/splits.h"
#include "support/idx_make.h"
#include "support/unit.h"

#include <string.h>

#include "base/scope.h"
#include "base/text.h"

#define ITEMS 4

/* Datasets of IDX files in a catalog, by their names. */
struct world {
    struct found found[ITEMS];
    struct catalog_item item[ITEMS];
    struct catalog catalog;
};

/* Add images of that element type and number of axes, with labels or without. */
static struct dataset *add(struct world *w, const char *name, uint8_t type, unsigned axes,
                           bool labels)
{
    static const uint32_t dim[] = {3, 2, 2, 2};
    size_t i = w->catalog.n++;
    struct blob *blob[] = {
        idx_blob_zeros("x-images", type, axes, dim, NULL),
        labels ? idx_blob_zeros("x-labels", 0x08, 1, dim, NULL) : NULL,
    };

    assert_int_equal(idx_open(blob, labels ? 2 : 1, &(struct format_options){0}, &w->found[i]), 0);
    w->item[i] = (struct catalog_item){.folder = (char *)(uintptr_t) "sub",
                                       .name = (char *)(uintptr_t)name,
                                       .ds = w->found[i].item[0].ds};
    w->catalog.item = w->item;
    return w->item[i].ds;
}

static void release(struct world *w)
{
    for (size_t i = 0; i < w->catalog.n; i++)
        found_release(&w->found[i]);
}

/* What is said of the last item, and of all before it. */
static void check(struct world *w, const char *want)
{
    struct dataset *ds = w->item[w->catalog.n - 1].ds;
    AUTO_TEXT struct text t = {0};

    notes_release(&ds->notes);
    splits_note(&w->catalog, &w->item[w->catalog.n - 1], w->item + w->catalog.n, false);
    notes_show(&ds->notes, &t);
    assert_string_equal(t.data ? t.data : "", want);
}

UNIT_TEST(test_splits_note__the_same_fields__nothing)
{
    struct world w = {.catalog = {0}};

    add(&w, "test", 0x08, 3, true);
    add(&w, "train", 0x08, 3, true);
    check(&w, "");
    release(&w);
}

UNIT_TEST(test_splits_note__types_axes_and_fields__each_named)
{
    struct world w = {.catalog = {0}};

    add(&w, "test", 0x0d, 3, true);
    add(&w, "train", 0x08, 3, true);
    check(&w, "the fields of test and train differ: 'image' is float32 with 2 axes in test and "
              "uint8 with 2 axes in train\n");
    add(&w, "val.idx", 0x08, 4, true);
    check(&w, "the fields of test and val.idx differ: 'image' is float32 with 2 axes in test and "
              "uint8 with 3 axes in val.idx\n"
              "the fields of train and val.idx differ: 'image' is uint8 with 2 axes in train and "
              "uint8 with 3 axes in val.idx\n");
    release(&w);
}

UNIT_TEST(test_splits_note__a_field_that_one_lacks__named)
{
    struct world w = {.catalog = {0}};

    add(&w, "train", 0x08, 3, true);
    add(&w, "val", 0x08, 3, false);
    check(&w, "the fields of train and val differ: 'label' is in train only\n");
    splits_note(&w.catalog, &w.item[0], w.item, true); /* none before it */
    assert_int_equal(w.item[0].ds->notes.n, 0);
    splits_note_all(&w.catalog);
    assert_int_equal(w.item[0].ds->notes.n, 1);
    assert_int_equal(w.item[1].ds->notes.n, 2);
    release(&w);
}

/* Other folders, other names, and datasets that are not ready. */
UNIT_TEST(test_splits_note__no_parts_of_one__nothing)
{
    struct world w = {.catalog = {0}};

    add(&w, "train", 0x0d, 3, true);
    add(&w, "cats", 0x0d, 3, true);
    add(&w, "val", 0x0d, 3, true);
    add(&w, "test", 0x08, 3, true);
    w.item[0].folder = (char *)(uintptr_t) "other";
    atomic_store(&w.item[2].ds->state, DATASET_PREPARING);
    check(&w, "");
    w.item[3].name = (char *)(uintptr_t) "dogs";
    atomic_store(&w.item[2].ds->state, DATASET_READY);
    check(&w, "");
    release(&w);
}
