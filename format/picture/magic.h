/* What a file is, by its first bytes: kinds of pictures that are known, not all of which are
 * decoded. */
#ifndef EPOCHFS_FORMAT_PICTURE_MAGIC_H
#define EPOCHFS_FORMAT_PICTURE_MAGIC_H

#include <stddef.h>
#include <stdint.h>

enum picture_format {
    PICTURE_NONE, /* no picture that is known */
    PICTURE_JPEG,
    PICTURE_PNG,
    PICTURE_GIF,
    PICTURE_BMP,
    PICTURE_WEBP,
    PICTURE_TIFF,
    N_PICTURE_FORMATS,
};

/* head: the first bytes of a file of len bytes; PICTURE_MAGIC_SIZE of them are enough. */
#define PICTURE_MAGIC_SIZE 12
enum picture_format picture_format_of(const void *head, uint64_t len);

/* The kind that files of that extension have, without a dot, in any case. */
enum picture_format picture_format_of_ext(const char *ext);

/* Its name for people: "JPEG". */
const char *picture_format_name(enum picture_format format);

#endif
