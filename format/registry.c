#include "format/registry.h"

extern const struct format format_idx, format_libsvm, format_kaldi, format_recordio;

const struct format *const formats[] = {&format_idx, &format_libsvm, &format_kaldi,
                                        &format_recordio};
const unsigned n_formats = ARRAY_LEN(formats);
