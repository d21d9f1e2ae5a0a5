#include "format/format.h"

extern const struct format format_idx;

const struct format *const formats[] = {&format_idx};
const unsigned n_formats = ARRAY_LEN(formats);
