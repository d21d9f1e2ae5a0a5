/* The bytes of a file of audio as an array: float32, from -1 to 1 where whole numbers are used in
 * full, at the file's rate or resampled. WAV, AIFF, AU, SPHERE, FLAC, Ogg Vorbis and Opus by
 * libsndfile; mp3 by libmpg123; rates by libsamplerate. The same bytes on every machine of a kind,
 * for one version of these; PCM and FLAC at their own rate are exact everywhere.
 *
 * All bytes are hostile. Any number of threads. */
#ifndef EPOCHFS_FORMAT_AUDIO_AUDIO_H
#define EPOCHFS_FORMAT_AUDIO_AUDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"

#define AUDIO_RATE_MIN     1000
#define AUDIO_RATE_MAX     384000
#define AUDIO_CHANNELS_MAX 64
#define AUDIO_MAX_BYTES    (UINT64_C(1) << 30) /* of a file that is made an array */
#ifndef AUDIO_NUMBERS_MAX
#define AUDIO_NUMBERS_MAX                                                                          \
    (UINT64_C(1) << 28) /* of an array, or of the frames that it is made of                        \
                         */
#endif

/* What is wanted: -o audio=. */
struct audio_spec {
    uint32_t rate; /* 0: the file's */
    bool mono;     /* one channel, the mean of all */
    bool medium;   /* the faster of two resamplers */
};

/* What a file has. */
struct audio_info {
    uint64_t frames; /* that can be decoded */
    uint32_t rate;
    uint32_t channels; /* 1 to AUDIO_CHANNELS_MAX */
    bool is_cut;       /* its header says that there are more */
};

/* What of a file is made an array. */
struct audio_part {
    uint64_t first, frames;
    uint32_t channel; /* this one alone, from 1; 0: all */
};

/* Bytes of a file. */
struct audio_file {
    const char *where; /* in messages */
    uint64_t size;
    /* Read bytes [off, off + len) of it. 0 or -errno with the reason in d. */
    int (*read)(void *ctx, uint64_t off, void *dst, size_t len, struct diag *d);
    void *ctx;
};

/* Why this build makes no arrays of audio, naming the packages that it lacks; NULL: it does. */
const char *audio_lacks(void);

/* "RATE[:mono[:medium]]" or "native[:mono]". false: it is no such text. */
bool audio_spec_parse(const char *text, struct audio_spec *ret);

/* Do files of that extension have audio? */
bool audio_is_ext(const char *ext);

/* Do files that begin so have audio, as far as these 4 bytes can say? */
bool audio_begins(const uint8_t head[static 4]);

/* What a file has, by its header, and by all of it only if that does not say. It may be more than
 * an array may have. 0; with the reason in d: -EBADMSG it is no audio, or damaged; -EOPNOTSUPP a
 * kind that is not decoded; an error of read(); -ENOMEM. */
int audio_measure(const struct audio_file *file, struct audio_info *ret, struct diag *d);

/* Frames that are made of so many of a file of that rate. */
uint64_t audio_made_frames(const struct audio_spec *spec, uint64_t frames, uint32_t rate);

/* 0, or -EFBIG with the reason in d: an array may not have so many numbers. */
int audio_check(const char *where, uint64_t frames, uint32_t channels, struct diag *d);

/* Make the array of a part of a file, the same as that part of what all of it is, at the rate of
 * the file: with mono [made frames], otherwise [channels][made frames]. info: rate and channels of
 * the array. Where a decoder can begin anywhere (WAV, FLAC and others that are no mp3 or Ogg)
 * nothing else is read. Errors as those of audio_measure(), and -EFBIG. */
int audio_make(const struct audio_file *file, const struct audio_spec *spec,
               const struct audio_info *info, const struct audio_part *part, float *ret,
               struct diag *d);

/* Add the names and versions of what decodes and resamples, with commas. */
void audio_add_versions(struct text *t);

#endif
