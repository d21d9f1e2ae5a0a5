/* A dataset whose fields were known when it was opened, before it is ready, gets no label1h: its
 * files have numbers already. */
#include "format/labels/label_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/encode/encode.h"
#include "format/labels/class_counts.h"
#include "format/labels/field_input.h"

#define ONE_HOT "label1h"

/* ---- label1h ---- */

static void note_no_one_hot(struct dataset *ds, const char *why)
{
    notes_add(&ds->notes, "there is no " ONE_HOT " of %s: %s", ds->label, why);
}

/* Find how many columns it has. 1: found; 0: it cannot be, and a note says why; or -ENOMEM. */
static int one_hot_width(struct dataset *ds, const struct field *label, uint64_t *ret)
{
    AUTO_CLASS_COUNTS struct class_counts counts = {0};
    struct diag d = DIAG_INIT;
    int r;

    if (!class_counts_are_cheap(ds, label)) {
        note_no_one_hot(ds, "its width is not known before all labels are read, which are many, or "
                            "far. Use -o one_hot=N");
        return 0;
    }
    r = class_counts_init(&counts, ds, label, &d);
    if (r == 0 && counts.value[0] < 0)
        r = diag_set(&d, -EBADMSG, "expected labels from 0, got %lld", (long long)counts.value[0]);
    if (r == 0 && counts.value[counts.n - 1] >= ONE_HOT_MAX)
        r = diag_set(&d, -EBADMSG, "expected labels below %d, got %lld", ONE_HOT_MAX,
                     (long long)counts.value[counts.n - 1]);
    if (r < 0) {
        note_no_one_hot(ds, diag_text(&d, r));
        return r == -ENOMEM ? r : 0;
    }
    *ret = (uint64_t)counts.value[counts.n - 1] + 1;
    return 1;
}

/* The files of a folder have other numbers with one more. */
static int fill_folders_again(struct dataset *ds)
{
    if (!ds->late_folders)
        dataset_free_folders(ds);
    return dataset_add_folders(ds);
}

static int insert_one_hot(struct dataset *ds, const struct field *label, uint64_t width)
{
    uint64_t *dim = malloc(sizeof(*dim));
    struct field *f;
    int r;

    if (!dim)
        return -ENOMEM;
    *dim = width;
    f = dataset_insert_field(ds);
    *f = *label;
    snprintf(f->name, sizeof(f->name), "%s", ONE_HOT);
    f->ops = &field_one_hot;
    f->in = IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_PAGES;
    f->derived = true;
    f->base_field = label;
    f->dtype = DTYPE_F4;
    f->width = 4;
    f->item_bytes = 4 * width;
    f->ndim = 1;
    f->dim = dim;
    r = fill_folders_again(ds);
    if (r != -E2BIG)
        return r;
    f->in = IN_PAGES; /* folders are full */
    note_no_one_hot(ds, "the dataset has as many files as it can have");
    return fill_folders_again(ds);
}

static int label_choice_add_one_hot(struct dataset *ds, const struct field *label, uint64_t classes)
{
    const struct field *has = dataset_field(ds, ONE_HOT);
    bool is_made_of_others = ds->ops && ds->ops->number;
    bool has_numbers = dataset_state(ds) != DATASET_READY && !ds->late_folders;
    uint64_t width = classes;
    int r = 1;

    if (!field_is_number(label)) {
        note_no_one_hot(ds, "its classes are texts");
        return 0;
    }
    if (is_made_of_others || !ds->samples || (has && has->base_field == label))
        return 0;
    if (has || has_numbers) {
        note_no_one_hot(ds, has ? "a field of the source has that name"
                                : "files of this format are numbered before labels are known");
        return 0;
    }
    if (!width)
        r = one_hot_width(ds, label, &width);
    return r == 1 ? insert_one_hot(ds, label, width) : r;
}

/* ---- which field ---- */

/* Names of fields are escaped as keys are: image/class/label is image%2Fclass%2Flabel. */
static const struct field *label_choice_field(const struct dataset *ds, const char *name)
{
    const struct field *f = dataset_field(ds, name);
    char escaped[KEY_NAME_SIZE];

    key_name(name, strlen(name), false, escaped);
    if (!f)
        f = dataset_field(ds, escaped);
    if (!f && ds->ops && ds->ops->calls_label && ds->ops->calls_label(ds, name))
        f = dataset_field(ds, "label");
    return f;
}

#define NAMES_MAX (1u << 20) /* bytes */

/* Keep the names of classes that are texts, for pages. 0 or -ENOMEM. */
static int keep_names(struct dataset *ds, const struct field *f)
{
    AUTO_CLASS_COUNTS struct class_counts counts = {0};
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    int r = class_counts_are_cheap(ds, f) ? class_counts_init(&counts, ds, f, &d) : 1;

    free(TAKE_PTR(ds->class_names)); /* of an earlier choice */
    for (uint32_t i = 0; r == 0 && i < counts.texts.n && t.len < NAMES_MAX; i++) {
        size_t len;
        const char *name = numbered_text(&counts.texts, counts.texts.sorted[i], &len);

        json_add_bytes(&t, name, len);
    }
    if (r == -ENOMEM)
        return r;
    if (r == 0 && t.len < NAMES_MAX)
        return text_finish(&t, &ds->class_names, NULL);
    notes_add(&ds->notes, "label=%s: the names of its classes are not in dataset.json: %s", f->name,
              r < 0   ? diag_text(&d, r)
              : r > 0 ? "its texts are many, or far"
                      : "there are too many");
    return 0;
}

/* All of the dataset is prepared. */
int label_choice_apply(const struct label_choice *choice, struct dataset *ds)
{
    const struct field *f = choice->field ? label_choice_field(ds, choice->field) : NULL;
    const char *name = f ? choice->field : ds->wanted_label;
    struct field_input input;
    struct diag d = DIAG_INIT;
    int r;

    if (!name)
        return 0;
    f = f ? f : label_choice_field(ds, name);
    if (f) {
        ds->label = f->name;
        ds->label_is_chosen = true;
    }
    r = field_input_init(&input, ds, f ? f->name : name, LABEL_CLASSES, &d);
    if (r == 0 && !field_is_number(f))
        r = keep_names(ds, f);
    if (r == 0)
        return label_choice_add_one_hot(ds, f, choice->classes);
    if (r == -ENOMEM)
        return r;
    notes_add(&ds->notes, "label=%s: %s%s", name, diag_text(&d, r),
              f                            ? ""
              : dataset_field(ds, "label") ? ". Its classes are those of 'label'"
                                           : ". It has no classes");
    return 0;
}
