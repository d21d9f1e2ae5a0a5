/* WAVE audio as Kaldi reads it (feat/wave-reader.cc): 16-bit PCM, little- or big-endian.
 *
 * Other programs may read a file differently. To Kaldi, chunks after the data are not part of the
 * object, odd chunks have no pad byte, and some sizes in the header mean "to the end of the
 * file". */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_WAVE_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_WAVE_H

#include "format/kaldi/object/object.h"

struct kaldi_wave {
    bool big_endian;   /* RIFX */
    unsigned channels; /* 1 to 32767 */
    uint32_t rate;     /* samples per second; Kaldi accepts 0 too */
    uint64_t frames;   /* samples per channel that the file has, at least 1 */
    uint64_t data;     /* byte of the blob where the samples begin, interleaved int16 */
    uint64_t end;      /* byte after the last one that Kaldi reads */
};

/* The wave that begins at byte at. 0, -EBADMSG with the reason in d, or -errno. */
int kaldi_wave_measure(struct kaldi_in *in, uint64_t at, struct kaldi_wave *ret, struct diag *d);

/* Write the header that Kaldi's writer makes: format 1, then the data. Sizes that do not fit into
 * 32 bits are FFFFFFFF, "to the end of the file". */
#define KALDI_WAVE_HEADER 44
void kaldi_wave_header(unsigned channels, uint32_t rate, uint64_t frames,
                       uint8_t ret[static KALDI_WAVE_HEADER]);

#endif
