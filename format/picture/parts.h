/* A picture on its way from its file to its array, and what decodes it. Only this room includes
 * it. */
#ifndef EPOCHFS_FORMAT_PICTURE_PARTS_H
#define EPOCHFS_FORMAT_PICTURE_PARTS_H

#include "format/picture/picture.h"
#include "format/picture/scale.h"

/* Bounds on what a file may ask for, checked before any memory is taken: */
#ifndef PICTURE_PIXELS_MAX
#define PICTURE_PIXELS_MAX (UINT64_C(1) << 28)
#endif
/* Bytes that a decoder holds: most hold a few rows, but pictures that come in several passes are
 * held as a whole. */
#ifndef PICTURE_MEMORY_MAX
#define PICTURE_MEMORY_MAX (UINT64_C(1) << 28)
#endif

struct picture_job {
    const struct picture_file *file;
    struct diag *d;
    const struct picture_chooser *chooser;
    bool as_numbers; /* see picture_decode_numbers() */
    /* From picture_begin() on: */
    struct picture_cut cut;
    struct pixel_rows ret; /* cut.made_height of cut.made_width pixels */
    unsigned orientation;
    uint8_t *stored; /* what is wanted, as stored: not turned yet; owned. NULL: ret */
    struct scaler scaler;
};

struct picture_decoder {
    const char *format;
    bool (*is_ours)(const uint8_t *head, size_t len);
    /* Decode: picture_begin(), then scaler_row() with all rows from the top. 0 or -errno with the
     * reason in job->d. */
    int (*decode)(struct picture_job *job);
    void (*add_version)(struct text *t);
};

extern const struct picture_decoder picture_jpeg, picture_png, picture_webp;

/* The picture has that size, as stored, and is to be turned. most: how much smaller the decoder can
 * make it by itself, a power of two; *ret_reduced is what it is to do. 0, -EFBIG, -ENOMEM, or what
 * the chooser returns. */
int picture_begin(struct picture_job *job, uint64_t width, uint64_t height, unsigned orientation,
                  unsigned most, unsigned *ret_reduced);

/* The picture cannot be held in memory: it would take that many bytes. -EFBIG */
int picture_too_large(const struct picture_job *job, uint64_t bytes);

#endif
