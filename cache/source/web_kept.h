/* What is kept of a folder on a web server between mounts: the versions of its files, which cost a
 * request each, and a hash of each index page. They are good for a page that is as it was and shows
 * the times of its files. See cache/source/web_kept.c. */
#ifndef EPOCHFS_CACHE_SOURCE_WEB_KEPT_H
#define EPOCHFS_CACHE_SOURCE_WEB_KEPT_H

#include "cache/source/remote.h"

/* The URL of a folder's index page; the caller frees it. 0 or -ENOMEM. */
int web_folder_url(const struct source *source, const char *path, char **ret);

/* What stands for the page of all folders if a SHA256SUMS lists them: no folder has this path. */
#define WEB_SUMS "/SHA256SUMS"

/* See shared_list_use(). */
int web_kept_shared(struct source *source);

/* Set the versions of the known files whose pages are as they were at the last mount. 0, -ENOMEM,
 * -E2BIG. */
int web_kept_use(struct source *source);

/* Keep the versions of the known files, with the pages that show when they change: for the next
 * mount if asked (some had to be asked for), and with `indexes` for `.epochfs/`. now: the time of
 * day, in ns. 0 or -ENOMEM. */
int web_kept_save(struct source *source, bool asked, int64_t now);

#endif
