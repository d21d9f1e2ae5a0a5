/* The one form of a list of files on disk: kept in the cache folder between mounts, or next to the
 * data in .epochfs/. It has what shows that it is current: of a remote the pages that it was read
 * from, since what a server sends again as it was is not read again; of this machine the state of
 * each folder. */
#ifndef EPOCHFS_CACHE_SOURCE_KEPT_LIST_H
#define EPOCHFS_CACHE_SOURCE_KEPT_LIST_H

#include <stdbool.h>

#include "cache/source/known.h"

struct source;

/* The list that is kept under the identity `named`; NULL: that of the source. 0; -ENOENT: nothing
 * that is good. */
int kept_list_load(const struct source *source, const char *named, struct known *ret);

/* Its bytes: 0, and the caller releases *ret; or -ENOENT. And put pieces in their place; n 0:
 * nothing. It is not worth a message if that is not possible. Any thread. */
int kept_list_get(const struct source *source, const char *named, struct kept_index *ret);
void kept_list_put(const struct source *source, const char *named, const struct iovec *piece,
                   unsigned n);

/* How the bytes begin; then come the pages, their texts up to a multiple of 8, the folders and the
 * table. */
struct kept_list_head {
    uint64_t magic, hash; /* of all that follows */
    uint64_t n, texts_len, n_folders;
};
#define KEPT_LIST_MAGIC UINT64_C(0x0253454741504645)

/* The bytes of a sorted list, as pieces that must outlive them. Sorts the pages. 0 or -ENOMEM. */
struct kept_list_pieces {
    struct iovec piece[5 + MEMBERS_PIECES];
    struct kept_list_head head;
    struct members_head members;
};
int kept_list_bytes(struct known *known, struct kept_list_pieces *ret);

/* Keep a sorted list for the next mount. */
void kept_list_save(const struct source *source, struct known *known);

/* What is kept does not show what exists: remove it. Any thread. */
void kept_list_forget(const struct source *source);

/* Take ret->bytes apart, which may be anything, as a list of a remote (far), or of this machine. 0
 * or -EBADMSG. */
int kept_list_parse(struct known *ret, bool far);

#endif
