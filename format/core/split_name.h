/* Names of the parts of a dataset: train, val, test and so on. */
#ifndef EPOCHFS_FORMAT_CORE_SPLIT_NAME_H
#define EPOCHFS_FORMAT_CORE_SPLIT_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define SPLIT_NAMES 9
extern const char *const split_names[SPLIT_NAMES];

/* Is a name of len bytes one of a part, in any case? */
bool is_split_name(const char *name, size_t len);

#endif
