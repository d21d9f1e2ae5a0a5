/* segments of a data directory: which part of a recording an utterance is, as extract-segments cuts
 * it (featbin/extract-segments.cc). One thread. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_SEGMENTS_H
#define EPOCHFS_FORMAT_KALDI_SET_SEGMENTS_H

#include "format/kaldi/table/table.h"

#define SEGMENT_LINE 4096 /* bytes of a line, behind the utterance */

struct kaldi_segments {
    struct blob *blob; /* owned */
    struct kaldi_in in;
    uint64_t at;     /* byte of the next line, or */
    bool is_in_long; /* of what is still to be skipped of one */
    struct key_index_builder *builder;
    struct key_index index; /* utterances, and where the rest of their lines is: start, length */
    bool is_ready;
};

/* What a line says. */
struct kaldi_segment {
    const char *recording;
    double start, end; /* seconds; end -1: that of the recording */
    int channel;       /* -1: none is given */
};

/* Takes blob over, also on error. 0 or -ENOMEM. */
int kaldi_segments_init(struct kaldi_segments *ret, struct blob *blob);
void kaldi_segments_release(struct kaldi_segments *s); /* takes a zeroed one */

/* Index the lines until that time (monotonic_ns()). 1: done, 0: not yet, or -errno. */
int kaldi_segments_step(struct kaldi_segments *s, int64_t until);

/* The line of an utterance, a row of the index. text is what *ret points into. NULL, or what is
 * wrong with it. */
const char *kaldi_segments_line(struct kaldi_segments *s, uint64_t row,
                                char text[static SEGMENT_LINE], struct kaldi_segment *ret);

/* What of a recording it is: the first sample, how many, and the channel from 1 (0: the only one).
 * NULL, or why there is nothing. */
const char *kaldi_segment_cut(const struct kaldi_segment *segment, const struct kaldi_row *wave,
                              uint64_t ret[static 3]);

#endif
