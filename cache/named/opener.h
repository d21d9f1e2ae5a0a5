/* The opener of a mount: it finds and opens the files, and runs the commands, that files of SOURCE
 * name. See cache/disk/local_blob.h, cache/named/commands.h; for a remote SOURCE, remote_find(). */
#ifndef EPOCHFS_CACHE_NAMED_OPENER_H
#define EPOCHFS_CACHE_NAMED_OPENER_H

#include "base/opener.h"
#include "cache/disk/local_blob.h"
#include "cache/named/commands.h"

struct source;

struct cache_opener {
    struct opener opener;
    const struct source *source;
    char *cwd; /* owned; NULL: none */
    struct lazy_pool pool;
    struct commands commands;
};

/* What the user allows. */
struct cache_opener_options {
    bool allow_outside, allow_commands;
    unsigned command_timeout;  /* seconds, > 0 */
    const struct clock *clock; /* NULL: the real one */
    const char *cwd; /* where the mount was started, absolute; NULL: relative paths are not searched
                        there, and commands run in '/' */
};

/* Relative folders of a source are relative to the current folder of this process. cache and source
 * must outlive ret. 0, or -errno and nothing to release. Makes nothing in the cache folder yet. */
int cache_opener_init(struct cache_opener *ret, const struct source *source,
                      const struct cache_folder *cache, const struct cache_opener_options *options);

/* Ends commands that are still running. All blobs must have been freed. Takes a zeroed opener. */
void cache_opener_release(struct cache_opener *opener);

#endif
