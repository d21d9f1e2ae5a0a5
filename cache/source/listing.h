/* The files of a folder of this machine. A listing of a million files takes a second or more to
 * make, so it is kept in the cache folder, with the state of all folders. At the next mount it is
 * good if each folder is as it was: one stat() for each.
 *
 * What it cannot show: a file that was changed in place since then, for that does not change its
 * folder. Such a file gives -ESTALE when it is read; then the listing is dropped, so the next mount
 * makes it again. */
#ifndef EPOCHFS_CACHE_SOURCE_LISTING_H
#define EPOCHFS_CACHE_SOURCE_LISTING_H

#include "cache/source/joined.h"
#include "cache/source/known.h"

struct source;

#define LISTING_KEPT 4096 /* files, at least, of a listing that is kept */

/* All files of a source: *ret is what is known of a remote; otherwise local, which becomes the
 * listing of a local folder. now: the time of day, in ns: a folder that has just been changed is
 * not kept. 0; -EOPNOTSUPP: this kind of source has no listing; or -errno with the reason in d. */
int source_listing(const struct source *source, int64_t now, struct known *local,
                   struct known **ret, struct diag *d);

/* What all n files with these numbers have in common; the caller sets the name. */
void listing_head(const struct known *listing, const uint32_t *file, size_t n,
                  struct joined_head *ret);

/* List a local folder, without what is kept. ret: {0}. 0 or -errno with the reason in d. */
int listing_scan(const struct source *source, struct known *ret, struct diag *d);

#endif
