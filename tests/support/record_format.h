/* The format of tests/support/record_format.c. */
#ifndef EPOCHFS_TESTS_SUPPORT_RECORD_FORMAT_H
#define EPOCHFS_TESTS_SUPPORT_RECORD_FORMAT_H

#include "format/core/format.h"

extern const struct format format_records;

#endif
