/* What the file says, by image: columns and labels. */
#include "format/annotations/coco.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "format/annotations/coco_data.h"

const char *const coco_list_name[N_COCO_LISTS] = {
    [COCO_IMAGES] = "images",
    [COCO_ANNOTATIONS] = "annotations",
    [COCO_CATEGORIES] = "categories",
};

const char *const coco_member_name[N_COCO_MEMBERS] = {
    [COCO_IMAGE_ID] = "image_id",
    [COCO_ID] = "id",
    [COCO_CATEGORY_ID] = "category_id",
    [COCO_BBOX] = "bbox",
    [COCO_ISCROWD] = "iscrowd",
    [COCO_AREA] = "area",
    [COCO_SEGMENTATION] = "segmentation",
    [COCO_KEYPOINTS] = "keypoints",
    [COCO_NUM_KEYPOINTS] = "num_keypoints",
    [COCO_CAPTION] = "caption",
};

/* A field, and the members of annotations that it needs: it is there if an annotation has each. */
struct coco_field {
    const char *name;
    uint32_t needs;
    enum value_form form;
    enum dtype dtype;
    unsigned width;
    /* Where an annotation has the item; with `add`: nowhere. */
    size_t at;
    /* Add the item of an annotation. 0 or -ENOMEM. */
    int (*add)(const struct coco *c, const struct coco_annotation *a, struct value_column *column);
};

size_t coco_images(const struct coco *c)
{
    return c->images;
}

const char *coco_file_name(const struct coco *c, size_t image)
{
    return c->texts.bytes + c->image[image].name;
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
    return c->categories;
}

char *const *coco_class_names(const struct coco *c)
{
    return c->class_name;
}

void coco_free(struct coco *c)
{
    if (!c)
        return;
    free(c->name);
    free(c->texts.bytes);
    free(c->image);
    free(c->category);
    free(c->class_name);
    free(c->annotation);
    free(c->extra);
    free(c->keypoints);
    free(c->first);
    free(c->by_image);
    free(c);
}

/* The annotations of an image: how many, and their places. */
static size_t coco_of_image(const struct coco *c, uint32_t image, const uint32_t **ret)
{
    assert(image < c->images);
    *ret = c->by_image + c->first[image];
    return c->first[image + 1] - c->first[image];
}

/* ---- items ---- */

static int coco_add_integer(struct value_column *column, int64_t v)
{
    uint8_t item[8];

    store_le64(item, (uint64_t)v);
    return value_column_append(column, item, 1);
}

static int coco_add_keypoints(const struct coco *c, const struct coco_annotation *a,
                              struct value_column *column)
{
    size_t first = a->extra ? c->extra[a->extra - 1].keypoints : 0;

    return value_column_append(column, c->keypoints + 4 * first, 1);
}

static int coco_add_num_keypoints(const struct coco *c, const struct coco_annotation *a,
                                  struct value_column *column)
{
    return coco_add_integer(column, a->extra ? c->extra[a->extra - 1].num_keypoints : -1);
}

static int coco_add_caption(const struct coco *c, const struct coco_annotation *a,
                            struct value_column *column)
{
    const struct coco_extra *extra = a->extra ? &c->extra[a->extra - 1] : NULL;

    if (!extra || !extra->caption_len)
        return value_column_append(column, "null", 4);
    return value_column_append(column, c->texts.bytes + extra->caption_at, extra->caption_len);
}

/* ---- columns ---- */

#define NEEDS(member) (1u << COCO_##member)
#define ITEM(member)  offsetof(struct coco_annotation, member)
static const struct coco_field coco_fields[] = {
    {"boxes", NEEDS(BBOX), VALUE_NUMBERS, DTYPE_F4, 4, ITEM(box), NULL},
    {"box_label", NEEDS(BBOX) | NEEDS(CATEGORY_ID), VALUE_NUMBERS, DTYPE_I8, 0, ITEM(class), NULL},
    {"category_id", NEEDS(CATEGORY_ID), VALUE_NUMBERS, DTYPE_I8, 0, ITEM(category_id), NULL},
    {"iscrowd", NEEDS(ISCROWD), VALUE_NUMBERS, DTYPE_I8, 0, ITEM(iscrowd), NULL},
    {"area", NEEDS(AREA), VALUE_NUMBERS, DTYPE_F8, 0, ITEM(area), NULL},
    {"annotation_id", NEEDS(ID), VALUE_NUMBERS, DTYPE_I8, 0, ITEM(id), NULL},
    {"segmentation", NEEDS(SEGMENTATION), VALUE_PARTS, DTYPE_U1, 0, ITEM(segmentation), NULL},
    {"keypoints", NEEDS(KEYPOINTS), VALUE_NUMBERS, DTYPE_F4, 0, 0, coco_add_keypoints},
    {"num_keypoints", NEEDS(NUM_KEYPOINTS), VALUE_NUMBERS, DTYPE_I8, 0, 0, coco_add_num_keypoints},
    {"caption", NEEDS(CAPTION), VALUE_TEXT, DTYPE_U1, 0, 0, coco_add_caption},
};

static int coco_add_item(const struct coco *c, const struct coco_field *f,
                         const struct coco_annotation *a, struct value_column *column)
{
    return f->add ? f->add(c, a, column) : value_column_append(column, (const char *)a + f->at, 1);
}

static bool coco_has_field(const struct coco *c, const struct coco_field *f)
{
    uint32_t any = c->any;

    if (any & NEEDS(BBOX))
        any |= NEEDS(ISCROWD);
    if (f->at == offsetof(struct coco_annotation, class) && !c->has_categories)
        return false;
    return (any & f->needs) == f->needs;
}

/* Add a column of that name, or of that with prefix, to ret. */
static int coco_add_column(const struct coco *c, const char *prefix, const struct coco_field *f,
                           bool is_list, struct value_columns *ret, struct value_column **column,
                           struct diag *d)
{
    AUTO_FREE char *longer = NULL;
    const char *name = f->name;

    if (value_columns_find(ret, name)) {
        if (asprintf(&longer, "%s%s", prefix, name) < 0) {
            longer = NULL;
            return -ENOMEM;
        }
        name = longer;
    }
    if (value_columns_find(ret, name))
        return diag_set(
            d, -EBADMSG,
            "%s: field %s is also in another file: expected it in one file. Rename one of"
            " the files, or remove it",
            c->name, name);
    return value_columns_add(ret, name, f->form, f->dtype, is_list, f->width, column);
}

static int coco_add_row(const struct coco *c, const struct coco_field *f, uint32_t image,
                        struct value_column *column)
{
    const uint32_t *annotation;
    size_t n = coco_of_image(c, image, &annotation);
    bool is_text = f->form == VALUE_TEXT;

    if (is_text)
        value_column_append(column, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (is_text && i)
            value_column_append(column, ", ", 2);
        coco_add_item(c, f, &c->annotation[annotation[i]], column);
    }
    if (is_text)
        value_column_append(column, "]", 1);
    return value_column_end_row(column);
}

static int coco_field_column(const struct coco *c, const struct coco_field *field,
                             const uint32_t *image, size_t rows, const char *prefix,
                             struct value_columns *ret, struct diag *d)
{
    struct coco_field f = *field;
    struct value_column *column;
    int r;

    if (f.add == coco_add_keypoints)
        f.width = c->width;
    r = coco_add_column(c, prefix, &f, true, ret, &column, d);
    for (size_t row = 0; row < rows && r == 0; row++) {
        if (image[row] == VALUE_NO_ROW)
            r = value_column_end_hole(column);
        else
            r = coco_add_row(c, &f, image[row], column);
    }
    return r;
}

static int coco_image_id_column(const struct coco *c, const uint32_t *image, size_t rows,
                                const char *prefix, struct value_columns *ret, struct diag *d)
{
    static const struct coco_field field = {
        .name = "image_id", .form = VALUE_NUMBERS, .dtype = DTYPE_I8};
    struct value_column *column;
    int r = coco_add_column(c, prefix, &field, false, ret, &column, d);

    for (size_t row = 0; row < rows && r == 0; row++) {
        if (image[row] != VALUE_NO_ROW)
            coco_add_integer(column, c->image[image[row]].id);
        r = value_column_end_row(column);
    }
    return r;
}

int coco_columns(const struct coco *c, const uint32_t *image, size_t rows, const char *prefix,
                 struct value_columns *ret, struct diag *d)
{
    for (size_t i = 0; i < ARRAY_LEN(coco_fields); i++) {
        int r = 0;

        if (coco_has_field(c, &coco_fields[i]))
            r = coco_field_column(c, &coco_fields[i], image, rows, prefix, ret, d);
        if (r < 0)
            return r;
    }
    return coco_image_id_column(c, image, rows, prefix, ret, d);
}

void coco_labels(const struct coco *c, const uint32_t *image, size_t rows, int64_t *ret,
                 bool *ret_single)
{
    *ret_single = true;
    for (size_t row = 0; row < rows; row++) {
        const uint32_t *annotation = NULL;
        size_t n = image[row] == VALUE_NO_ROW ? 0 : coco_of_image(c, image[row], &annotation);

        ret[row] = n == 1 ? c->annotation[annotation[0]].class : -1;
        *ret_single = *ret_single && n <= 1;
    }
}
