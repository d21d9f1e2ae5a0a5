/* What coco_json.c reads, coco_check.c checks and coco.c gives. For these files only. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_COCO_DATA_H
#define EPOCHFS_FORMAT_ANNOTATIONS_COCO_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/diag.h"
#include "format/annotations/value_columns.h"

/* Lists of the file. */
enum coco_list {
    COCO_IMAGES,
    COCO_ANNOTATIONS,
    COCO_CATEGORIES,
    N_COCO_LISTS,
};

/* Columns of images and categories; COCO_ENTRY_URL: of images only, until all are read. */
enum { COCO_ENTRY_ID, COCO_ENTRY_NAME /* its NUL is kept */, COCO_ENTRY_URL };

/* Columns of annotations; bit 1 << m of `any`. */
enum coco_member {
    COCO_IMAGE_ID,
    COCO_ID,
    COCO_CATEGORY_ID,
    COCO_BBOX,
    COCO_ISCROWD,
    COCO_AREA,
    COCO_SEGMENTATION,
    COCO_KEYPOINTS, /* float32, as many in each row that is no hole */
    COCO_NUM_KEYPOINTS,
    COCO_CAPTION, /* JSON texts */
    N_COCO_MEMBERS,
    COCO_CLASS = N_COCO_MEMBERS, /* the place among categories, made by coco_check() */
};

#define COCO_NUMBERS_MAX 3072 /* of the keypoints of an annotation */

/* Images, annotations or categories in the order of the file: a column for each member, with a hole
 * where a record lacks it. */
struct coco_records {
    struct value_columns columns;
    uint64_t *at; /* [n] the byte of each */
    size_t n;
};

struct coco {
    char *name;    /* of the file */
    uint64_t size; /* its bytes */
    struct coco_records list[N_COCO_LISTS];
    bool has_categories; /* the file has the list */
    uint32_t any;        /* columns of annotations in which one has a value */
    unsigned width;      /* numbers of keypoints */

    /* Made by coco_check(): */
    char **class_name; /* [categories] by their ids; in the column */
    /* The annotations of image i are number [first[i], first[i + 1]) of by_image. */
    uint32_t *first, *by_image;
};

/* A whole number of a record; 0: it lacks it. */
static inline int64_t coco_number(const struct coco *c, enum coco_list list, unsigned column,
                                  size_t i)
{
    int64_t ret;

    memcpy(&ret, c->list[list].columns.column[column].bytes + i * sizeof(ret), sizeof(ret));
    return ret;
}

/* Check what was read against itself, and set what is set then. Returns as coco_read(). */
int coco_check(struct coco *c, struct diag *d);

#endif
