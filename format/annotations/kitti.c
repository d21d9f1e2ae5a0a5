/* KITTI's lines of label_2: type, truncated, occluded, alpha, the box (left, top, right, bottom),
 * height, width, length, x, y, z, rotation_y; and a score, if a detector made them. DontCare is a
 * type as others are. */
#include "base/real.h"
#include "format/annotations/box_parts.h"

enum {
    KITTI_BOX = 4, /* the first cell of the box */
    KITTI_CELLS = 15,
    KITTI_VALUES = KITTI_CELLS - 1, /* all but the type */
};

static bool kitti_line_says(const struct box_line *line)
{
    float v;

    if ((line->n != KITTI_CELLS && line->n != KITTI_CELLS + 1) || box_is_number(line->cell[0], &v))
        return false;
    for (size_t i = 1; i < line->n; i++)
        if (!box_is_number(line->cell[i], &v))
            return false;
    return true;
}

static bool kitti_head_says(const void *head, size_t len, bool is_whole)
{
    return box_head_says(head, len, is_whole, kitti_line_says);
}

static int kitti_object(struct box_reader *reader, const struct box_file *file,
                        const struct box_line *line)
{
    static const char *const name[KITTI_CELLS + 1] = {
        "type",   "truncated", "occluded", "alpha", "left", "top", "right",      "bottom",
        "height", "width",     "length",   "x",     "y",    "z",   "rotation_y", "score"};
    uint8_t values[KITTI_VALUES * sizeof(float)];
    struct box_object object = {.name = line->cell[0], .value = {values}};
    int r = 0;

    for (size_t i = 1; i < line->n && r == 0; i++) {
        float v;

        r = box_number(file, line->cell[i], name[i], &v);
        if (r == 0 && i >= KITTI_BOX && i < KITTI_BOX + 4)
            object.box[i - KITTI_BOX] = v;
        if (r == 0 && i < KITTI_CELLS)
            store_le32(values + 4 * (i - 1), bits_of_f4(v));
    }
    if (line->n > KITTI_CELLS)
        box_reader_ignore(reader);
    return r < 0 ? r : box_reader_object(reader, file, &object);
}

static int kitti_parse(struct box_reader *reader, struct box_file *file)
{
    struct box_line line;
    int r = 0;

    while (r == 0 && box_line_next(file, &line)) {
        if (line.n != KITTI_CELLS && line.n != KITTI_CELLS + 1)
            return box_bad(file, "expected 15 columns, or 16 with a score, got %zu", line.n);
        r = kitti_object(reader, file, &line);
    }
    return r;
}

const struct box_format box_format_kitti = {
    .name = "kitti",
    .layout = "xyxy",
    .extension = "txt",
    .names_classes = true,
    .column = {{"box_values", DTYPE_F4, KITTI_VALUES, false}},
    .ignored = "lines have a score, column 16, which is ignored",
    .head_says = kitti_head_says,
    .parse = kitti_parse,
};
