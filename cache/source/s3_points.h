/* Where ranges of a listing of S3 may begin. */
#ifndef EPOCHFS_CACHE_SOURCE_S3_POINTS_H
#define EPOCHFS_CACHE_SOURCE_S3_POINTS_H

#include "base/text.h"
#include "cache/source/s3_list.h"

/* Sort the points, which are keys; keep some, behind the key `after`, each once, with about as many
 * from each to the next one. */
void s3_points_thin(struct texts *points, const char *after);

/* Guess keys that others may come behind, from a page of sorted keys below prefix that is not the
 * last one: sorted, behind the page, and before upto (NULL: any). There may be none. 0 or -ENOMEM.
 */
int s3_points_guess(const char *prefix, const struct s3_page *page, const char *upto,
                    struct texts *ret);

#endif
