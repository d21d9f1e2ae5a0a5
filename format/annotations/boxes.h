/* Boxes from small files, one for each sample: VOC's XML, and the lines of YOLO and KITTI. A reader
 * gets the files in the order of the samples and makes value columns: `boxes`, float32 [n, 4] as
 * the file has them; `box_label`, int64 [n]; and what else the format says of each box. A sample
 * without a file has n = 0.
 *
 * VOC and KITTI name the class of a box. Its number is the place of the name among all names that
 * the reader met, ordered by bytes. So one reader gets all files of a folder, even if several
 * datasets share them; value_columns_pick() makes the rows of each. YOLO has numbers, and their
 * names are in other files: yolo_names().
 *
 * One thread uses a reader. Files are hostile: what is malformed is rejected with file and line. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_BOXES_H
#define EPOCHFS_FORMAT_ANNOTATIONS_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/scope.h"
#include "base/text.h"
#include "format/annotations/value_columns.h"

#define BOX_FILE_MAX    (16u << 20) /* bytes of a file */
#define BOX_CLASSES_MAX 65536
#define BOX_NAME_MAX    1024 /* bytes of the name of a class */

struct box_reader;
struct box_file;
struct box_line;

/* A value of each box, besides its corners and its class. */
struct box_column {
    const char *name;
    enum dtype dtype;
    unsigned width;   /* as in struct value_column */
    bool is_optional; /* no field if no box has it; otherwise boxes that lack it have 0 */
};

#define BOX_COLUMNS_MAX 2

/* A format: name to find it by, and what the reader calls. */
struct box_format {
    const char *name;      /* "voc", "yolo", "kitti": as in the recipe */
    const char *layout;    /* of the four numbers: "xyxy", "cxcywh" (dataset.json: box_format) */
    const char *extension; /* of its files: "xml", "txt" */
    bool names_classes;    /* its files have names of classes, not numbers */
    struct box_column column[BOX_COLUMNS_MAX]; /* those with a name */
    const char *ignored; /* what is counted of its files: "NUMBER <ignored>" is a note */

    /* For files of lines: may it be one, and add its box. 0, -ENOMEM, or -EBADMSG with a message.
     */
    bool (*line_says)(const struct box_line *line);
    int (*add_line)(struct box_reader *reader, const struct box_file *file,
                    const struct box_line *line);
    /* For others: see box_format_says(), and add all boxes. */
    bool (*head_says)(const void *head, size_t len, bool is_whole);
    int (*parse)(struct box_reader *reader, struct box_file *file);
};

extern const struct box_format *const box_formats[]; /* ended by NULL */

const struct box_format *box_format_find(const char *name); /* or NULL */

/* Could a file that begins with these bytes be of the format? is_whole: they are all of it;
 * otherwise the last line counts if it is complete, or the only one. An empty YOLO or KITTI file
 * could: it has no boxes. */
bool box_format_says(const struct box_format *format, const void *head, size_t len, bool is_whole);

/* Names of classes, ascending by number. Numbers have gaps where YOLO's names have. */
struct box_classes {
    struct box_class {
        uint64_t number;
        char *name; /* UTF-8; owned */
    } * item;       /* [n] */
    size_t n;
};

void box_classes_release(struct box_classes *classes); /* of one that starts as {0} */
#define AUTO_BOX_CLASSES AUTO(box_classes_release)

/* A reader without samples. 0 or -ENOMEM. */
int box_reader_new(const struct box_format *format, struct box_reader **ret);

/* The next sample's file; bytes NULL: the sample has none. name: for messages. 0, -ENOMEM, or
 * -EBADMSG with file and line in d; after an error the reader can only be freed. */
int box_reader_add(struct box_reader *reader, const void *bytes, size_t len, const char *name,
                   struct diag *d);

/* The columns, a row for each sample that was added; and the names of the classes, none if the
 * files have numbers. Both start as {0}, and are the caller's. Notes for people are added to note,
 * a line each. Then the reader can only be freed. 0 or -ENOMEM.
 *
 * ret->n is 0, and a note says why, if the files turned out to have no boxes but polygons, poses or
 * other lines: then the samples have no such fields. YOLO only. */
int box_reader_finish(struct box_reader *reader, struct value_columns *ret,
                      struct box_classes *ret_classes, struct text *note);

void box_reader_free(struct box_reader *reader); /* of NULL too */

static inline void box_reader_freep(struct box_reader **reader)
{
    box_reader_free(*reader);
}
#define AUTO_BOX_READER AUTO(box_reader_freep)

/* Names of YOLO's classes. A file called *.yaml or *.yml has them behind the key `names`, as a list
 * or a map from numbers, in block or flow style; no such key: no names. Every other file
 * (obj.names, classes.txt) has the name of class 0 in its first line, and so on; a blank line names
 * none. ret starts as {0}. 0, -ENOMEM, or -EBADMSG with file and line in d: `names` is something
 * else, or malformed. */
int yolo_names(const void *bytes, size_t len, const char *name, struct box_classes *ret,
               struct diag *d);

#endif
