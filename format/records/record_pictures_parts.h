/* What the files of pictures of records share: record_pictures.c (arrays of the size that is
 * wanted) and record_thumbnails.c. Only they include this. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_PICTURES_PARTS_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_PICTURES_PARTS_H

#include "format/core/plan_fields.h"
#include "format/records/record_made.h"
#include "format/records/record_pictures.h"

#define CHANNELS 3

struct record_pictures {
    struct record_made made; /* first */
    uint32_t height, width;
    /* For plans, of thumbnails: */
    struct picture_source plan_source;
    struct made_counts *plan_counts;   /* may be NULL */
    const struct record_content *mask; /* NULL: there are none */
    struct record_bases *bases;        /* NULL: none are kept */
    /* For thumbnails: */
    const char *ext[RECORD_MADE_SOURCES]; /* [n] of the sources, without a dot */
    struct record_made_array boxed;       /* a crossed box where the picture is bad */
};

static inline struct record_pictures *pictures_of(const struct record_content *c)
{
    return (struct record_pictures *)record_made_of(c);
}

/* Pictures of that size, of n contents. 0 or -ENOMEM. */
int record_pictures_new(const struct format_setup *setup, uint32_t height, uint32_t width,
                        const struct record_content *const *source, unsigned n,
                        struct record_pictures **ret);

/* Type and axes of their arrays. */
struct record_content record_pictures_like(const struct record_pictures *p, bool has_holes);

#endif
