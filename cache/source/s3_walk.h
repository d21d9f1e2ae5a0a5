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
#include "cache/source/kept_list.h"
#include "cache/source/s3_list.h"

struct s3_walk {
    /* Set by the caller: */
    struct http *http;
    const char *listing; /* the URL of a page, without its query */
    const char *prefix;  /* of all keys; "" or with '/' at its end */
    const char *shown;   /* for messages */
    /* Use n objects from this one on; keys begin with prefix. 0 or -errno with the reason in d. */
    int (*use)(struct s3_walk *walk, const struct s3_object *object, size_t n, struct diag *d);
    /* Forget all that was used: it comes again. */
    void (*again)(struct s3_walk *walk);
    /* Say why a request has failed: r and why are of http_get(), answer is the error's body. */
    int (*failed)(struct s3_walk *walk, int r, const struct text *answer, const struct diag *why,
                  struct diag *d);
    /* The first page is not the last one. 1: the caller has the list from elsewhere, and the walk
     * ends; 0: it goes on; or -errno. NULL: it goes on. */
    int (*is_long)(struct s3_walk *walk);
    void *user;
    bool one_range;               /* page after page */
    const struct kept_list *kept; /* NULL: nothing is kept */
    /* Set by s3_walk(): */
    bool any;               /* there are keys */
    bool ended;             /* is_long() has ended the walk */
    bool sorted;            /* pages has all of them, and they can be kept */
    struct kept_list pages; /* the caller releases it */
    uint8_t *same;          /* [kept->n] that page is as it was; its objects were not used */
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

/* Are some pages of a list as they were? Asks for them side by side. 1, 0 or -ENOMEM. */
int s3_walk_compare(struct s3_walk *walk, const struct kept_list *kept, const size_t *page,
                    size_t n);

/* The page that has a key, of pages->n > 0 ones: page i has the keys behind its text, up to that of
 * the next one. */
size_t s3_walk_page_of(const struct kept_list *pages, const char *key);

void s3_walk_release(struct s3_walk *walk);

#endif
