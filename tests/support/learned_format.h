/* The format of tests/support/learned_format.c. */
#ifndef EPOCHFS_TESTS_SUPPORT_LEARNED_FORMAT_H
#define EPOCHFS_TESTS_SUPPORT_LEARNED_FORMAT_H

#include "format/core/format.h"

extern const struct format format_learned;

#endif
