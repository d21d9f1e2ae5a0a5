/* XML as services of S3's kind send it, read by expat. Such a text has elements with a text or with
 * elements in them; a document type is an error, so no entity grows. */
#ifndef EPOCHFS_CACHE_HTTP_XML_H
#define EPOCHFS_CACHE_HTTP_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define XML_DEPTH 8 /* nesting of elements */
#define XML_NAME  64

/* An element that ends. */
struct xml_element {
    unsigned depth;                /* 1: the root */
    const char (*names)[XML_NAME]; /* [depth] from the root's to its own, cut */
    const char *name;              /* the last of them */
    char *text; /* NULL: it has elements in it. The callee may take it, and set it to NULL */
};

/* Call use() for each element that ends; its result other than 0 ends the reading. 0; -EBADMSG: no
 * such XML; -ENOMEM; or the result of use(). *ret_at: up to which byte it was read. */
int xml_read(const char *xml, size_t len, int (*use)(void *user, struct xml_element *element),
             void *user, size_t *ret_at);

/* ---- times ---- */

/* Times as the services of AWS write them: 2026-11-21T18:15:22Z, with any fraction of a second. */

/* false: not such a time, or not in the years 1970 to 9999. Fractions are dropped, as HTTP does. */
bool iso_time_parse(const char *text, time_t *ret);

#endif
