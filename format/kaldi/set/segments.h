/* The file segments of a data directory: which part of a recording each utterance is, as
 * extract-segments cuts it (featbin/extract-segments.cc). The file is a table of words. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_SEGMENTS_H
#define EPOCHFS_FORMAT_KALDI_SET_SEGMENTS_H

#include "format/kaldi/table/table.h"

/* A parsed line. */
struct kaldi_segment {
    double start, end; /* seconds; end -1: the recording's end */
    int64_t channel;   /* -1: not given */
    const char *recording;
};

/* Parse what follows the utterance in its line; *ret points into text, which is changed. NULL, or
 * what is wrong with it. */
const char *kaldi_segment_parse(char *text, struct kaldi_segment *ret);

/* The part of the recording that a segment is: first sample, number of samples, and channel from 1
 * (0: the only one). NULL, or why there is no such part. */
const char *kaldi_segment_cut(const struct kaldi_segment *segment, const struct kaldi_row *wave,
                              uint64_t ret[static 3]);

#endif
