/* The one form of a list of files on disk: kept in the cache folder between mounts, or next to the
 * data in .epochfs/. It has what shows that it is current: of a remote the pages that it was read
 * from, since what a server sends again as it was is not read again; of this machine the state of
 * each folder.
 *
 * A page is known by a text: of S3 the key behind which it begins, of a web server its folder. */
#ifndef EPOCHFS_CACHE_SOURCE_KEPT_LIST_H
#define EPOCHFS_CACHE_SOURCE_KEPT_LIST_H

#include <stdbool.h>

#include "base/index_store.h"
#include "base/members.h"
#include "base/text.h"

struct listing_folder;
struct source;

struct kept_page {
    uint64_t hash; /* of its bytes */
    uint64_t text; /* where its text is in texts */
};

struct kept_list {
    struct kept_page *page; /* [n] sorted by their texts, each text once */
    size_t n;
    struct text texts;             /* each ended by NUL */
    struct listing_folder *folder; /* [files.n_folders] of local files; NULL: of a remote's */
    struct members files;          /* sorted */
    struct kept_index bytes;       /* if it was loaded: the arrays are in these */
};

static inline const char *kept_page_text(const struct kept_list *pages, size_t i)
{
    return pages->texts.data + pages->page[i].text;
}

/* Add a page. 0 or -ENOMEM. */
int kept_list_add(struct kept_list *pages, const char *text, uint64_t hash);

/* Sort by the texts; of each text one page remains. */
void kept_list_sort(struct kept_list *pages);

/* Find a page by its text among sorted ones; pages->n: there is none. */
size_t kept_list_find(const struct kept_list *pages, const char *text);

/* Load what is kept of a source, or of what `identity` names in its place. 0; -ENOENT: nothing that
 * is good. */
int kept_list_load(const struct source *source, const char *identity, struct kept_list *ret);

/* The bytes kept under an identity: 0, and the caller releases *ret; or -ENOENT. And put pieces in
 * their place; n 0: nothing. It is not worth a message if that is not possible. Any thread. */
int kept_list_get(const struct source *source, const char *identity, struct kept_index *ret);
void kept_list_put(const struct source *source, const char *identity, const struct iovec *piece,
                   unsigned n);

/* How the bytes begin; then come the pages, their texts up to a multiple of 8, the folders and the
 * table. */
struct kept_list_head {
    uint64_t magic, hash; /* of all that follows */
    uint64_t n, texts_len, n_folders;
};
#define KEPT_LIST_MAGIC UINT64_C(0x0253454741504645)

/* The bytes of a list of these sorted files, as pieces that must outlive them, with the pages and
 * folders of `list`. Sorts the pages. 0 or -ENOMEM. */
struct kept_list_pieces {
    struct iovec piece[5 + MEMBERS_PIECES];
    struct kept_list_head head;
    struct members_head members;
};
int kept_list_bytes(struct kept_list *list, const struct members *files,
                    struct kept_list_pieces *ret);

/* Keep such a list for the next mount. */
void kept_list_save(const struct source *source, struct kept_list *list,
                    const struct members *files);

/* What is kept does not show what exists: remove it. Any thread. */
void kept_list_forget(const struct source *source);

/* Take ret->bytes apart, which may be anything, as a list of a remote (far), or of this machine. 0
 * or -EBADMSG. */
int kept_list_parse(struct kept_list *ret, bool far);

void kept_list_release(struct kept_list *pages); /* of one that starts as {0} */
#define AUTO_KEPT_LIST AUTO(kept_list_release)

#endif
