/* The files next to a SOURCE that is one file of a remote and names them, as an scp names its
 * archives.
 *
 * They are looked up when the first is named. If the folder has a listing, it decides; otherwise
 * the server is asked for each file. */
#ifndef EPOCHFS_CACHE_SOURCE_BESIDE_H
#define EPOCHFS_CACHE_SOURCE_BESIDE_H

#include "cache/source/source.h"

int beside_new(struct beside **ret); /* 0 or -ENOMEM */
void beside_free(struct beside *beside);

/* Find the file at path, relative to the folder of SOURCE. 0, and the caller releases *ret;
 * -ENOENT; or -errno with the reason in d: the next call asks again. Blocks. Any thread. */
int beside_find(const struct source *source, const char *path, struct source_entry *ret,
                struct diag *d);

#endif
