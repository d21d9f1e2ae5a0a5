/* What coco_json.c reads, coco_check.c checks and coco.c gives. For these files only. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_COCO_DATA_H
#define EPOCHFS_FORMAT_ANNOTATIONS_COCO_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "format/annotations/value_columns.h"

/* Lists of the file. */
enum coco_list {
    COCO_IMAGES,
    COCO_ANNOTATIONS,
    COCO_CATEGORIES,
    N_COCO_LISTS,
};
extern const char *const coco_list_name[N_COCO_LISTS];

/* Members of an annotation; bit 1 << m of `has`: it has it. */
enum coco_member {
    COCO_IMAGE_ID,
    COCO_ID,
    COCO_CATEGORY_ID,
    COCO_BBOX,
    COCO_ISCROWD,
    COCO_AREA,
    COCO_SEGMENTATION,
    COCO_KEYPOINTS,
    COCO_NUM_KEYPOINTS,
    COCO_CAPTION,
    N_COCO_MEMBERS,
};
extern const char *const coco_member_name[N_COCO_MEMBERS];

#define COCO_NUMBERS_MAX 3072 /* of the keypoints of an annotation */

/* Texts, NUL-ended, one after the other. */
struct coco_texts {
    char *bytes;
    size_t len, capacity;
};

/* An image or a category. */
struct coco_entry {
    int64_t id;
    uint64_t at; /* its byte of the file */
    size_t name; /* place in texts */
};

struct coco_annotation {
    int64_t image_id, id, category_id, iscrowd;
    int64_t class; /* place among categories; set by coco_check() */
    double area;
    uint8_t box[16]; /* 4 float32, little-endian */
    struct value_part segmentation;
    uint64_t at;    /* its byte of the file */
    uint32_t image; /* place among images; set by coco_check() */
    uint32_t extra; /* 1 + its place in extra; 0: it has none of that */
    uint32_t has;
};

/* What few annotations have, or those of few files. */
struct coco_extra {
    int64_t num_keypoints;
    size_t keypoints;               /* their place, counted in numbers; 0: it has none */
    size_t caption_at, caption_len; /* a JSON text; place in texts */
};

struct coco {
    char *name;    /* of the file */
    uint64_t size; /* its bytes */
    struct coco_texts texts;
    struct coco_entry *image, *category; /* categories: by id, after coco_check() */
    size_t images, categories;
    bool has_categories; /* the file has the list */
    char **class_name;   /* [categories] in texts; made by coco_check() */
    struct coco_annotation *annotation;
    size_t annotations;
    struct coco_extra *extra;
    size_t extras;
    uint32_t any; /* members that an annotation has */
    /* Keypoints, float32, little-endian, `width` numbers for an annotation. The first `width` are
     * zeros, for annotations without. */
    uint8_t *keypoints;
    size_t numbers, keypoints_capacity;
    unsigned width;
    /* Made by coco_check(): the annotations of image i are number [first[i], first[i + 1]) of
     * by_image. */
    uint32_t *first, *by_image;
};

/* Check what was read against itself, and set what is set then. Returns as coco_read(). */
int coco_check(struct coco *c, struct diag *d);

#endif
