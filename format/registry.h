/* The formats that epochfs reads. A new format is a folder, which CMake finds, a line in formats[],
 * a test and a page. */
#ifndef EPOCHFS_FORMAT_REGISTRY_H
#define EPOCHFS_FORMAT_REGISTRY_H

#include "format/core/format.h"

extern const struct format *const formats[];
extern const unsigned n_formats;

#endif
