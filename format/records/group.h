/* Files that are shards of one set by their names: <set>-00000-of-00010, with a suffix perhaps. */
#ifndef EPOCHFS_FORMAT_RECORDS_GROUP_H
#define EPOCHFS_FORMAT_RECORDS_GROUP_H

#include "format/core/format.h"
#include "format/records/record_set.h"

/* The name of the set that a file is a shard of. false: its name does not say so. */
bool group_name(const char *file, char ret[static RECORD_GROUP_SIZE]);

/* If file i of a folder is the first of its set that is there, and others are not: which ones, for
 * people. NULL: it is not, or there is no memory. */
char *group_missing(const struct source_file *source, size_t n, size_t i);

#endif
