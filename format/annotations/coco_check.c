/* What one record says of others: ids that must exist, and those that only one may have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "format/annotations/coco.h"
#include "format/annotations/coco_data.h"

/* An id, and its place in a list. */
struct coco_id {
    int64_t id;
    uint32_t place;
};

struct coco_ids {
    struct coco_id *id; /* [n] ascending */
    size_t n;
};

static int coco_check_bad(const struct coco *c, struct diag *d, uint64_t at, const char *problem,
                          int64_t id, const char *fix)
{
    return diag_set(d, -EBADMSG, "%s: byte %llu: %s, got %lld. %s", c->name, (unsigned long long)at,
                    problem, (long long)id, fix);
}

static int coco_check_order(const void *a, const void *b)
{
    const struct coco_id *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* The ids of images or categories, ascending; the caller frees them. */
static int coco_check_ids(const struct coco *c, enum coco_list list, const char *problem,
                          struct coco_ids *ret, struct diag *d)
{
    const struct coco_records *records = &c->list[list];

    ret->n = records->n;
    ret->id = malloc((ret->n + 1) * sizeof(*ret->id));
    if (!ret->id)
        return -ENOMEM;
    for (size_t i = 0; i < ret->n; i++)
        ret->id[i] = (struct coco_id){coco_number(c, list, COCO_ENTRY_ID, i), (uint32_t)i};
    qsort(ret->id, ret->n, sizeof(*ret->id), coco_check_order);
    for (size_t i = 1; i < ret->n; i++)
        if (ret->id[i].id == ret->id[i - 1].id)
            return coco_check_bad(c, d, records->at[ret->id[i].place], problem, ret->id[i].id,
                                  "Give one of the two another id");
    return 0;
}

/* The index of an id in the ascending list; -1: it is not there. */
static int64_t coco_check_find(const struct coco_ids *ids, int64_t id)
{
    size_t at = SEARCH(ids->n, i, ids->id[i].id < id);

    return at < ids->n && ids->id[at].id == id ? (int64_t)at : -1;
}

/* Names of the categories, by their ids. */
static int coco_check_names(struct coco *c, const struct coco_ids *ids)
{
    const struct value_column *names = &c->list[COCO_CATEGORIES].columns.column[COCO_ENTRY_NAME];

    c->class_name = calloc(ids->n + 1, sizeof(*c->class_name));
    for (size_t i = 0; i < ids->n && c->class_name; i++) {
        const uint8_t *name;

        value_items(names, ids->id[i].place, &name);
        c->class_name[i] = (char *)(uintptr_t)name;
    }
    return c->class_name ? 0 : -ENOMEM;
}

/* Members that each annotation has if one has. */
static int coco_check_missing(const struct coco *c, size_t i, struct diag *d)
{
    static const struct {
        enum coco_member member;
        const char *name;
    } needed[] = {{COCO_ID, "id"}, {COCO_CATEGORY_ID, "category_id"}, {COCO_BBOX, "bbox"}};
    const struct coco_records *all = &c->list[COCO_ANNOTATIONS];

    for (unsigned k = 0; k < ARRAY_LEN(needed); k++)
        if (c->any >> needed[k].member & 1 &&
            value_is_hole(&all->columns.column[needed[k].member], i))
            return diag_set(
                d, -EBADMSG,
                "%s: byte %llu: annotation has no %s: expected it in all annotations or in none,"
                " got it in others. Add it, or remove the annotation",
                c->name, (unsigned long long)all->at[i], needed[k].name);
    return 0;
}

/* *ret: the place of its image. */
static int coco_check_annotation(struct coco *c, size_t i, const struct coco_ids *images,
                                 const struct coco_ids *categories, uint32_t *ret, struct diag *d)
{
    const struct coco_records *all = &c->list[COCO_ANNOTATIONS];
    struct value_column *column = all->columns.column;
    int64_t image_id = coco_number(c, COCO_ANNOTATIONS, COCO_IMAGE_ID, i);
    int64_t category_id = coco_number(c, COCO_ANNOTATIONS, COCO_CATEGORY_ID, i);
    int64_t image = coco_check_find(images, image_id), class = 0;

    if (image < 0)
        return coco_check_bad(c, d, all->at[i],
                              "annotation has an unknown image_id: expected the id of an image",
                              image_id, "Add the image, or remove the annotation");
    if (c->has_categories && !value_is_hole(&column[COCO_CATEGORY_ID], i))
        class = coco_check_find(categories, category_id);
    if (class < 0)
        return coco_check_bad(
            c, d, all->at[i],
            "annotation has an unknown category_id: expected the id of a category", category_id,
            "Add it to categories, or remove the annotation");
    *ret = images->id[image].place;
    if (value_column_set(&column[COCO_CLASS], i, &class, 1) < 0)
        return -ENOMEM;
    return coco_check_missing(c, i, d);
}

/* Zeros for annotations without keypoints must not be much more than the file is. */
static int coco_check_keypoints(const struct coco *c, struct diag *d)
{
    size_t n = c->list[COCO_ANNOTATIONS].n;
    uint64_t bytes = (uint64_t)n * c->width * sizeof(float);

    if (bytes / 8 <= c->size)
        return 0;
    return diag_set(
        d, -EBADMSG,
        "%s: keypoints are missing in too many annotations: expected %u numbers in each,"
        " got %zu annotations, most without. Put those with keypoints into a file of"
        " their own",
        c->name, c->width, n);
}

/* Annotations by image, those of an image in the order of the file; image[i]: that of each. */
static int coco_check_group(struct coco *c, const uint32_t *image)
{
    const size_t images = c->list[COCO_IMAGES].n, n = c->list[COCO_ANNOTATIONS].n;

    c->first = calloc(images + 2, sizeof(*c->first));
    c->by_image = malloc((n + 1) * sizeof(*c->by_image));
    if (!c->first || !c->by_image)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        c->first[image[i] + 2]++;
    for (size_t i = 2; i < images + 2; i++)
        c->first[i] += c->first[i - 1];
    for (size_t i = 0; i < n; i++)
        c->by_image[c->first[image[i] + 1]++] = (uint32_t)i;
    return 0;
}

int coco_check(struct coco *c, struct diag *d)
{
    const size_t n = c->list[COCO_ANNOTATIONS].n;
    const uint32_t boxes = 1u << COCO_BBOX | 1u << COCO_CATEGORY_ID;
    AUTO_FREE uint32_t *image = malloc((n + 1) * sizeof(*image));
    struct coco_ids images = {0}, categories = {0};
    struct value_columns *columns = &c->list[COCO_ANNOTATIONS].columns;
    struct value_column *class;
    int r = image ? value_columns_end(columns, n) : -ENOMEM;

    if (r == 0)
        r = value_columns_add(columns, "", VALUE_NUMBERS, DTYPE_I8, false, 0, &class);
    if (r == 0)
        r = coco_check_ids(c, COCO_IMAGES,
                           "image has the id of another one: expected an id of its own", &images,
                           d);
    if (r == 0)
        r = coco_check_ids(c, COCO_CATEGORIES,
                           "category has the id of another one: expected an id of its own",
                           &categories, d);
    if (r == 0)
        r = coco_check_names(c, &categories);
    for (size_t i = 0; i < n && r == 0; i++)
        r = coco_check_annotation(c, i, &images, &categories, &image[i], d);
    free(images.id);
    free(categories.id);
    if (r == 0)
        r = coco_check_keypoints(c, d);
    if (c->any >> COCO_BBOX & 1)
        c->any |= 1u << COCO_ISCROWD;
    if (c->has_categories && (c->any & boxes) == boxes)
        c->any |= 1u << COCO_CLASS;
    return r < 0 ? r : coco_check_group(c, image);
}
