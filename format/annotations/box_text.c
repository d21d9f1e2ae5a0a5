/* Texts of annotations: lines, cells, numbers, names. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "format/annotations/box_parts.h"

#define BOX_HEAD_MAX 4096 /* bytes of a head that are judged */
#define BOX_SHOWN    40   /* bytes of a cell in a message */

int box_bad(const struct box_file *file, const char *format, ...)
{
    char text[BOX_MESSAGE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return file->line ? diag_set(file->d, -EBADMSG, "%s: line %llu: %s", file->name,
                                 (unsigned long long)file->line, text)
                      : diag_set(file->d, -EBADMSG, "%s: %s", file->name, text);
}

static int box_bad_cell(const struct box_file *file, struct box_cell cell, const char *what,
                        const char *expected)
{
    return box_bad(file, "%s: expected %s, got '%.*s'", what, expected,
                   (int)(cell.len < BOX_SHOWN ? cell.len : BOX_SHOWN), (const char *)cell.text);
}

struct box_cell box_trimmed(struct box_cell cell)
{
    while (cell.len && (box_is_blank(*cell.text) || *cell.text == '\n')) {
        cell.text++;
        cell.len--;
    }
    while (cell.len && (box_is_blank(cell.text[cell.len - 1]) || cell.text[cell.len - 1] == '\n'))
        cell.len--;
    return cell;
}

/* The cells of the line at file->at; moves to the next line. */
static void box_cells(struct box_file *file, struct box_line *ret)
{
    const uint8_t *p = file->at;

    ret->n = 0;
    file->line++;
    while (p < file->end && *p != '\n') {
        const uint8_t *first = p;

        while (p < file->end && *p != '\n' && !box_is_blank(*p))
            p++;
        if (p > first) {
            if (ret->n < BOX_CELLS_MAX)
                ret->cell[ret->n] = (struct box_cell){first, (size_t)(p - first)};
            ret->n++;
        } else {
            p++;
        }
    }
    file->at = p < file->end ? p + 1 : p;
}

bool box_line_next(struct box_file *file, struct box_line *ret)
{
    while (file->at < file->end) {
        box_cells(file, ret);
        if (ret->n)
            return true;
    }
    return false;
}

bool box_format_says(const struct box_format *format, const void *head, size_t len, bool is_whole)
{
    uint8_t text[BOX_HEAD_MAX + DECIMAL_PAD] = {0};
    size_t kept = len < BOX_HEAD_MAX ? len : BOX_HEAD_MAX, mark = utf8_mark(head, len);
    struct box_file file = {.at = text + mark};
    struct box_line line;

    if (format->head_says)
        return format->head_says(head, len, is_whole);
    if (kept)
        memcpy(text, head, kept);
    if (!is_whole || kept < len) { /* cut after a line, or else before a cell */
        size_t end = kept;

        while (end && text[end - 1] != '\n')
            end--;
        while (!end && kept && !box_is_blank(text[kept - 1]))
            kept--;
        kept = end ? end : kept;
        if (!kept)
            return false;
    }
    for (file.end = text + kept; box_line_next(&file, &line);)
        if (!format->line_says(&line))
            return false;
    return true;
}

bool box_is_number(struct box_cell cell, float *ret)
{
    float v;

    if (decimal_parse(cell.text, cell.text + cell.len, &v) != cell.text + cell.len || !isfinite(v))
        return false;
    *ret = v;
    return true;
}

int box_number(const struct box_file *file, struct box_cell cell, const char *what, float *ret)
{
    if (box_is_number(cell, ret))
        return 0;
    return box_bad_cell(file, cell, what, "a finite number of float32");
}

int box_whole_number(const struct box_file *file, struct box_cell cell, const char *what,
                     int64_t least, int64_t *ret)
{
    const double most = 9007199254740992.0; /* 2^53: each whole number up to it is exact */
    double v;

    if (decimal_parse_double(cell.text, cell.text + cell.len, &v) != cell.text + cell.len ||
        !(v >= (double)least && v <= most) || v != trunc(v))
        return box_bad_cell(file, cell, what,
                            least < 0 ? "a whole number" : "a whole number of 0 or more");
    *ret = (int64_t)v;
    return 0;
}

int box_name_check(const struct box_file *file, struct box_cell name)
{
    if (!name.len || name.len > BOX_NAME_MAX)
        return box_bad(file, "name of a class: expected 1 to %d bytes, got %zu", BOX_NAME_MAX,
                       name.len);
    for (size_t i = 0, n; i < name.len; i += n) {
        n = text_character(name.text + i, name.len - i);
        if (!n || !name.text[i])
            return box_bad(file, "name of a class: expected UTF-8, got byte %02x", name.text[i]);
    }
    return 0;
}
