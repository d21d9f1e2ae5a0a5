#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "format/audio/parts.h"

#define MAKING      "audio 1" /* the next number when other numbers come out of the same frames */
#define AT_ONCE     4096      /* numbers that are decoded together */
#define FRAMES_MOST (UINT64_C(1) << 40)

bool audio_is_ext(const char *ext)
{
    static const char *const known[] = {"wav",  "flac", "ogg", "opus", "mp3", "aif",
                                        "aiff", "au",   "sph", "oga",  "wave"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcasecmp(ext, known[i]))
            return true;
    return false;
}

bool audio_spec_parse(const char *text, struct audio_spec *ret)
{
    struct audio_spec spec = {0};
    size_t n = strcspn(text, ":"), digits = strspn(text, "0123456789");

    if (n == 6 && !memcmp(text, "native", 6))
        spec.rate = 0;
    else if (n && digits == n && n <= 6 && *text != '0')
        spec.rate = (uint32_t)strtoul(text, NULL, 10);
    else
        return false;
    if (digits && (spec.rate < AUDIO_RATE_MIN || spec.rate > AUDIO_RATE_MAX))
        return false;
    text += n;
    spec.mono = !strncmp(text, ":mono", 5);
    text += spec.mono ? 5 : 0;
    spec.medium = digits && !strcmp(text, ":medium");
    text += spec.medium ? strlen(":medium") : 0;
    if (*text)
        return false;
    *ret = spec;
    return true;
}

uint64_t audio_made_frames(const struct audio_spec *spec, uint64_t frames, uint32_t rate)
{
    return spec->rate && rate && frames <= FRAMES_MOST ? ceil_div(frames * spec->rate, rate)
                                                       : frames;
}

int audio_check(const char *where, uint64_t frames, uint32_t channels, struct diag *d)
{
    return frames <= AUDIO_NUMBERS_MAX / channels
               ? 0
               : diag_set(d, -EFBIG, "%s: expected audio of at most %llu numbers, got more", where,
                          (unsigned long long)AUDIO_NUMBERS_MAX);
}

#ifndef HAVE_AUDIO

const char *audio_lacks(void)
{
    return "libsndfile1-dev, libmpg123-dev and libsamplerate0-dev";
}

int audio_measure(const struct audio_file *file, struct audio_info *ret, struct diag *d)
{
    (void)ret;
    return diag_set(d, -EOPNOTSUPP, "%s: this build decodes no audio: it lacks %s", file->where,
                    audio_lacks());
}

int audio_make(const struct audio_file *file, const struct audio_spec *spec,
               const struct audio_info *info, const struct audio_part *part, float *ret,
               struct diag *d)
{
    struct audio_info none;

    (void)spec;
    (void)info;
    (void)part;
    (void)ret;
    return audio_measure(file, &none, d);
}

void audio_add_versions(struct text *t)
{
    text_add(t, MAKING);
}

#else

const char *audio_lacks(void)
{
    return NULL;
}

void audio_add_versions(struct text *t)
{
    audio_reader_versions(t);
    audio_resampler_versions(t);
    text_add(t, MAKING);
}

/* ---- the length ---- */

/* All frames that can be decoded; of more than an array may have UINT64_MAX. */
static int audio_count(const struct audio_file *file, struct audio_info *info, struct diag *d)
{
    AUTO_FREE float *frame = calloc(AT_ONCE, sizeof(*frame));
    struct audio_reader *reader;
    int64_t n;
    int r = frame ? audio_open(file, &reader, info, d) : -ENOMEM;

    if (r < 0)
        return r;
    info->frames = 0;
    while ((n = audio_read(reader, frame, AT_ONCE / info->channels)) > 0 &&
           info->frames < AUDIO_NUMBERS_MAX)
        info->frames += (uint64_t)n;
    audio_close(reader);
    if (n > 0)
        info->frames = UINT64_MAX;
    return n < 0 ? (int)n : 0;
}

/* Is the length of the header to be doubted? 1: all is to be decoded, and *ret_cut says whether the
 * file is cut. */
static int audio_doubts(const struct audio_file *file, uint64_t frames, bool *ret_cut,
                        struct diag *d)
{
    enum audio_container container;
    uint64_t start;
    int r = audio_find_container(file, &container, &start, d);

    *ret_cut = false;
    if (r < 0)
        return r;
    if (container == AUDIO_MP3) {
        r = audio_mp3_is_whole(file, start, d);
        *ret_cut = r == -EBADMSG;
        return r == -EBADMSG ? 1 : r < 0 ? r : !r;
    }
    if (container == AUDIO_FLAC) {
        r = audio_flac_is_whole(file, start, d);
        *ret_cut = r == 0;
        return r < 0 ? r : !r || frames == UINT64_MAX;
    }
    if (container == AUDIO_OGG) {
        r = audio_ogg_is_whole(file, d);
        *ret_cut = r == 0;
        if (r == -ENODATA)
            return 1;
        return r < 0 ? r : !r || frames == UINT64_MAX;
    }
    return frames == UINT64_MAX;
}

int audio_measure(const struct audio_file *file, struct audio_info *ret, struct diag *d)
{
    struct audio_info info;
    struct audio_reader *reader;
    bool is_cut;
    int r = audio_open(file, &reader, &info, d);

    if (r < 0)
        return r;
    audio_close(reader);
    r = audio_doubts(file, info.frames, &is_cut, d);
    if (r == 1)
        r = audio_count(file, &info, d);
    if (r < 0)
        return r;
    info.is_cut = info.is_cut || is_cut;
    *ret = info;
    return 0;
}

/* ---- the array ---- */

/* What a frame of the array with one channel is. */
static float one_channel(const float *frame, uint32_t channels, uint32_t channel)
{
    double sum = 0;

    if (channel)
        return frame[channel - 1];
    for (uint32_t c = 0; c < channels; c++)
        sum += (double)frame[c];
    return (float)(sum / channels);
}

/* Decode frames into ret, [frames][channels], or [frames] with mono or of one channel. */
static int audio_decode(const struct audio_file *file, const struct audio_info *info, bool mono,
                        const struct audio_part *part, float *ret, struct diag *d)
{
    AUTO_FREE float *some = calloc(AT_ONCE, sizeof(*some));
    struct audio_reader *reader;
    struct audio_info found;
    uint64_t done = 0;
    int64_t n = 1;
    bool is_one, is_same;
    int r = some ? audio_open(file, &reader, &found, d) : -ENOMEM;

    if (r < 0)
        return r;
    is_one = found.channels > 1 && (mono || part->channel);
    is_same = found.rate == info->rate &&
              (part->channel ? part->channel <= found.channels : found.channels == info->channels);
    if (is_same && part->first)
        r = audio_seek(reader, part->first);
    while (r == 0 && is_same && n > 0 && done < part->frames) {
        float *to = is_one ? some : ret + done * found.channels;

        n = audio_read(reader, to, min_u64(part->frames - done, AT_ONCE / found.channels));
        for (int64_t i = 0; i < n && is_one; i++)
            ret[done + (uint64_t)i] =
                one_channel(some + i * found.channels, found.channels, part->channel);
        done += n > 0 ? (uint64_t)n : 0;
    }
    audio_close(reader);
    if (r < 0 || n < 0)
        return r < 0 ? r : (int)n;
    return done == part->frames
               ? 0
               : diag_set(d, -EBADMSG, "%s: expected %llu frames of audio, got %llu: it is damaged",
                          file->where, (unsigned long long)part->frames, (unsigned long long)done);
}

int audio_make(const struct audio_file *file, const struct audio_spec *spec,
               const struct audio_info *info, const struct audio_part *part, float *ret,
               struct diag *d)
{
    uint32_t channels = spec->mono ? 1 : info->channels;
    uint64_t frames = part->frames;
    bool resamples = spec->rate && spec->rate != info->rate;
    uint64_t made = audio_made_frames(spec, frames, info->rate), numbers = frames * channels;
    AUTO_FREE float *in = NULL;
    AUTO_FREE float *out = NULL;
    int r = audio_check(file->where, frames, info->channels, d);

    if (r == 0)
        r = audio_check(file->where, made, channels, d);
    if (r < 0 || !frames)
        return r;
    in = resamples || channels > 1 ? malloc(numbers * sizeof(*in)) : NULL;
    out = resamples && channels > 1 ? malloc(made * channels * sizeof(*out)) : NULL;
    if ((!in && (resamples || channels > 1)) || (!out && resamples && channels > 1))
        return -ENOMEM;
    r = audio_decode(file, info, spec->mono, part, in ? in : ret, d);
    if (r == 0 && resamples)
        r = audio_resample(spec, file->where, in, frames, info->rate, channels, made,
                           out ? out : ret, d);
    if (r < 0 || channels == 1)
        return r;
    for (uint32_t c = 0; c < channels; c++)
        for (uint64_t i = 0; i < made; i++)
            ret[c * made + i] = (out ? out : in)[i * channels + c];
    return 0;
}

#endif
