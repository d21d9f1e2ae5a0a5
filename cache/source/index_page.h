/* Index pages: what web servers answer for a folder. */
#ifndef EPOCHFS_CACHE_SOURCE_INDEX_PAGE_H
#define EPOCHFS_CACHE_SOURCE_INDEX_PAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* A link to something that stands in the folder of the page itself. */
struct index_link {
    char name[NAME_MAX + 1]; /* decoded; no '/', no control byte, not "." or "..", not hidden */
    bool is_folder;
};

/* Is it surely an index page? Others have links, too. */
bool index_page_is(const char *page, size_t len);

/* The next link of the page from *at (0 at first) on; path: that of the page's URL, '/' at both its
 * ends, as it stands there. true and *ret, or false: no more. The same link may come again. Links
 * to elsewhere are passed over. */
bool index_page_next(const char *page, size_t len, const char *path, size_t *at,
                     struct index_link *ret);

#endif
