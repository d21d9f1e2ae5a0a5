/* What s3_walk.c, s3_points.c and s3_ask.c share. */
#ifndef EPOCHFS_CACHE_SOURCE_S3_WALK_PARTS_H
#define EPOCHFS_CACHE_SOURCE_S3_WALK_PARTS_H

#include "cache/source/s3_walk.h"

/* ---- s3_ask.c: pages ---- */

/* A page that is asked for, perhaps ahead. */
struct s3_asking {
    char *url;
    struct http_ahead *ahead; /* NULL: it is not under way */
};

/* Ask for a page; what was asked for before has been taken. It need not be under way afterwards. 0
 * or -ENOMEM. */
int s3_walk_ask(const struct s3_walk *walk, const struct s3_question *question,
                struct s3_asking *ret);

/* Get the page that was asked for. 0 or -errno with the reason in d. */
int s3_walk_take(struct s3_walk *walk, struct s3_asking *asking, struct text *ret, struct diag *d);

/* Get a page with no other under way. The same. */
int s3_walk_text(struct s3_walk *walk, const struct s3_question *question, struct text *ret,
                 struct diag *d);

void s3_asking_release(struct s3_asking *asking); /* of one that starts as {0} */

/* Parse a page. 0, or -errno with the reason in d. */
int s3_walk_parse(const struct s3_walk *walk, const struct text *text, struct s3_page *ret,
                  struct diag *d);

/* ---- s3_points.c: where ranges may begin ---- */

struct s3_points {
    char **key; /* [n] sorted */
    size_t n;
};

/* Find some folders below the prefix, behind the key `after`, with about as many folders from each
 * to the next one. There may be none. 0 or -ENOMEM: other errors are met again. */
int s3_points_find(struct s3_walk *walk, const char *after, struct s3_points *ret);

/* Guess keys that others may come behind, from a page of sorted keys that is not the last one:
 * sorted, behind the page, and before upto (NULL: any). There may be none. 0 or -ENOMEM. */
int s3_points_guess(const struct s3_walk *walk, const struct s3_page *page, const char *upto,
                    struct s3_points *ret);

void s3_points_release(struct s3_points *points);

#endif
