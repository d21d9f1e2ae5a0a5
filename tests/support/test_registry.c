/* The registry of the tests' epochfs: format/registry.c, and the formats of tests. */
#include "format/registry.h"
#include "support/learned_format.h"
#include "support/record_format.h"

extern const struct format format_idx, format_libsvm, format_kaldi, format_recordio;

const struct format *const formats[] = {&format_idx,      &format_libsvm,  &format_kaldi,
                                        &format_recordio, &format_records, &format_learned};
const unsigned n_formats = ARRAY_LEN(formats);
