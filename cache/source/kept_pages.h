/* The list of a remote's files as it is kept in the cache folder between mounts, with the pages
 * that it was read from: what a server sends again as it was is not read again.
 *
 * A page is known by a text: of S3 the key behind which it begins, of a web server its folder. */
#ifndef EPOCHFS_CACHE_SOURCE_KEPT_PAGES_H
#define EPOCHFS_CACHE_SOURCE_KEPT_PAGES_H

#include <stdbool.h>

#include "base/index_store.h"
#include "base/members.h"

struct source;

struct kept_page {
    uint64_t hash; /* of its bytes */
    uint64_t text; /* where its text is in texts[] */
};

struct kept_pages {
    struct kept_page *page; /* [n] sorted by their texts, each text once */
    size_t n, capacity;
    char *texts; /* [texts_len] each ended by NUL */
    size_t texts_len, texts_capacity;
    struct members files;    /* sorted; versions of remotes */
    struct kept_index bytes; /* if it was loaded: the arrays are in these */
};

static inline const char *kept_page_text(const struct kept_pages *pages, size_t i)
{
    return pages->texts + pages->page[i].text;
}

/* Add a page. 0 or -ENOMEM. */
int kept_pages_add(struct kept_pages *pages, const char *text, uint64_t hash);

/* Sort by the texts; of each text one page stays. */
void kept_pages_sort(struct kept_pages *pages);

/* Find a page by its text among sorted ones; pages->n: there is none. */
size_t kept_pages_find(const struct kept_pages *pages, const char *text);

/* Load what is kept of a source. 0; -ENOENT: nothing that is good. */
int kept_pages_load(const struct source *source, struct kept_pages *ret);

/* How the bytes begin; then come the pages, their texts up to a multiple of 8, and the table. */
struct kept_pages_head {
    uint64_t magic, hash; /* of all that follows */
    uint64_t n, texts_len;
};

/* The bytes of a list, as pieces of pages and files, which must outlive them. Sorts the pages. 0 or
 * -ENOMEM. */
struct kept_pages_pieces {
    struct iovec piece[4 + MEMBERS_PIECES];
    struct kept_pages_head head;
    struct members_head members;
};
int kept_pages_bytes(struct kept_pages *pages, const struct members *files,
                     struct kept_pages_pieces *ret);

/* Keep the pages, in any order, with these sorted files. It is not worth a message if that is not
 * possible. Sorts the pages. */
void kept_pages_save(const struct source *source, struct kept_pages *pages,
                     const struct members *files);

/* What is kept does not show what is there: remove it. Any thread. */
void kept_pages_forget(const struct source *source);

/* Take ret->bytes apart, which may be anything. 0 or -EBADMSG. */
int kept_pages_parse(struct kept_pages *ret);

void kept_pages_release(struct kept_pages *pages); /* of one that starts as {0} */
#define AUTO_KEPT_PAGES AUTO(kept_pages_release)

#endif
