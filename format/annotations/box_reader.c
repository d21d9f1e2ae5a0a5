/* Boxes of one sample after the other become columns.
 *
 * Classes that have names get numbers as they are met; at the end their places by bytes become
 * their numbers.
 *
 * Two formats are lines:
 *
 *   YOLO   `class cx cy w h`, the numbers in 0 to 1 of the picture's width and height. Lines of
 *          other lengths are polygons (class, then x y of each point), poses, or corners of turned
 *          boxes: then no line is read as a box, because those of one length could be either.
 *   KITTI  label_2: type, truncated, occluded, alpha, the box (left, top, right, bottom), height,
 *          width, length, x, y, z, rotation_y; and a score, if a detector made them. DontCare is a
 *          type as others are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/real.h"
#include "format/annotations/box_parts.h"
#include "format/core/numbered.h"

enum {
    BOX_BOXES, /* the columns that each format has */
    BOX_LABEL,
    BOX_OTHERS,
};

struct box_reader {
    const struct box_format *format;
    struct value_columns columns;
    bool has_value[BOX_COLUMNS_MAX]; /* a box had it */
    uint64_t ignored;
    char *no_boxes; /* the files have none, because ..; NULL: they have */

    uint8_t *text; /* [capacity] a copy of the file, and DECIMAL_PAD zero bytes */
    size_t capacity;

    struct numbered names; /* of classes */
};

static int box_reader_columns(struct box_reader *reader)
{
    const struct box_column *others = reader->format->column;
    struct value_column *added;
    int r = value_columns_add(&reader->columns, "boxes", VALUE_NUMBERS, DTYPE_F4, true, 4, &added);

    if (r == 0)
        r = value_columns_add(&reader->columns, "box_label", VALUE_NUMBERS, DTYPE_I8, true, 0,
                              &added);
    for (size_t i = 0; r == 0 && i < BOX_COLUMNS_MAX && others[i].name; i++)
        r = value_columns_add(&reader->columns, others[i].name, VALUE_NUMBERS, others[i].dtype,
                              true, others[i].width, &added);
    return r;
}

int box_reader_new(const struct box_format *format, struct box_reader **ret)
{
    AUTO_BOX_READER struct box_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->format = format;
    if (box_reader_columns(reader) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(reader);
    return 0;
}

void box_reader_free(struct box_reader *reader)
{
    if (!reader)
        return;
    numbered_release(&reader->names);
    free(reader->text);
    free(reader->no_boxes);
    value_columns_release(&reader->columns);
    free(reader);
}

/* Copy the file into the reader's memory, where zero bytes follow it. */
static int box_reader_copy(struct box_reader *reader, const void *bytes, size_t len,
                           struct box_file *ret)
{
    size_t mark = utf8_mark(bytes, len);

    if (reader->capacity < len + DECIMAL_PAD) {
        size_t capacity = len + len / 2 + DECIMAL_PAD;
        uint8_t *grown = realloc(reader->text, capacity);

        if (!grown)
            return -ENOMEM;
        reader->text = grown;
        reader->capacity = capacity;
    }
    memcpy(reader->text, bytes, len);
    memset(reader->text + len, 0, DECIMAL_PAD);
    ret->at = reader->text + mark;
    ret->end = reader->text + len;
    return 0;
}

int box_reader_add(struct box_reader *reader, const void *bytes, size_t len, const char *name,
                   struct diag *d)
{
    struct box_file file = {.name = name, .d = d};
    struct box_line line;
    int r = 0;

    if (reader->no_boxes)
        return 0;
    if (bytes && len > BOX_FILE_MAX)
        return diag_set(d, -EBADMSG, "%s: expected a file of at most %u bytes, got %zu", name,
                        BOX_FILE_MAX, len);
    if (bytes)
        r = box_reader_copy(reader, bytes, len, &file);
    if (r == 0 && bytes && reader->format->parse)
        r = reader->format->parse(reader, &file);
    while (r == 0 && reader->format->add_line && !reader->no_boxes && box_line_next(&file, &line))
        r = reader->format->add_line(reader, &file, &line);
    for (unsigned i = 0; i < reader->columns.n && r == 0; i++)
        r = value_column_end_row(&reader->columns.column[i]);
    return r;
}

/* The number of the class of that name, for now. */
static int box_reader_class(struct box_reader *reader, const struct box_file *file,
                            struct box_cell name, int64_t *ret)
{
    int r = box_name_check(file, name);
    uint32_t number = 0;

    if (r == 0)
        r = numbered_add(&reader->names, (const char *)name.text, name.len, &number);
    if (r == 0 && number == BOX_CLASSES_MAX)
        return box_bad(file, "expected at most %d names of classes, got more", BOX_CLASSES_MAX);
    *ret = number;
    return r;
}

int box_reader_object(struct box_reader *reader, const struct box_file *file,
                      const struct box_object *object)
{
    static const uint8_t zeros[16 * sizeof(double)];
    struct value_column *column = reader->columns.column;
    uint8_t box[4 * sizeof(float)], label[sizeof(int64_t)];
    int64_t number = object->number;
    int r = 0;

    if (reader->format->names_classes)
        r = box_reader_class(reader, file, object->name, &number);
    if (r < 0)
        return r;
    for (size_t i = 0; i < 4; i++)
        store_le32(box + 4 * i, bits_of_f4(object->box[i]));
    store_le64(label, (uint64_t)number);
    value_column_append(&column[BOX_BOXES], box, 1);
    value_column_append(&column[BOX_LABEL], label, 1);
    for (unsigned i = 0; BOX_OTHERS + i < reader->columns.n; i++) {
        const void *value = object->value[i];

        reader->has_value[i] |= value != NULL;
        value_column_append(&column[BOX_OTHERS + i], value ? value : zeros, 1);
    }
    return 0; /* the ends of the rows fail where one of these has */
}

/* ---- the end ---- */

/* Numbers by bytes in the place of those that were met first. */
static int box_reader_number(struct box_reader *reader, struct box_classes *ret)
{
    struct value_column *label = &reader->columns.column[BOX_LABEL];
    struct numbered *names = &reader->names;
    int r = numbered_sort(names);

    ret->item = calloc(names->n + 1, sizeof(*ret->item));
    if (r < 0 || !ret->item)
        return -ENOMEM;
    ret->n = names->n;
    for (size_t i = 0; i < ret->n && r == 0; i++) {
        ret->item[i] =
            (struct box_class){(uint32_t)i, strdup(numbered_text(names, names->sorted[i], NULL))};
        r = ret->item[i].name ? 0 : -ENOMEM;
    }
    for (size_t at = 0; at < label->len; at += sizeof(int64_t))
        store_le64(label->bytes + at, names->place[load_le64(label->bytes + at)]);
    return r;
}

int box_reader_finish(struct box_reader *reader, struct value_columns *ret,
                      struct box_classes *ret_classes, struct text *note)
{
    const struct box_format *format = reader->format;

    if (reader->no_boxes) {
        text_add(note, "%s", reader->no_boxes);
        return 0;
    }
    if (format->names_classes && box_reader_number(reader, ret_classes) < 0)
        return -ENOMEM;
    for (unsigned i = BOX_COLUMNS_MAX; i--;) /* from the last one on, as the others move */
        if (format->column[i].is_optional && !reader->has_value[i])
            value_columns_remove(&reader->columns, BOX_OTHERS + i);
    if (reader->ignored)
        text_add(note, "%llu %s\n", (unsigned long long)reader->ignored, format->ignored);
    *ret = reader->columns;
    reader->columns = (struct value_columns){0};
    return 0;
}

void box_classes_release(struct box_classes *classes)
{
    for (size_t i = 0; i < classes->n; i++)
        free(classes->item[i].name);
    free(classes->item);
    *classes = (struct box_classes){0};
}

/* ---- lines ---- */

enum {
    YOLO_CELLS = 5,
    KITTI_BOX = 4, /* the first cell of the box */
    KITTI_CELLS = 15,
    KITTI_VALUES = KITTI_CELLS - 1, /* all but the type */
};

/* ---- YOLO ---- */

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

static int yolo_object(struct box_reader *reader, const struct box_file *file,
                       const struct box_line *line)
{
    static const char *const name[YOLO_CELLS] = {"class", "cx", "cy", "w", "h"};
    struct box_object object = {0};
    int r;

    if (line->n != YOLO_CELLS)
        return text_print(&reader->no_boxes,
                          "%s: line %llu: expected the 5 columns of a box, got %zu: polygons or "
                          "poses, which are no boxes. The files are fields only\n",
                          file->name, (unsigned long long)file->line, line->n);
    r = box_whole_number(file, line->cell[0], name[0], 0, &object.number);
    for (size_t i = 1; i < YOLO_CELLS && r == 0; i++)
        r = box_number(file, line->cell[i], name[i], &object.box[i - 1]);
    return r < 0 ? r : box_reader_object(reader, file, &object);
}

const struct box_format box_format_yolo = {
    .name = "yolo",
    .layout = "cxcywh",
    .extension = "txt",
    .line_says = yolo_line_says,
    .add_line = yolo_object,
};

/* ---- KITTI ---- */

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

static int kitti_object(struct box_reader *reader, const struct box_file *file,
                        const struct box_line *line)
{
    static const char *const name[KITTI_CELLS + 1] = {
        "type",   "truncated", "occluded", "alpha", "left", "top", "right",      "bottom",
        "height", "width",     "length",   "x",     "y",    "z",   "rotation_y", "score"};
    uint8_t values[KITTI_VALUES * sizeof(float)];
    struct box_object object = {.name = line->cell[0], .value = {values}};
    int r = 0;

    if (line->n != KITTI_CELLS && line->n != KITTI_CELLS + 1)
        return box_bad(file, "expected 15 columns, or 16 with a score, got %zu", line->n);
    for (size_t i = 1; i < line->n && r == 0; i++) {
        float v;

        r = box_number(file, line->cell[i], name[i], &v);
        if (r == 0 && i >= KITTI_BOX && i < KITTI_BOX + 4)
            object.box[i - KITTI_BOX] = v;
        if (r == 0 && i < KITTI_CELLS)
            store_le32(values + 4 * (i - 1), bits_of_f4(v));
    }
    reader->ignored += line->n > KITTI_CELLS;
    return r < 0 ? r : box_reader_object(reader, file, &object);
}

const struct box_format box_format_kitti = {
    .name = "kitti",
    .layout = "xyxy",
    .extension = "txt",
    .names_classes = true,
    .column = {{"box_values", DTYPE_F4, KITTI_VALUES, false}},
    .ignored = "lines have a score, column 16, which is ignored",
    .line_says = kitti_line_says,
    .add_line = kitti_object,
};
