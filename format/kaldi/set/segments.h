/* The file segments of a data directory: which part of a recording each utterance is, as
 * extract-segments cuts it (featbin/extract-segments.cc). One thread. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_SEGMENTS_H
#define EPOCHFS_FORMAT_KALDI_SET_SEGMENTS_H

#include "format/kaldi/table/table.h"

#define SEGMENT_LINE 4096 /* bytes of a line after the utterance */

struct kaldi_segments {
    struct blob *blob; /* owned */
    struct kaldi_in in;
    uint64_t at;     /* byte of the next line, or, */
    bool is_in_long; /* inside a line too long, of the rest to skip */
    struct index_builder *builder;
    struct index index; /* utterances; numbers: start, length of the rest of the line */
    bool is_ready;
};

/* A parsed line. */
struct kaldi_segment {
    const char *recording;
    double start, end; /* seconds; end -1: the recording's end */
    int channel;       /* -1: not given */
};

/* Takes ownership of blob, also on error. 0 or -ENOMEM. */
int kaldi_segments_init(struct kaldi_segments *ret, struct blob *blob);
void kaldi_segments_release(struct kaldi_segments *s); /* takes a zeroed one */

/* Index lines until the time until (monotonic_ns()). 1: done, 0: not yet, or -errno. */
int kaldi_segments_step(struct kaldi_segments *s, int64_t until);

/* Parse the line of an utterance, a row of the index. *ret points into text. NULL, or what is wrong
 * with the line. */
const char *kaldi_segments_line(struct kaldi_segments *s, uint64_t row,
                                char text[static SEGMENT_LINE], struct kaldi_segment *ret);

/* The part of the recording that a segment is: first sample, number of samples, and channel from 1
 * (0: the only one). NULL, or why there is no such part. */
const char *kaldi_segment_cut(const struct kaldi_segment *segment, const struct kaldi_row *wave,
                              uint64_t ret[static 3]);

#endif
