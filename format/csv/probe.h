/* Is a file a table of numbers? */
#ifndef EPOCHFS_FORMAT_CSV_PROBE_H
#define EPOCHFS_FORMAT_CSV_PROBE_H

#include "format/core/format.h"

bool csv_is_named(const char *name); /* does its name say that it is a table? */

enum claim csv_probe(const struct probed_file *file);

#endif
