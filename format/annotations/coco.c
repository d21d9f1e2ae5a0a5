/* What the file says, by image: columns and labels. */
#include "format/annotations/coco.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "format/annotations/coco_data.h"

size_t coco_images(const struct coco *c)
{
    return c->list[COCO_IMAGES].n;
}

const char *coco_file_name(const struct coco *c, size_t image)
{
    const uint8_t *name;

    value_items(&c->list[COCO_IMAGES].columns.column[COCO_ENTRY_NAME], image, &name);
    return (const char *)name;
}

bool coco_has_boxes(const struct coco *c)
{
    return c->any >> COCO_BBOX & 1;
}

bool coco_is_classification(const struct coco *c)
{
    const uint32_t others =
        1u << COCO_BBOX | 1u << COCO_SEGMENTATION | 1u << COCO_KEYPOINTS | 1u << COCO_CAPTION;

    return c->has_categories && c->any >> COCO_CATEGORY_ID & 1 && !(c->any & others);
}

size_t coco_classes(const struct coco *c)
{
    return c->list[COCO_CATEGORIES].n;
}

char *const *coco_class_names(const struct coco *c)
{
    return c->class_name;
}

void coco_free(struct coco *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < N_COCO_LISTS; i++) {
        value_columns_release(&c->list[i].columns);
        free(c->list[i].at);
    }
    free(c->name);
    free(c->class_name);
    free(c->first);
    free(c->by_image);
    free(c);
}

/* The annotations of an image: how many, and their places. */
static size_t coco_of_image(const struct coco *c, uint32_t image, const uint32_t **ret)
{
    assert(image < coco_images(c));
    *ret = c->by_image + c->first[image];
    return c->first[image + 1] - c->first[image];
}

/* ---- columns ---- */

static const int64_t coco_none = 0, coco_unknown = -1;
static const double coco_nan = NAN;
static const struct value_part coco_no_part;
static const float coco_zeros[COCO_NUMBERS_MAX];

/* Fields of annotations, in their order: which column each is, and the item of an annotation that
 * lacks it. */
static const struct coco_field {
    const char *name;
    enum coco_member column;
    const void *missing;
} coco_fields[] = {
    {"boxes", COCO_BBOX, coco_zeros},
    {"box_label", COCO_CLASS, &coco_none},
    {"category_id", COCO_CATEGORY_ID, &coco_none},
    {"iscrowd", COCO_ISCROWD, &coco_none},
    {"area", COCO_AREA, &coco_nan},
    {"annotation_id", COCO_ID, &coco_none},
    {"segmentation", COCO_SEGMENTATION, &coco_no_part},
    {"keypoints", COCO_KEYPOINTS, coco_zeros},
    {"num_keypoints", COCO_NUM_KEYPOINTS, &coco_unknown},
    {"caption", COCO_CAPTION, "null"},
};

/* Add a column of that name, or of that with prefix, to ret. */
static int coco_add_column(const struct coco *c, const char *prefix, const char *name,
                           const struct value_column *from, bool is_list, unsigned width,
                           struct value_columns *ret, struct value_column **column, struct diag *d)
{
    AUTO_FREE char *longer = NULL;

    if (value_columns_find(ret, name)) {
        if (text_print(&longer, "%s%s", prefix, name) < 0)
            return -ENOMEM;
        name = longer;
    }
    if (value_columns_find(ret, name))
        return diag_set(
            d, -EBADMSG,
            "%s: field %s is also in another file: expected it in one file. Rename one of"
            " the files, or remove it",
            c->name, name);
    return value_columns_add(ret, name, from->form, from->dtype, is_list, width, column);
}

static int coco_add_row(const struct coco *c, const struct coco_field *f, uint32_t image,
                        struct value_column *column)
{
    const struct value_column *from = &c->list[COCO_ANNOTATIONS].columns.column[f->column];
    const bool is_text = column->form == VALUE_TEXT;
    const uint32_t *annotation;
    size_t n = coco_of_image(c, image, &annotation);

    for (size_t i = 0; i < n; i++) {
        const uint8_t *items;
        size_t bytes = value_items(from, annotation[i], &items);

        if (value_is_hole(from, annotation[i])) {
            items = f->missing;
            bytes = 4; /* of null */
        }
        if (is_text)
            value_column_append(column, i ? ", " : "[", i ? 2 : 1);
        value_column_append(column, items, is_text ? bytes : 1);
    }
    if (is_text)
        value_column_append(column, n ? "]" : "[]", n ? 1 : 2);
    return value_column_end_row(column);
}

static int coco_field_column(const struct coco *c, const struct coco_field *f,
                             const uint32_t *image, size_t rows, const char *prefix,
                             struct value_columns *ret, struct diag *d)
{
    const struct value_column *from = &c->list[COCO_ANNOTATIONS].columns.column[f->column];
    unsigned width = f->column == COCO_KEYPOINTS ? c->width : from->width;
    struct value_column *column;
    int r = coco_add_column(c, prefix, f->name, from, true, width, ret, &column, d);

    for (size_t row = 0; row < rows && r == 0; row++)
        r = image[row] == VALUE_NO_ROW ? value_column_end_hole(column)
                                       : coco_add_row(c, f, image[row], column);
    return r;
}

int coco_columns(const struct coco *c, const uint32_t *image, size_t rows, const char *prefix,
                 struct value_columns *ret, struct diag *d)
{
    const struct value_column *ids = &c->list[COCO_IMAGES].columns.column[COCO_ENTRY_ID];
    struct value_column *column;
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(coco_fields) && r == 0; i++)
        if (c->any >> coco_fields[i].column & 1)
            r = coco_field_column(c, &coco_fields[i], image, rows, prefix, ret, d);
    if (r == 0)
        r = coco_add_column(c, prefix, "image_id", ids, false, 0, ret, &column, d);
    for (size_t row = 0; row < rows && r == 0; row++) {
        const int64_t id =
            image[row] == VALUE_NO_ROW ? 0 : coco_number(c, COCO_IMAGES, COCO_ENTRY_ID, image[row]);

        if (image[row] != VALUE_NO_ROW)
            value_column_append(column, &id, 1);
        r = value_column_end_row(column);
    }
    return r;
}

void coco_labels(const struct coco *c, const uint32_t *image, size_t rows, int64_t *ret,
                 bool *ret_single)
{
    *ret_single = true;
    for (size_t row = 0; row < rows; row++) {
        const uint32_t *annotation = NULL;
        size_t n = image[row] == VALUE_NO_ROW ? 0 : coco_of_image(c, image[row], &annotation);

        ret[row] = n == 1 ? coco_number(c, COCO_ANNOTATIONS, COCO_CLASS, annotation[0]) : -1;
        *ret_single = *ret_single && n <= 1;
    }
}
