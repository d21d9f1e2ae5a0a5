/* Which picture a text of an annotation means. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_PICTURE_NAMES_H
#define EPOCHFS_FORMAT_ANNOTATIONS_PICTURE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define PICTURE_NONE    UINT32_MAX
#define PICTURE_SEVERAL (UINT32_MAX - 1)

struct picture_names {
    /* The number of the picture that has this name, stem or end of its path; PICTURE_NONE; or
     * PICTURE_SEVERAL: more than one has. The text is any bytes, len may be 0. */
    uint32_t (*find)(const struct picture_names *names, const char *text, size_t len);
};

static inline uint32_t picture_find(const struct picture_names *names, const char *text, size_t len)
{
    return len ? names->find(names, text, len) : PICTURE_NONE;
}

#endif
