/* What the formats of boxes share: a file and where in it the parser is, lines and their columns,
 * numbers, and how boxes get to the reader. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_BOX_PARTS_H
#define EPOCHFS_FORMAT_ANNOTATIONS_BOX_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "format/annotations/boxes.h"
#include "format/core/decimal.h"

/* Bytes of a file, in memory. */
struct box_file {
    const uint8_t *at, *end; /* what is not yet read; DECIMAL_PAD zero bytes follow the end */
    uint64_t line;           /* for messages, 1 or more; 0: none */
    const char *name;
    struct diag *d;
};

#define BOX_MESSAGE 512 /* bytes; a longer message is cut */

/* -EBADMSG, with "NAME: line N: MESSAGE" in the file's d. */
int box_bad(const struct box_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- box_text.c ---- */

static inline bool box_is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n');
}

struct box_cell {
    const uint8_t *text;
    size_t len;
};

#define BOX_CELLS_MAX 16 /* that are kept */

struct box_line {
    struct box_cell cell[BOX_CELLS_MAX]; /* the first ones */
    size_t n;                            /* all */
};

/* A cell without the blanks and line ends around it. */
struct box_cell box_trimmed(struct box_cell cell);

/* The next line that has cells, which blanks separate. False: there is none. */
bool box_line_next(struct box_file *file, struct box_line *ret);

/* Is the cell a finite number, and nothing else? DECIMAL_PAD readable bytes follow it, the first of
 * which is no digit. */
bool box_is_number(struct box_cell cell, float *ret);

/* The same, or -EBADMSG; what: the name of the number. */
int box_number(const struct box_file *file, struct box_cell cell, const char *what, float *ret);

/* A whole number from least to 2^53. 0 or -EBADMSG. */
int box_whole_number(const struct box_file *file, struct box_cell cell, const char *what,
                     int64_t least, int64_t *ret);

/* Check the name of a class: UTF-8 without NUL, 1 to BOX_NAME_MAX bytes. 0 or -EBADMSG. */
int box_name_check(const struct box_file *file, struct box_cell name);

/* ---- box_reader.c ---- */

struct box_object {
    float box[4];
    struct box_cell name; /* of its class, in formats that name classes */
    int64_t number;       /* of its class, in others */
    const void
        *value[BOX_COLUMNS_MAX]; /* an item of each column of the format; NULL: it has none */
};

/* A box more of the file. 0, -ENOMEM, or -EBADMSG: the name of its class is bad, or one too many.
 */
int box_reader_object(struct box_reader *reader, const struct box_file *file,
                      const struct box_object *object);

/* ---- the formats ---- */

extern const struct box_format box_format_yolo, box_format_kitti;

#endif
