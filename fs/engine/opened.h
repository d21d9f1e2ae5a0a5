/* SOURCE, opened: the cache folder, the source, and the catalog of its datasets. The daemon, the
 * library and the commands open it here. */
#ifndef EPOCHFS_FS_ENGINE_OPENED_H
#define EPOCHFS_FS_ENGINE_OPENED_H

#include <limits.h>
#include <stdbool.h>

#include "base/diag.h"
#include "base/scope.h"
#include "cache/disk/folder.h"
#include "fs/log/filter.h"
#include "fs/options/options.h"
#include "fs/tree/catalog.h"

/* {0} before it is opened; must be released also after an error, when all blobs are gone. Must not
 * move: the source points into it. One thread. */
struct opened {
    struct cache_folder cache;
    struct source *source;
    struct catalog catalog;
};

/* For whom SOURCE is opened. All members may be NULL or false. */
struct opened_for {
    /* The process is ours: it takes as many descriptors as it may, and hides its memory from
     * debuggers once it may have secrets. */
    bool owns_process;
    /* What people should know of the cache folder. */
    void (*warn)(const char *text);
    /* So many files, which an earlier version had made there, were removed. */
    void (*removed)(const char *folder, uint64_t n, uint64_t bytes);
    /* The front of peers fails, or works again; until source_listen_via() says otherwise. */
    void (*via)(bool answers, const char *text);
    /* What they should know of SOURCE later, when it is used. say NULL: it goes to the log. */
    struct notices notices;
    struct unpack_watch *watch; /* sees files that are unpacked while the catalog is opened */
};

/* What cannot be opened. */
enum opened_failure { OPENED_ALL, OPENED_NO_MOUNT, OPENED_NO_CACHE, OPENED_NO_SOURCE };

/* Open SOURCE. OPENED_ALL, or what has failed with the reason in d, and *ret_error the -errno. */
enum opened_failure opened_source(const char *spec, const struct options *options,
                                  const struct opened_for *whom, struct opened *opened,
                                  int *ret_error, struct diag *d);

/* The same, and open the catalog of its datasets. */
enum opened_failure opened_catalog(const char *spec, const struct options *options,
                                   const struct opened_for *whom, struct opened *opened,
                                   int *ret_error, struct diag *d);
void opened_release(struct opened *opened);

/* Report what people have to know of a source that is open: files that are not used, rows that are
 * skipped. text: a line. */
struct opened_reports {
    void (*note)(void *ctx, enum log_level level, const char *text);
    void *ctx;
};
void opened_report(const struct opened *opened, const struct opened_reports *to);

#define AUTO_OPENED AUTO(opened_release)

/* SOURCE for output: without the query of a URL, which may be a secret. Returns ret. */
const char *shown_source(const char *spec, char ret[static PATH_MAX]);

/* Is r an error of a stage's cache, not of the remote? */
bool is_cache_error(int r);

#endif
