/* Boxes of one sample after the other become columns.
 *
 * Classes that have names get numbers as they are met; `by_bytes` has these numbers in the order of
 * the names, so a name is found by halving, and at the end its place there becomes its number. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/real.h"
#include "format/annotations/box_parts.h"

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

    char **name;        /* [n_names] of classes, by their numbers */
    uint32_t *by_bytes; /* [n_names] */
    uint32_t n_names;
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
    for (uint32_t i = 0; i < reader->n_names; i++)
        free(reader->name[i]);
    free(reader->name);
    free(reader->by_bytes);
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
    int r = 0;

    if (reader->no_boxes)
        return 0;
    if (bytes && len > BOX_FILE_MAX)
        return diag_set(d, -EBADMSG, "%s: expected a file of at most %u bytes, got %zu", name,
                        BOX_FILE_MAX, len);
    if (bytes)
        r = box_reader_copy(reader, bytes, len, &file);
    if (r == 0 && bytes)
        r = reader->format->parse(reader, &file);
    for (unsigned i = 0; i < reader->columns.n && r == 0; i++)
        r = value_column_end_row(&reader->columns.column[i]);
    return r;
}

/* Where the name is in by_bytes, or would be. */
static bool box_reader_find(const struct box_reader *reader, struct box_cell name, uint32_t *ret)
{
    uint32_t low = 0, high = reader->n_names;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *other = reader->name[reader->by_bytes[middle]];
        int order = strncmp(other, (const char *)name.text, name.len);

        if (order == 0 && !other[name.len]) {
            *ret = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return false;
}

/* The number of the class of that name, for now. */
static int box_reader_class(struct box_reader *reader, const struct box_file *file,
                            struct box_cell name, int64_t *ret)
{
    uint32_t place, n = reader->n_names;
    int r = box_name_check(file, name);

    if (r < 0)
        return r;
    if (box_reader_find(reader, name, &place)) {
        *ret = reader->by_bytes[place];
        return 0;
    }
    if (n == BOX_CLASSES_MAX)
        return box_bad(file, "expected at most %d names of classes, got more", BOX_CLASSES_MAX);
    if (array_capacity(&reader->name, n, sizeof(*reader->name)) < 0 ||
        array_capacity(&reader->by_bytes, n, sizeof(*reader->by_bytes)) < 0)
        return -ENOMEM;
    reader->name[n] = strndup((const char *)name.text, name.len);
    if (!reader->name[n])
        return -ENOMEM;
    memmove(reader->by_bytes + place + 1, reader->by_bytes + place,
            (n - place) * sizeof(*reader->by_bytes));
    reader->by_bytes[place] = n;
    reader->n_names++;
    *ret = n;
    return 0;
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
    r = value_column_append(&column[BOX_BOXES], box, 1);
    if (r == 0)
        r = value_column_append(&column[BOX_LABEL], label, 1);
    for (unsigned i = 0; r == 0 && BOX_OTHERS + i < reader->columns.n; i++) {
        const void *value = object->value[i];

        reader->has_value[i] |= value != NULL;
        r = value_column_append(&column[BOX_OTHERS + i], value ? value : zeros, 1);
    }
    return r;
}

void box_reader_ignore(struct box_reader *reader)
{
    reader->ignored++;
}

int box_reader_no_boxes(struct box_reader *reader, const struct box_file *file, const char *format,
                        ...)
{
    char reason[BOX_MESSAGE];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    if (asprintf(&reader->no_boxes, "%s: line %llu: %s\n", file->name,
                 (unsigned long long)file->line, reason) < 0)
        reader->no_boxes = NULL;
    return reader->no_boxes ? 0 : -ENOMEM;
}

/* Numbers by bytes in the place of those that were met first; the names move to ret. */
static int box_reader_number(struct box_reader *reader, struct box_classes *ret)
{
    struct value_column *label = &reader->columns.column[BOX_LABEL];
    uint32_t n = reader->n_names;
    AUTO_FREE uint32_t *place = calloc(n ? n : 1, sizeof(*place));

    ret->item = calloc(n ? n : 1, sizeof(*ret->item));
    if (!place || !ret->item)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t met = reader->by_bytes[i];

        place[met] = i;
        ret->item[i] = (struct box_class){i, TAKE_PTR(reader->name[met])};
    }
    ret->n = n;
    for (size_t at = 0; at < label->len; at += sizeof(int64_t))
        store_le64(label->bytes + at, place[load_le64(label->bytes + at)]);
    return 0;
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
