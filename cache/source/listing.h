/* All files of a folder of this machine, or of a remote, packed (base/members.h): names, sizes and
 * versions. A listing of a million files takes a second or more to make, so that of local files is
 * kept in the cache folder, with the state of all folders. At the next mount it is good if each
 * folder is as it was: one stat() for each.
 *
 * What it cannot show: a file that was changed in place since then, for that does not change its
 * folder. Such a file gives -ESTALE when it is read; then the listing is dropped, so the next mount
 * makes it again. */
#ifndef EPOCHFS_CACHE_SOURCE_LISTING_H
#define EPOCHFS_CACHE_SOURCE_LISTING_H

#include "base/access.h"
#include "base/index_store.h"
#include "base/members.h"
#include "cache/source/entries.h"
#include "cache/source/joined.h"

struct source;

#define LISTING_KEPT 4096 /* files, at least, of a listing that is kept */

/* What holds for the files of a folder. */
struct listing_folder {
    uint64_t state[3]; /* inode, time of change, time of change of the inode; 0: not local */
    int64_t latest_s;  /* time of the latest file */
    uint32_t latest_ns;
    uint32_t mode; /* permission bits that all files have */
    uint32_t uid, gid;
};

struct listing {
    struct members files; /* a folder, its files, then the folders below; by name. Each folder on
                             the way to a file is in it */
    struct listing_folder *folder; /* [files.n_folders] */
    struct source_list failed;     /* what cannot be read, with its reason */
    struct kept_index kept;        /* files and folder are in its bytes */
};

/* List a source. now: the time of day, in ns: a folder that has just been changed is not kept. 0;
 * -EOPNOTSUPP: this kind of source has no listing; or -errno with the reason in d. */
int source_listing(const struct source *source, int64_t now, struct listing *ret, struct diag *d);

/* File i as an entry, which the caller releases. 0 or -ENOMEM. */
int listing_entry(const struct source *source, const struct listing *listing, size_t i,
                  struct source_entry *ret);

/* The files that are not taken, and those that failed: taken[i], of file i, is 0. 0 or -ENOMEM. */
int listing_rest(const struct source *source, const struct listing *listing, const uint8_t *taken,
                 struct source_list *ret);

/* End a listing, and release it. joined[i]: file i is in a joined blob; a remote's list forgets it,
 * for the blob knows it. 0 or -ENOMEM. */
int listing_end(const struct source *source, struct listing *listing, const uint8_t *joined);

/* What all n files with these numbers have in common; the caller sets the name. */
void listing_head(const struct listing *listing, const uint32_t *file, size_t n,
                  struct joined_head *ret);

/* The same for a local folder, without what is kept. */
int listing_scan(const struct source *source, struct listing *ret, struct diag *d);

/* Set the state of a folder. */
void listing_state(const struct stat *st, struct listing_folder *ret);

void listing_release(struct listing *listing); /* of one that starts as {0} */
#define AUTO_LISTING AUTO(listing_release)

#endif
