/* What one record says of others: ids that must exist, and those that only one may have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* The ids of entries, ascending; the caller frees them. */
static int coco_check_ids(const struct coco *c, const struct coco_entry *entry, size_t n,
                          const char *problem, struct coco_ids *ret, struct diag *d)
{
    ret->n = n;
    ret->id = malloc((n + 1) * sizeof(*ret->id));
    if (!ret->id)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ret->id[i] = (struct coco_id){.id = entry[i].id, .place = (uint32_t)i};
    qsort(ret->id, n, sizeof(*ret->id), coco_check_order);
    for (size_t i = 1; i < n; i++)
        if (ret->id[i].id == ret->id[i - 1].id)
            return coco_check_bad(c, d, entry[ret->id[i].place].at, problem, ret->id[i].id,
                                  "Give one of the two another id");
    return 0;
}

static int coco_check_compare(const void *id, const void *entry)
{
    int64_t x = *(const int64_t *)id, y = ((const struct coco_id *)entry)->id;

    return (x > y) - (x < y);
}

/* The index of an id in the ascending list; -1: it is not there. */
static int64_t coco_check_find(const struct coco_ids *ids, int64_t id)
{
    const struct coco_id *found = bsearch(&id, ids->id, ids->n, sizeof(*found), coco_check_compare);

    return found ? found - ids->id : -1;
}

static int coco_check_sort_categories(struct coco *c, struct coco_ids *ids, struct diag *d)
{
    struct coco_entry *sorted;
    int r = coco_check_ids(c, c->category, c->categories,
                           "category has the id of another one: expected an id of its own", ids, d);

    if (r < 0)
        return r;
    sorted = malloc((c->categories + 1) * sizeof(*sorted));
    c->class_name = calloc(c->categories + 1, sizeof(*c->class_name));
    if (!sorted || !c->class_name) {
        free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < c->categories; i++) {
        sorted[i] = c->category[ids->id[i].place];
        c->class_name[i] = c->texts.bytes + sorted[i].name;
    }
    free(c->category);
    c->category = sorted;
    return 0;
}

/* Members that each annotation has if one has. */
static int coco_check_missing(const struct coco *c, const struct coco_annotation *a, struct diag *d)
{
    uint32_t needed = 1u << COCO_BBOX | 1u << COCO_ID | 1u << COCO_CATEGORY_ID;
    uint32_t missing = c->any & needed & ~a->has;

    if (!missing)
        return 0;
    return diag_set(
        d, -EBADMSG,
        "%s: byte %llu: annotation has no %s: expected it in all annotations or in none,"
        " got it in others. Add it, or remove the annotation",
        c->name, (unsigned long long)a->at, coco_member_name[__builtin_ctz(missing)]);
}

static int coco_check_annotation(const struct coco *c, struct coco_annotation *a,
                                 const struct coco_ids *images, const struct coco_ids *categories,
                                 struct diag *d)
{
    int64_t image = coco_check_find(images, a->image_id), class = 0;

    if (image < 0)
        return coco_check_bad(c, d, a->at,
                              "annotation has an unknown image_id: expected the id of an image",
                              a->image_id, "Add the image, or remove the annotation");
    if (c->has_categories && a->has >> COCO_CATEGORY_ID & 1)
        class = coco_check_find(categories, a->category_id);
    if (class < 0)
        return coco_check_bad(
            c, d, a->at, "annotation has an unknown category_id: expected the id of a category",
            a->category_id, "Add it to categories, or remove the annotation");
    a->image = images->id[image].place;
    a->class = class;
    return coco_check_missing(c, a, d);
}

/* Zeros for annotations without keypoints must not be much more than the file is. */
static int coco_check_keypoints(const struct coco *c, struct diag *d)
{
    uint64_t bytes = (uint64_t)c->annotations * c->width * sizeof(float);

    if (bytes / 8 <= c->size)
        return 0;
    return diag_set(
        d, -EBADMSG,
        "%s: keypoints are missing in too many annotations: expected %u numbers in each,"
        " got %zu annotations, most without. Put those with keypoints into a file of"
        " their own",
        c->name, c->width, c->annotations);
}

/* Annotations by image, those of an image in the order of the file. */
static int coco_check_group(struct coco *c)
{
    c->first = calloc(c->images + 2, sizeof(*c->first));
    c->by_image = malloc((c->annotations + 1) * sizeof(*c->by_image));
    if (!c->first || !c->by_image)
        return -ENOMEM;
    for (size_t i = 0; i < c->annotations; i++)
        c->first[c->annotation[i].image + 2]++;
    for (size_t i = 2; i < c->images + 2; i++)
        c->first[i] += c->first[i - 1];
    for (size_t i = 0; i < c->annotations; i++)
        c->by_image[c->first[c->annotation[i].image + 1]++] = (uint32_t)i;
    return 0;
}

int coco_check(struct coco *c, struct diag *d)
{
    struct coco_ids images = {0}, categories = {0};
    int r =
        coco_check_ids(c, c->image, c->images,
                       "image has the id of another one: expected an id of its own", &images, d);

    if (r == 0)
        r = coco_check_sort_categories(c, &categories, d);
    for (size_t i = 0; i < c->annotations && r == 0; i++)
        r = coco_check_annotation(c, &c->annotation[i], &images, &categories, d);
    free(images.id);
    free(categories.id);
    if (r == 0)
        r = coco_check_keypoints(c, d);
    return r < 0 ? r : coco_check_group(c);
}
