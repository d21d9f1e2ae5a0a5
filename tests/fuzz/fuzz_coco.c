/* Bytes as COCO JSON. What is read, jansson also reads, and finds the same images and as many
 * annotations; columns have a row for each image, and parts within the text that are JSON; the
 * head says what it is.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "format/annotations/coco.h"
#include "fuzz.h"
#include "support/memory_blob.h"

/* A member of an object; NULL: none, or it is null. */
static json_t *member(json_t *object, const char *name)
{
    json_t *v = json_object_get(object, name);

    return json_is_null(v) ? NULL : v;
}

static void check_images(const struct coco *c, json_t *root)
{
    json_t *images = json_object_get(root, "images");

    FUZZ_CHECK(json_array_size(images) == coco_images(c));
    for (size_t i = 0; i < coco_images(c); i++) {
        const char *name = json_string_value(member(json_array_get(images, i), "file_name"));

        FUZZ_CHECK(name && !strcmp(name, coco_file_name(c, i)));
    }
    FUZZ_CHECK(json_array_size(json_object_get(root, "categories")) == coco_classes(c));
}

/* The numbers of all boxes are those that jansson reads, in any order. */
static void check_boxes(const struct value_columns *t, json_t *root)
{
    const struct value_column *boxes = value_columns_find(t, "boxes");
    json_t *annotations = json_object_get(root, "annotations");
    double sum = 0, expected = 0;
    const uint8_t *items;
    float v[4];

    for (uint64_t row = 0; boxes && row < boxes->rows; row++) {
        uint64_t n = value_items(boxes, row, &items);

        for (uint64_t i = 0; i < n; i++) {
            memcpy(v, items + 16 * i, sizeof(v));
            sum += (double)(v[0] > 1) + 2 * (v[1] > 1) + 4 * (v[2] > 1) + 8 * (v[3] > 1);
        }
    }
    for (size_t i = 0; boxes && i < json_array_size(annotations); i++) {
        json_t *box = member(json_array_get(annotations, i), "bbox");

        FUZZ_CHECK(json_array_size(box) == 4);
        for (size_t k = 0; k < 4; k++)
            expected += (float)json_number_value(json_array_get(box, k)) > 1 ? 1 << k : 0;
    }
    FUZZ_CHECK(sum == expected);
}

static void check_parts(const struct value_columns *t, const uint8_t *data, size_t len)
{
    const struct value_column *parts = value_columns_find(t, "segmentation");

    for (uint64_t row = 0; parts && row < parts->rows; row++) {
        const uint8_t *items;
        uint64_t n = value_items(parts, row, &items);

        for (uint64_t i = 0; i < n; i++) {
            struct value_part part;
            json_error_t error;
            json_t *v;

            memcpy(&part, items + i * sizeof(part), sizeof(part));
            FUZZ_CHECK(part.at <= len && part.len <= len - part.at);
            v = json_loadb((const char *)data + part.at, part.len,
                           JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
            FUZZ_CHECK(v || !part.len || json_error_code(&error) == json_error_numeric_overflow);
            json_decref(v);
        }
    }
}

static void check_captions(const struct value_columns *t)
{
    const struct value_column *caption = value_columns_find(t, "caption");

    for (uint64_t row = 0; caption && row < caption->rows; row++) {
        const uint8_t *bytes;
        uint64_t n = value_items(caption, row, &bytes);
        json_t *list = json_loadb((const char *)bytes, n, 0, NULL);

        FUZZ_CHECK(json_is_array(list) || value_is_hole(caption, row));
        json_decref(list);
    }
}

static void check_columns(const struct coco *c, json_t *root, const uint8_t *data, size_t len)
{
    AUTO_FREE uint32_t *image = calloc(coco_images(c) + 1, sizeof(*image));
    AUTO_VALUE_COLUMNS struct value_columns t = {0};
    size_t annotations = json_array_size(json_object_get(root, "annotations"));
    struct diag d = DIAG_INIT;

    FUZZ_CHECK(image);
    for (size_t i = 0; i < coco_images(c); i++)
        image[i] = (uint32_t)(coco_images(c) - 1 - i);
    image[coco_images(c)] = VALUE_NO_ROW;
    FUZZ_CHECK(coco_columns(c, image, coco_images(c) + 1, "", &t, &d) == 0);
    for (unsigned i = 0; i < t.n; i++) {
        const struct value_column *column = &t.column[i];

        FUZZ_CHECK(column->rows == coco_images(c) + 1);
        FUZZ_CHECK(value_is_hole(column, column->rows - 1));
        fuzz_saw(column->name, strlen(column->name));
        fuzz_saw(column->bytes, column->form == VALUE_PARTS ? 0 : column->len);
        if (root && column->is_list && column->form != VALUE_TEXT)
            FUZZ_CHECK(column->end[column->rows - 1] == annotations);
    }
    check_parts(&t, data, len);
    check_captions(&t);
    if (root)
        check_boxes(&t, root);
    FUZZ_CHECK(coco_columns(c, image, coco_images(c) + 1, "again_", &t, &d) == 0);
    FUZZ_CHECK(coco_columns(c, image, coco_images(c) + 1, "again_", &t, &d) == -EBADMSG && d.set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_COCO struct coco *c = NULL;
    AUTO_BLOB struct blob *blob = memory_blob_new("x", data, len, len, NULL);
    size_t mark = len >= 3 && !memcmp(data, "\xef\xbb\xbf", 3) ? 3 : 0;
    bool says = coco_head_says(data, len);
    struct diag d = DIAG_INIT;
    json_error_t error;
    json_t *root;
    int r = blob ? coco_read(blob, "x.json", &c, &d) : -ENOMEM;

    FUZZ_CHECK(r == 0 || (r == -EBADMSG && d.set));
    fuzz_saw(&r, sizeof(r));
    if (r < 0)
        return 0;
    FUZZ_CHECK(says);
    /* NULs and numbers beyond its types are in what is skipped. */
    root = json_loadb((const char *)data + mark, len - mark,
                      JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    FUZZ_CHECK(root || json_error_code(&error) == json_error_numeric_overflow);
    if (root)
        check_images(c, root);
    check_columns(c, root, data, len);
    json_decref(root);
    return 0;
}
