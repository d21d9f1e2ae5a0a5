/* A decoder gives rows; they are scaled and cut while they come, in the frame of the stored
 * picture; what remains is small, and is turned at the end. So orientation costs nothing, and
 * turned pictures have the same pixels as if they had been turned first. */
#include "format/picture/picture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/picture/exif.h"
#include "format/picture/magic.h"
#include "format/picture/parts.h"

#define SCALING "scaling 1" /* the next number when other bytes come out of the same pixels */

#ifndef HAVE_WEBP
static bool webp_is_ours(const uint8_t *head, size_t len)
{
    return len >= 12 && !memcmp(head, "RIFF", 4) && !memcmp(head + 8, "WEBP", 4);
}

static int webp_refused(struct picture_job *job)
{
    return diag_set(job->d, -EOPNOTSUPP,
                    "%s: expected a picture that this build decodes, got WebP; build epochfs with "
                    "libwebp",
                    job->file->name);
}

const struct picture_decoder picture_webp = {"WebP", webp_is_ours, webp_refused, NULL};
#endif

static const struct picture_decoder *const decoders[] = {&picture_jpeg, &picture_png,
                                                         &picture_webp};

static const struct picture_decoder *decoder_of(const uint8_t *head, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(decoders); i++)
        if (decoders[i]->is_ours(head, len))
            return decoders[i];
    return NULL;
}

bool picture_is(const uint8_t *head, size_t len)
{
    return decoder_of(head, len);
}

void picture_add_versions(struct text *t)
{
    for (size_t i = 0; i < ARRAY_LEN(decoders); i++) {
        if (!decoders[i]->add_version)
            continue;
        decoders[i]->add_version(t);
        text_add(t, ", ");
    }
    text_add(t, "%s", SCALING);
}

/* ---- which pixels remain ---- */

/* Where `length` of n pixels around the middle begin: n/2 - length/2, halves to the even side, as
 * Python's round() has it. */
static uint64_t centre(uint64_t n, uint64_t length)
{
    uint64_t twice = n - length, start = twice / 2;

    return start + (twice % 2 ? start % 2 : 0);
}

void picture_centre_cut(uint32_t height, uint32_t width, uint32_t made_height, uint32_t made_width,
                        uint32_t short_side, struct picture_cut *ret)
{
    uint64_t h = height, w = width;
    bool by_height = short_side ? h <= w : h * made_width <= w * made_height;
    uint64_t y = short_side ? short_side : made_height, x = short_side ? short_side : made_width;

    *ret = (struct picture_cut){.height = height,
                                .width = width,
                                .scaled_height = by_height ? y : x * h / w,
                                .scaled_width = by_height ? y * w / h : x,
                                .made_height = made_height,
                                .made_width = made_width};
    ret->start_y = centre(ret->scaled_height, made_height);
    ret->start_x = centre(ret->scaled_width, made_width);
}

static void picture_axes(const struct picture_cut *cut, uint64_t height, uint64_t width,
                         struct axis_fit *ret_x, struct axis_fit *ret_y)
{
    *ret_x = (struct axis_fit){width,        cut->left,      cut->width, cut->scaled_width,
                               cut->start_x, cut->made_width};
    *ret_y = (struct axis_fit){height,       cut->top,        cut->height, cut->scaled_height,
                               cut->start_y, cut->made_height};
}

static void flip(struct axis_fit *axis)
{
    axis->first = axis->source - axis->first - axis->size;
    axis->start = axis->scaled - axis->length - axis->start;
}

/* The same cut, of the picture as it is stored. */
static void fit_stored(const struct picture_job *job, uint64_t width, uint64_t height,
                       struct axis_fit *ret_x, struct axis_fit *ret_y)
{
    bool swaps = orientation_swaps(job->orientation);

    picture_axes(&job->cut, swaps ? width : height, swaps ? height : width, swaps ? ret_y : ret_x,
                 swaps ? ret_x : ret_y);
    if (orientation_flips_x(job->orientation))
        flip(ret_x);
    if (orientation_flips_y(job->orientation))
        flip(ret_y);
}

/* The most that leaves at least as many pixels as are needed, so that nothing is scaled up. */
static unsigned reduction(const struct axis_fit *x, const struct axis_fit *y, unsigned most)
{
    unsigned n = most;

    while (n > 1 && (x->size / n < x->scaled || y->size / n < y->scaled))
        n /= 2;
    return n;
}

int picture_begin(struct picture_job *job, uint64_t width, uint64_t height, unsigned orientation,
                  unsigned most, unsigned *ret_reduced)
{
    bool swaps = orientation_swaps(orientation);
    struct pixel_rows dst;
    struct axis_fit x, y;
    uint64_t pixels = 0;
    int r;

    if (!width || !height || width > PICTURE_SOURCE_SIDE_MAX || height > PICTURE_SOURCE_SIDE_MAX ||
        !checked_mul(width, height, &pixels) || pixels > PICTURE_PIXELS_MAX)
        return diag_set(job->d, -EFBIG,
                        "%s: expected a picture of 1 to %llu pixels, at most %u on a side, got "
                        "%llu x %llu",
                        job->file->name, (unsigned long long)PICTURE_PIXELS_MAX,
                        PICTURE_SOURCE_SIDE_MAX, (unsigned long long)width,
                        (unsigned long long)height);
    job->orientation = orientation;
    r = job->chooser->choose(job->chooser->ctx, (uint32_t)(swaps ? width : height),
                             (uint32_t)(swaps ? height : width), &job->cut, &job->ret);
    if (r < 0)
        return r;
    fit_stored(job, width, height, &x, &y);
    dst = job->ret;
    if (orientation != ORIENTATION_AS_STORED) {
        job->stored = malloc((size_t)y.length * x.length * 3);
        if (!job->stored)
            return -ENOMEM;
        dst = (struct pixel_rows){job->stored, (ptrdiff_t)x.length * 3, false};
    }
    *ret_reduced = reduction(&x, &y, most);
    return scaler_init(&job->scaler, &x, &y, *ret_reduced, &dst);
}

int picture_too_large(const struct picture_job *job, uint64_t bytes)
{
    return diag_set(
        job->d, -EFBIG,
        "%s: expected a picture that takes at most %llu bytes of memory, got one of %llu",
        job->file->name, (unsigned long long)PICTURE_MEMORY_MAX, (unsigned long long)bytes);
}

/* ---- turning ---- */

static void picture_turn(const struct picture_job *job)
{
    bool swaps = orientation_swaps(job->orientation);
    uint32_t made_height = job->cut.made_height, made_width = job->cut.made_width;
    uint32_t width = swaps ? made_height : made_width, height = swaps ? made_width : made_height;

    for (uint32_t y = 0; y < made_height; y++)
        for (uint32_t x = 0; x < made_width; x++) {
            uint8_t *dst = job->ret.rgb + y * job->ret.row_step +
                           (size_t)(job->ret.is_mirrored ? made_width - 1 - x : x) * 3;
            uint32_t from_x = swaps ? y : x, from_y = swaps ? x : y;

            if (orientation_flips_x(job->orientation))
                from_x = width - 1 - from_x;
            if (orientation_flips_y(job->orientation))
                from_y = height - 1 - from_y;
            memcpy(dst, job->stored + ((size_t)from_y * width + from_x) * 3, 3);
        }
}

static int unknown(const struct picture_file *file, struct diag *d)
{
    enum picture_format format = picture_format_of(file->bytes, file->len);
    char found[3 * 4 + 1] = "";

    if (format != PICTURE_NONE)
        return diag_set(d, -EBADMSG, "%s: expected a JPEG, PNG or WebP picture, got %s", file->name,
                        picture_format_name(format));
    for (size_t i = 0; i < 4 && i < file->len; i++)
        snprintf(found + 3 * i, 4, " %02x", file->bytes[i]);
    return diag_set(d, -EBADMSG, "%s: expected a JPEG, PNG or WebP picture, got %s%s", file->name,
                    file->len ? "bytes" : "no bytes", found);
}

static int picture_do(struct picture_job *job)
{
    const struct picture_decoder *decoder = decoder_of(job->file->bytes, job->file->len);
    int r;

    if (!decoder)
        return unknown(job->file, job->d);
    r = decoder->decode(job);
    if (r == 0 && job->stored)
        picture_turn(job);
    free(job->stored);
    scaler_release(&job->scaler);
    return r;
}

int picture_decode_part(const struct picture_file *file, const struct picture_chooser *chooser,
                        struct diag *d)
{
    return picture_do(&(struct picture_job){.file = file, .d = d, .chooser = chooser});
}

int picture_decode_numbers(const struct picture_file *file, const struct picture_chooser *chooser,
                           struct diag *d)
{
    return picture_do(
        &(struct picture_job){.file = file, .d = d, .chooser = chooser, .as_numbers = true});
}

/* The middle of a picture, of the size that is wanted. */
struct middle {
    uint32_t height, width;
    uint8_t *pixels;
};

static int choose_middle(void *ctx, uint32_t height, uint32_t width, struct picture_cut *ret_cut,
                         struct pixel_rows *ret_rows)
{
    const struct middle *middle = ctx;

    picture_centre_cut(height, width, middle->height, middle->width, 0, ret_cut);
    *ret_rows = (struct pixel_rows){middle->pixels, (ptrdiff_t)middle->width * 3, false};
    return 0;
}

int picture_decode(const struct picture_file *file, uint32_t height, uint32_t width, uint8_t *ret,
                   struct diag *d)
{
    struct middle middle = {height, width, ret};

    return picture_decode_part(file, &(struct picture_chooser){choose_middle, &middle}, d);
}

/* ---- arrays ---- */

/* Is nothing scaled? Then each made pixel is a pixel of the array. */
static bool picture_cut_is_copy(const struct picture_cut *cut)
{
    return cut->scaled_height == cut->height && cut->scaled_width == cut->width;
}

static void picture_copy_array(const struct picture_array *array, const struct picture_cut *cut,
                               const struct pixel_rows *ret)
{
    const size_t colour = array->colour_step, last = (cut->made_width - 1) * array->pixel_step;
    const ptrdiff_t step = (ptrdiff_t)array->pixel_step * (ret->is_mirrored ? -1 : 1);

    for (uint32_t y = 0; y < cut->made_height; y++) {
        const uint8_t *from = array->bytes + (cut->top + cut->start_y + y) * array->row_step +
                              (cut->left + cut->start_x) * array->pixel_step +
                              (ret->is_mirrored ? last : 0);
        uint8_t *to = ret->rgb + y * ret->row_step;

        if (step == 3 && colour == 1) {
            memcpy(to, from, (size_t)cut->made_width * 3);
            continue;
        }
        for (uint32_t x = 0; x < cut->made_width; x++, from += step, to += 3) {
            to[0] = from[0];
            to[1] = from[colour];
            to[2] = from[2 * colour];
        }
    }
}

int picture_cut_array(const struct picture_array *array, const struct picture_cut *cut,
                      const struct pixel_rows *ret)
{
    AUTO_SCALER struct scaler scaler = {0};
    AUTO_FREE uint8_t *row = NULL;
    struct axis_fit x, y;

    if (picture_cut_is_copy(cut)) {
        picture_copy_array(array, cut, ret);
        return 0;
    }
    row = calloc((size_t)array->width + 1, PIXEL_BYTES);
    picture_axes(cut, array->height, array->width, &x, &y);
    if (!row || scaler_init(&scaler, &x, &y, 1, ret) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < array->height && scaler.ready < cut->made_height; i++) {
        const uint8_t *from = array->bytes + i * array->row_step;

        for (uint32_t k = 0; k < array->width; k++)
            for (unsigned c = 0; c < 3; c++)
                row[k * PIXEL_BYTES + c] = from[k * array->pixel_step + c * array->colour_step];
        scaler_row(&scaler, row);
    }
    return 0;
}
