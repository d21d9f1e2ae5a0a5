/* Index pages: what web servers send for a folder. */
#ifndef EPOCHFS_CACHE_SOURCE_INDEX_PAGE_H
#define EPOCHFS_CACHE_SOURCE_INDEX_PAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* A link to a file or folder directly in the page's folder. */
struct index_link {
    char name[NAME_MAX + 1]; /* decoded; no '/', no control byte, not "." or "..", not hidden */
    bool is_folder;
    bool has_time;    /* a time, as 23:59, comes between its "</a>" and the next <a> */
    size_t elsewhere; /* counts links that lead out of the folder, but not to one above it */
};

/* Is it certainly an index page? Other pages have links as well. */
bool index_page_is(const char *page, size_t len);

/* Find the next link of the page after *at (0 at first). url: of the page, '/' at its end, after
 * redirects; or its path, then absolute links do not count. true and *ret; false: no more. The
 * same link may come again. Links out of the folder are skipped. */
bool index_page_next(const char *page, size_t len, const char *url, size_t *at,
                     struct index_link *ret);

#endif
