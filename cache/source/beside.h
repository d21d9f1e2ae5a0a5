/* The files beside a SOURCE that is one file of a remote, as far as it names them: an scp its
 * archives.
 *
 * They are looked for when the first is named. What the folder's listing says counts, if there is
 * one; else the server is asked for each. */
#ifndef EPOCHFS_CACHE_SOURCE_BESIDE_H
#define EPOCHFS_CACHE_SOURCE_BESIDE_H

#include "cache/source/source.h"

int beside_new(struct beside **ret); /* 0 or -ENOMEM */
void beside_free(struct beside *beside);

/* The file at path, relative to the folder of SOURCE. 0, and *ret lives, and stays as it is, as
 * long as source; -ENOENT; or -errno with the reason in d: the next call asks again. Blocks. Any
 * thread. */
int beside_find(const struct source *source, const char *path, const struct source_entry **ret,
                struct diag *d);

#endif
