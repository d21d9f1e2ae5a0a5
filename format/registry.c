#include "format/registry.h"

extern const struct format format_idx, format_libsvm, format_kaldi;

const struct format *const formats[] = {&format_idx, &format_libsvm, &format_kaldi};
const unsigned n_formats = ARRAY_LEN(formats);
