/* What the files of this room share. Only they include this. */
#ifndef EPOCHFS_FORMAT_AUDIO_PARTS_H
#define EPOCHFS_FORMAT_AUDIO_PARTS_H

#include "format/audio/audio.h"

/* ---- decode.c: a file that is open ---- */

struct audio_reader;

/* -errno as of audio_measure(). *ret_info: frames may be UINT64_MAX, not known. */
int audio_open(const struct audio_file *file, struct audio_reader **ret,
               struct audio_info *ret_info, struct diag *d);
void audio_close(struct audio_reader *reader); /* takes NULL */

/* Read up to n frames, whose channels alternate. Returns how many: fewer at the end only, or where
 * the file is damaged; or an error of read(). */
int64_t audio_read(struct audio_reader *reader, float *ret, size_t n);

/* Go on to a frame: what follows is as if all before it had been read, which it is where a decoder
 * would otherwise begin with other numbers. 0; 1: the file ends before; or an error of read(). */
int audio_seek(struct audio_reader *reader, uint64_t frame);

void audio_reader_versions(struct text *t);

/* ---- complete.c: what a file is by its first bytes, and is all of it there? ---- */

/* Skips ID3v2 tags. 0 or an error of read(). */
enum audio_container { AUDIO_OTHER, AUDIO_MP3, AUDIO_FLAC, AUDIO_OGG };
int audio_find_container(const struct audio_file *file, enum audio_container *ret,
                         uint64_t *ret_start, struct diag *d);

/* Does a FLAC file end with a whole frame? 1, 0, or an error of read(). */
int audio_flac_is_whole(const struct audio_file *file, uint64_t start, struct diag *d);

/* Has the last whole page of an Ogg file the mark that its stream ends? 1, 0, -ENODATA: other bytes
 * follow the pages, or an error of read(). */
int audio_ogg_is_whole(const struct audio_file *file, struct diag *d);

/* Does an mp3 file have a header with the number of its frames, and as many bytes as it says and as
 * these take? 1; 0: no such header; -EBADMSG: fewer bytes; or an error of read(). */
int audio_mp3_is_whole(const struct audio_file *file, uint64_t start, struct diag *d);

/* ---- resample.c ---- */

/* in: [frames] of channels that alternate; ret: [made][channels]. where: in messages. 0;
 * -EOPNOTSUPP with the reason in d: such rates are not resampled; or another -errno. */
int audio_resample(const struct audio_spec *spec, const char *where, const float *in,
                   uint64_t frames, uint32_t rate, uint32_t channels, uint64_t made, float *ret,
                   struct diag *d);

void audio_resampler_versions(struct text *t);

#endif
