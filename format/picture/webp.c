/* WebP by libwebp, in builds that have it: lossy and lossless, alpha dropped. It is decoded as a
 * whole, so its size is bounded by memory. Animations are refused. */
#include <errno.h>
#include <string.h>
#include <webp/decode.h>

#include "format/picture/exif.h"
#include "format/picture/parts.h"

/* The library's words for what it found. */
static const char *status_text(VP8StatusCode status)
{
    switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "it is cut short";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it has a feature that is not known";
    default:
        return "its data is damaged";
    }
}

static int webp_bad(const struct picture_job *job, VP8StatusCode status)
{
    if (status == VP8_STATUS_OUT_OF_MEMORY)
        return -ENOMEM;
    return diag_set(job->d, -EBADMSG, "%s: WebP: %s", job->file->name, status_text(status));
}

static int decode_pixels(struct picture_job *job, WebPDecoderConfig *config)
{
    const size_t width = (size_t)config->input.width, height = (size_t)config->input.height;
    AUTO_FREE uint8_t *pixels = calloc(width * height + 1, PIXEL_BYTES);
    VP8StatusCode status;

    if (!pixels)
        return -ENOMEM;
    config->output.colorspace = MODE_RGBA;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = pixels;
    config->output.u.RGBA.stride = (int)(width * PIXEL_BYTES);
    config->output.u.RGBA.size = width * height * PIXEL_BYTES;
    status = WebPDecode(job->file->bytes, job->file->len, config);
    WebPFreeDecBuffer(&config->output);
    if (status != VP8_STATUS_OK)
        return webp_bad(job, status);
    for (size_t y = 0; y < height; y++)
        scaler_row(&job->scaler, pixels + y * width * PIXEL_BYTES);
    return 0;
}

static int webp_decode(struct picture_job *job)
{
    const struct picture_file *file = job->file;
    WebPDecoderConfig config;
    VP8StatusCode status;
    unsigned reduced;
    uint64_t bytes;
    int r;

    if (!WebPInitDecoderConfig(&config))
        return diag_set(job->d, -EOPNOTSUPP, "%s: WebP: libwebp is of another version", file->name);
    status = WebPGetFeatures(file->bytes, file->len, &config.input);
    if (status != VP8_STATUS_OK)
        return webp_bad(job, status);
    if (config.input.has_animation)
        return diag_set(job->d, -EOPNOTSUPP, "%s: WebP: expected a picture, got an animation",
                        file->name);
    r = picture_begin(job, (uint64_t)config.input.width, (uint64_t)config.input.height,
                      exif_of_webp(file->bytes, file->len), 1, &reduced);
    if (r < 0)
        return r;
    bytes = (uint64_t)config.input.width * (uint64_t)config.input.height * PIXEL_BYTES;
    if (bytes > PICTURE_MEMORY_MAX)
        return picture_too_large(job, bytes);
    return decode_pixels(job, &config);
}

static bool picture_webp_is_ours(const uint8_t *head, size_t len)
{
    return len >= 12 && !memcmp(head, "RIFF", 4) && !memcmp(head + 8, "WEBP", 4);
}

static void webp_add_version(struct text *t)
{
    int v = WebPGetDecoderVersion();

    text_add(t, "libwebp %d.%d.%d", v >> 16, v >> 8 & 255, v & 255);
}

const struct picture_decoder picture_webp = {"WebP", picture_webp_is_ours, webp_decode,
                                             webp_add_version};
