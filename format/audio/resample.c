/* Rates by libsamplerate. It gives floor(frames x ratio), sometimes one less, and drops what its
 * filter has not seen the end of; zeros behind the end make it exact.
 *
 * Where one rate divides the other, each made frame is at the same phase of the filter. Then parts
 * of a long input can be made side by side, as channels, which shares the work of finding the
 * filter's numbers: the same bytes in a third of the time. */
#include <errno.h>
#include <samplerate.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/audio/parts.h"

#define ZEROS      64 /* frames behind the end, and so many of the made */
#define PARTS      12
#define PART_LEAST 512 /* made frames of a part: fewer are not worth it */
#define REACH      160 /* made frames that a filter reaches to each side, at most */

static int resample_all(const struct audio_spec *spec, const float *in, uint64_t frames,
                        double ratio, uint32_t channels, uint64_t made, float *ret)
{
    SRC_DATA data = {.data_in = in,
                     .data_out = ret,
                     .input_frames = (long)frames,
                     .output_frames = (long)made,
                     .src_ratio = ratio};
    int type = spec->medium ? SRC_SINC_MEDIUM_QUALITY : SRC_SINC_BEST_QUALITY;
    int r = src_simple(&data, type, (int)channels);

    if (r != 0)
        return r == 1 ? -ENOMEM : -EIO; /* SRC_ERR_MALLOC_FAILED */
    return data.output_frames_gen == (long)made ? 0 : -EIO;
}

/* Parts of the input side by side, each with what the filter sees before and behind it. */
static int resample_parts(const struct audio_spec *spec, const float *in, uint64_t frames,
                          uint32_t step, uint64_t made, float *ret)
{
    uint64_t part = ceil_div(made, PARTS), n = part + 2 * REACH, n_in = n * step;
    AUTO_FREE float *side = calloc(n_in * PARTS, sizeof(*side));
    AUTO_FREE float *out = malloc(n * PARTS * sizeof(*out));
    int r;

    if (!side || !out)
        return -ENOMEM;
    for (uint64_t k = 0; k < PARTS; k++)
        for (uint64_t i = 0; i < n_in; i++) {
            uint64_t at = k * part * step + i; /* REACH made frames further on than the input */

            if (at >= REACH * (uint64_t)step && at - REACH * (uint64_t)step < frames)
                side[i * PARTS + k] = in[at - REACH * (uint64_t)step];
        }
    r = resample_all(spec, side, n_in, 1.0 / step, PARTS, n - ZEROS, out);
    for (uint64_t i = 0; i < made && r == 0; i++)
        ret[i] = out[(i % part + REACH) * PARTS + i / part];
    return r;
}

int audio_resample(const struct audio_spec *spec, const char *where, const float *in,
                   uint64_t frames, uint32_t rate, uint32_t channels, uint64_t made, float *ret,
                   struct diag *d)
{
    double ratio = (double)spec->rate / rate;
    uint64_t zeros = ZEROS + rate / spec->rate;
    AUTO_FREE float *padded = NULL;

    if (!src_is_valid_ratio(ratio))
        return diag_set(d, -EOPNOTSUPP,
                        "%s: expected a rate from 1/256 to 256 times %u, got %u; use another rate, "
                        "or audio=native",
                        where, spec->rate, rate);
    if (channels == 1 && rate % spec->rate == 0 && made >= PARTS * PART_LEAST &&
        1.0 / ratio == (double)(rate / spec->rate))
        return resample_parts(spec, in, frames, rate / spec->rate, made, ret);
    padded = calloc((frames + zeros) * channels, sizeof(*padded));
    if (!padded)
        return -ENOMEM;
    memcpy(padded, in, frames * channels * sizeof(*padded));
    return resample_all(spec, padded, frames + zeros, ratio, channels, made, ret);
}

void audio_resampler_versions(struct text *t)
{
    const char *version = src_get_version();

    text_add(t, "%.*s, ", (int)strcspn(version, " "), version);
}
