/* Scaling with antialiasing, row by row: each axis has a triangle filter of its own, made of
 * integers. A decoder gives the rows of a picture from the top; what is held of it is a few rows of
 * what is wanted, however large the picture is. */
#ifndef EPOCHFS_FORMAT_PICTURE_SCALE_H
#define EPOCHFS_FORMAT_PICTURE_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

#define PIXEL_BYTES                                                                                \
    4 /* of a row that is given: red, green, blue, and one that counts for nothing */

/* One axis: a part of the source, `size` pixels from `first` on, is scaled to `scaled` pixels, of
 * which `length` remain from `start` on. Pixels that are not in the part count for nothing. Bounds:
 * first + size <= source <= 2^20, scaled < 2^33. */
struct axis_fit {
    uint64_t source, first, size, scaled, start;
    uint32_t length;
};

/* The pixels that a pixel is made of: first, first + 1, ... with their weights, whose sum is
 * 1 << WEIGHT_BITS. */
struct taps {
    uint32_t first, n;
    uint32_t at; /* of its weights; those that make n even are 0 */
};

struct axis {
    uint32_t length;
    struct taps *taps; /* [length], owned */
    int16_t *weight;   /* owned */
};

/* Where pixels of three bytes go: row y begins at rgb + y * row_step. */
struct pixel_rows {
    uint8_t *rgb;
    ptrdiff_t row_step;
    bool is_mirrored; /* each row from right to left */
};

struct scaler {
    struct axis x, y;
    uint32_t row;   /* that is given next */
    uint32_t ready; /* wanted rows that are done */
    uint32_t slots; /* rows that are being summed up */
    int16_t *line;  /* [2][x.length][PIXEL_BYTES]: rows that were given, scaled along x; owned */
    int32_t *sum;   /* [slots][x.length][PIXEL_BYTES]; owned */
    struct pixel_rows dst;
};

/* reduced: the rows that are given have one pixel for reduced x reduced of the source. dst, which
 * gets y->length rows of x->length pixels, outlives the scaler. 0 or -ENOMEM; the scaler is to be
 * released in either case. */
int scaler_init(struct scaler *s, const struct axis_fit *x, const struct axis_fit *y,
                unsigned reduced, const struct pixel_rows *dst);
void scaler_release(struct scaler *s);   /* takes zeros */
#define AUTO_SCALER AUTO(scaler_release) /* of a scaler that starts as {0} */

/* Take the next row of the picture, all of whose pixels exist, with one more behind them that
 * can be read. Rows that nothing needs are passed over. */
void scaler_row(struct scaler *s, const uint8_t *row);

/* The pixels that are needed: of rows [y, y_end) those in columns [x, x_end). */
struct scaler_box {
    uint32_t x, x_end, y, y_end;
};
struct scaler_box scaler_needs(const struct scaler *s);

/* Pass over the first rows, which are not needed. */
void scaler_skip(struct scaler *s, uint32_t rows);

#endif
