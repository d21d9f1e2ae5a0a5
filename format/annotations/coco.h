/* COCO JSON: images, and annotations of them, in one object. Source of the format: the page "Data
 * format" of cocodataset.org.
 *
 *     {"images": [{"id", "file_name"}],
 *      "annotations": [{"image_id", "id", "category_id", "bbox", "iscrowd", "area", "segmentation",
 *                       "keypoints", "num_keypoints", "caption"}],
 *      "categories": [{"id", "name"}]}
 *
 * Other members are skipped, and so is a member that is null. The three lists come in any order. An
 * image without file_name, such as those of LVIS, may have coco_url, which ends with a file.
 * An annotation needs image_id only, but if one has bbox, id or category_id, each has.
 *
 * Memory: a window of the text, about 100 bytes for an annotation, and the names and captions. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_COCO_H
#define EPOCHFS_FORMAT_ANNOTATIONS_COCO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"
#include "format/annotations/value_columns.h"

struct coco; /* constant once it is made: any thread */

/* Could these first bytes be such a file: a JSON object with a member "images", "annotations" or
 * "categories" that is a list, of objects as far as it can be seen? The head may end anywhere;
 * false if it ends before such a member. */
bool coco_head_says(const void *head, size_t len);

/* Read a file in one pass. name: for messages. 0; -ENOMEM; -EBADMSG: malformed, with file and byte
 * in d; or another -errno of the read.
 * Waits for the bytes; no lock may be held. The caller frees *ret; the blob is not used after. */
int coco_read(const struct blob *blob, const char *name, struct coco **ret, struct diag *d);

/* Images in the order of the file, fewer than VALUE_NO_ROW. No two have one id; two may have one
 * file_name. */
size_t coco_images(const struct coco *c);

/* As in the file, never empty; UTF-8, NUL-ended, without other NULs. Valid as long as c. */
const char *coco_file_name(const struct coco *c, size_t image);

/* Has any annotation a bbox? Then each has. */
bool coco_has_boxes(const struct coco *c);

/* Does each annotation just give a category to an image? That is: there are annotations and
 * categories, each annotation has category_id, and none has bbox, segmentation, keypoints or
 * caption. Then coco_labels() has the labels. */
bool coco_is_classification(const struct coco *c);

/* Names of the categories, their ids ascending; two may have one name. None if the file has no
 * "categories". */
size_t coco_classes(const struct coco *c);
char *const *coco_class_names(const struct coco *c);

/* Add the fields of annotations to ret, which may have columns. image[row]: the image of a row, or
 * VALUE_NO_ROW, which makes it a hole in each column. The items of a row are its annotations in the
 * order of the file, in every column. There is a column only where an annotation has such a member:
 *
 *     boxes          float32 [n, 4]   bbox as it is: x, y, width, height
 *     box_label      int64 [n]        place among coco_classes(); only with bbox and categories
 *     category_id    int64 [n]
 *     iscrowd        int64 [n]        missing: 0; true and false are 1 and 0. With bbox always
 *     area           float64 [n]      missing: NaN
 *     annotation_id  int64 [n]        the id
 *     image_id       int64            always
 *     segmentation   VALUE_PARTS      one part for each annotation; missing: a part of length 0,
 * which reads as null keypoints      float32 [n, 3 K] missing: zeros; another K in one file:
 * refused num_keypoints  int64 [n]        missing: -1 caption        VALUE_TEXT       a JSON list
 * of texts; missing: null
 *
 * A field whose name ret has already gets prefix before it. 0; -ENOMEM; -EBADMSG: ret also has
 * that name. After an error ret may have columns that are not complete. */
int coco_columns(const struct coco *c, const uint32_t *image, size_t rows, const char *prefix,
                 struct value_columns *ret, struct diag *d);

/* The label of each row: the class of the one annotation of its image. -1 where there is none or
 * several; *ret_single: no row has several. coco_is_classification(c). */
void coco_labels(const struct coco *c, const uint32_t *image, size_t rows, int64_t *ret,
                 bool *ret_single);

void coco_free(struct coco *c); /* takes NULL */
static inline void coco_scope_end(struct coco **c)
{
    coco_free(*c);
}
#define AUTO_COCO AUTO(coco_scope_end)

#endif
