/* Lists all objects of a bucket below a prefix, in ranges of keys that are listed side by side: a
 * page has 1,000 keys at most, and each names the next one, so a million objects in one range would
 * take a thousand round trips.
 *
 * Ranges need no knowledge of the keys to be right: each ends where the next one begins. They begin
 * at folders, where a range that goes on and on may be split, or where the pages of the last mount
 * began (cache/source/kept_list.h): then each is one page, and a page that is as it was is not
 * read. Servers that do not sort keys, or ignore where a page is to begin, are listed page after
 * page. */
#ifndef EPOCHFS_CACHE_SOURCE_S3_WALK_H
#define EPOCHFS_CACHE_SOURCE_S3_WALK_H

#include "base/text.h"
#include "cache/http/http.h"
#include "cache/source/known.h"
#include "cache/source/s3_list.h"

struct s3_walk {
    /* Set by the caller: */
    struct http *http;
    const char *listing; /* the URL of a page, without its query */
    const char *prefix;  /* of all keys; "" or with '/' at its end */
    const char *shown;   /* for messages */
    /* Use n objects from this one on; keys begin with prefix. Where the server does not sort all
     * come again: then `known` is empty, and only one_range. 0 or -errno with the reason in d. */
    int (*use)(struct s3_walk *walk, const struct s3_object *object, size_t n, struct diag *d);
    /* Say why a request has failed: r and why are of http_get(), answer is the error's body. */
    int (*failed)(struct s3_walk *walk, int r, const struct text *answer, const struct diag *why,
                  struct diag *d);
    /* The first page is not the last one. 1: the caller has the list from elsewhere, and the walk
     * ends; 0: it goes on; or -errno. NULL: it goes on. */
    int (*is_long)(struct s3_walk *walk);
    void *user;
    struct known *known;      /* gets the pages */
    bool one_range;           /* page after page */
    const struct known *kept; /* NULL: nothing is kept */
    /* Set by s3_walk(): */
    bool any;      /* there are keys */
    bool ended;    /* is_long() has ended the walk */
    bool sorted;   /* known has all pages, and they can be kept */
    uint8_t *same; /* [kept->n_pages] that page is as it was; its objects were not used */
    size_t n_same;
};

/* List all. 0 or -errno with the reason in d. Blocks. */
int s3_walk(struct s3_walk *walk, struct diag *d);

/* Get one page of a listing. token, after, delimiter may be NULL; most 0: as many keys as the
 * server gives. 0 or -errno with the reason in d. */
struct s3_question {
    const char *prefix, *token, *after, *delimiter;
    unsigned most;
};
int s3_walk_get(struct s3_walk *walk, const struct s3_question *question, struct s3_page *ret,
                struct diag *d);

/* The URL of a page of the listing; the caller frees it. 0 or -ENOMEM. */
int s3_walk_url(const struct s3_walk *walk, const struct s3_question *question, char **ret);

/* The page that has a key, of n_pages > 0 ones: page i has the keys behind its text, up to that of
 * the next one. */
size_t s3_walk_page_of(const struct known *list, const char *key);

void s3_walk_release(struct s3_walk *walk);

#endif
