/* The lists of CelebA, which say of each picture its attributes, who it is, its split, its box and
 * five points; and the CSV files with the same columns.
 *
 * A text begins with the number of its rows and the names of its columns, except the identities
 * and splits, which have rows only. CSV begins with the names. Pictures are found by name, whatever
 * the order of rows. All of it is hostile. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_CELEBA_H
#define EPOCHFS_FORMAT_ANNOTATIONS_CELEBA_H

#include "base/text.h"
#include "format/annotations/picture_names.h"
#include "format/annotations/value_columns.h"

struct blob;
struct diag;

enum celeba_list {
    CELEBA_ATTR,            /* attr: uint8 [k], 1: it has the attribute, 0: it has not */
    CELEBA_IDENTITY,        /* identity: int64 */
    CELEBA_PARTITION,       /* partition: int64, enum celeba_partition */
    CELEBA_BBOX,            /* bbox: int64 [4], x, y, width, height, of the pictures in the wild */
    CELEBA_LANDMARKS,       /* landmarks: int64 [10], x and y of five points; the same, */
    CELEBA_LANDMARKS_ALIGN, /* and those of the aligned pictures */
};

enum celeba_partition { CELEBA_TRAIN, CELEBA_VALID, CELEBA_TEST };

/* Which list a file of that path is, by its name: list_attr_celeba.txt or .csv and so on. false: it
 * is none. */
bool celeba_list_is(const char *path, enum celeba_list *ret);

/* Read a list; file: its name, for messages and its extension. Adds
 * a column to *ret, whose rows are the n_pictures pictures in the order of their numbers; a picture
 * without a row is a hole. attr_names: of CELEBA_ATTR, a JSON list of texts is appended.
 * *ret_unmatched: rows that name no picture. 0; -EBADMSG with file and line in d: malformed, a
 * count that differs, a picture with two rows, or a name of two pictures; -EDOM: its first line is
 * malformed and names no picture, so it is another list; -ENOMEM; and others of blob_read(). */
int celeba_read(const struct blob *blob, const char *file, enum celeba_list list,
                const struct picture_names *names, size_t n_pictures, struct value_columns *ret,
                size_t *ret_unmatched, struct text *attr_names, struct diag *d);

#endif
