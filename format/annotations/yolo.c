/* YOLO's lines: `class cx cy w h`, the numbers in 0 to 1 of the picture's width and height. Lines
 * of other lengths are polygons (class, then x y of each point), poses, or corners of turned boxes:
 * then no line is read as a box, because those of one length could be either. */
#include <errno.h>

#include "format/annotations/box_parts.h"

enum {
    YOLO_CELLS = 5,
};

/* Numbers as of a file that YOLO would train with. Those behind the box may say what points of a
 * pose are: 0, 1 or 2. */
static bool yolo_line_says(const struct box_line *line)
{
    float v;

    if (line->n < YOLO_CELLS)
        return false;
    for (size_t i = 0; i < line->n && i < BOX_CELLS_MAX; i++) {
        if (!box_is_number(line->cell[i], &v))
            return false;
        if (i == 0 ? v < 0 || v > BOX_CLASSES_MAX || v != (float)(int32_t)v
                   : v < -0.01f || v > (i < YOLO_CELLS ? 1.01f : 2))
            return false;
    }
    return true;
}

static bool yolo_head_says(const void *head, size_t len, bool is_whole)
{
    return box_head_says(head, len, is_whole, yolo_line_says);
}

static int yolo_parse(struct box_reader *reader, struct box_file *file)
{
    static const char *const name[YOLO_CELLS] = {"class", "cx", "cy", "w", "h"};
    struct box_line line;
    int r = 0;

    while (r == 0 && box_line_next(file, &line)) {
        struct box_object object = {0};

        if (line.n != YOLO_CELLS)
            return box_reader_no_boxes(reader, file,
                                       "expected the 5 columns of a box, got %zu: polygons or "
                                       "poses, which are no boxes. The files are fields only",
                                       line.n);
        r = box_whole_number(file, line.cell[0], name[0], 0, &object.number);
        for (size_t i = 1; i < YOLO_CELLS && r == 0; i++)
            r = box_number(file, line.cell[i], name[i], &object.box[i - 1]);
        if (r == 0)
            r = box_reader_object(reader, file, &object);
    }
    return r;
}

const struct box_format box_format_yolo = {
    .name = "yolo",
    .layout = "cxcywh",
    .extension = "txt",
    .head_says = yolo_head_says,
    .parse = yolo_parse,
};
