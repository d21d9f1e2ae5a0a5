/* A decoder gives rows; they are scaled and cut while they come, in the frame of the stored
 * picture; what remains is small, and is turned at the end. So orientation costs nothing, and
 * turned pictures have the same pixels as if they had been turned first. */
#include "format/picture/picture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/picture/exif.h"
#include "format/picture/kind.h"
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

/* The axes of the picture as it is shown: the side that needs the larger scale gets the size that
 * is wanted, the other follows, rounded down, and is cut. */
static void fit_shown(const struct picture_job *job, struct axis_fit *x, struct axis_fit *y)
{
    x->length = job->width;
    y->length = job->height;
    if (y->source * job->width <= x->source * job->height) {
        y->scaled = job->height;
        x->scaled = job->height * x->source / y->source;
    } else {
        x->scaled = job->width;
        y->scaled = job->width * y->source / x->source;
    }
    x->start = centre(x->scaled, x->length);
    y->start = centre(y->scaled, y->length);
}

static void flip(struct axis_fit *axis)
{
    axis->start = axis->scaled - axis->length - axis->start;
}

/* The same cut, of the picture as it is stored. */
static void fit_stored(const struct picture_job *job, uint64_t width, uint64_t height,
                       struct axis_fit *ret_x, struct axis_fit *ret_y)
{
    bool swaps = orientation_swaps(job->orientation);
    struct axis_fit x = {.source = width}, y = {.source = height};

    fit_shown(job, swaps ? &y : &x, swaps ? &x : &y);
    if (orientation_flips_x(job->orientation))
        flip(&x);
    if (orientation_flips_y(job->orientation))
        flip(&y);
    *ret_x = x;
    *ret_y = y;
}

/* The most that leaves at least as many pixels as are needed, so that nothing is scaled up. */
static unsigned reduction(const struct axis_fit *x, const struct axis_fit *y, unsigned most)
{
    unsigned n = most;

    while (n > 1 && (x->source / n < x->scaled || y->source / n < y->scaled))
        n /= 2;
    return n;
}

int picture_begin(struct picture_job *job, uint64_t width, uint64_t height, unsigned orientation,
                  unsigned most, unsigned *ret_reduced)
{
    struct axis_fit x, y;
    uint64_t pixels = 0;
    unsigned n;

    if (!width || !height || width > PICTURE_SOURCE_SIDE_MAX || height > PICTURE_SOURCE_SIDE_MAX ||
        !checked_mul(width, height, &pixels) || pixels > PICTURE_PIXELS_MAX)
        return diag_set(job->d, -EFBIG,
                        "%s: expected a picture of 1 to %llu pixels, at most %u on a side, got "
                        "%llu x %llu",
                        job->file->name, (unsigned long long)PICTURE_PIXELS_MAX,
                        PICTURE_SOURCE_SIDE_MAX, (unsigned long long)width,
                        (unsigned long long)height);
    job->orientation = orientation;
    job->stored = job->ret;
    if (orientation != ORIENTATION_AS_STORED)
        job->stored = malloc((size_t)job->height * job->width * 3);
    if (!job->stored)
        return -ENOMEM;
    fit_stored(job, width, height, &x, &y);
    n = reduction(&x, &y, most);
    *ret_reduced = n;
    return scaler_init(&job->scaler, &x, &y, n, job->stored);
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
    uint32_t width = swaps ? job->height : job->width, height = swaps ? job->width : job->height;
    uint8_t *dst = job->ret;

    for (uint32_t y = 0; y < job->height; y++)
        for (uint32_t x = 0; x < job->width; x++, dst += 3) {
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
    enum picture_kind format = picture_kind_of(file->bytes, file->len);
    char found[3 * 4 + 1] = "";

    if (format != PICTURE_NONE)
        return diag_set(d, -EBADMSG, "%s: expected a JPEG, PNG or WebP picture, got %s", file->name,
                        picture_kind_name(format));
    for (size_t i = 0; i < 4 && i < file->len; i++)
        snprintf(found + 3 * i, 4, " %02x", file->bytes[i]);
    return diag_set(d, -EBADMSG, "%s: expected a JPEG, PNG or WebP picture, got %s%s", file->name,
                    file->len ? "bytes" : "no bytes", found);
}

int picture_decode(const struct picture_file *file, uint32_t height, uint32_t width, uint8_t *ret,
                   struct diag *d)
{
    const struct picture_decoder *decoder = decoder_of(file->bytes, file->len);
    struct picture_job job = {.file = file, .d = d, .height = height, .width = width, .ret = ret};
    int r;

    if (!decoder)
        return unknown(file, d);
    r = decoder->decode(&job);
    if (r == 0 && job.stored != ret)
        picture_turn(&job);
    if (job.stored != ret)
        free(job.stored);
    scaler_release(&job.scaler);
    return r;
}
