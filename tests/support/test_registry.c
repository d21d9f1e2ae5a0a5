/* The registry of the tests' epochfs: format/registry.c, and the formats of tests. */
#include "format/registry.h"
#include "support/learned_format.h"
#include "support/record_format.h"

extern const struct format format_idx;
extern const struct format format_libsvm;
extern const struct format format_kaldi;
extern const struct format format_recordio;
extern const struct format format_tar;
extern const struct format format_tfrecord;
extern const struct format format_files;

const struct format *const formats[] = {
    &format_idx,      &format_libsvm, &format_kaldi,   &format_recordio, &format_tar,
    &format_tfrecord, &format_files,  &format_records, &format_learned,
};
const unsigned n_formats = ARRAY_LEN(formats);
