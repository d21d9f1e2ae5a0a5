/* XML as S3 servers send it: elements and text; no document types, no CDATA sections. */
#ifndef EPOCHFS_CACHE_HTTP_XML_H
#define EPOCHFS_CACHE_HTTP_XML_H

#include <stdbool.h>
#include <stddef.h>

#define XML_DEPTH 8 /* nesting of elements */

struct xml_element {
    const char *name; /* [name_len] */
    size_t name_len;
    const char *text; /* [text_len] once it is closed: its content, encoded */
    size_t text_len;
    bool has_children;
};

/* The caller sets at and end, the document, and zeroes the rest. */
struct xml {
    const char *at, *end;
    unsigned depth; /* elements that are open */
    struct xml_element open[XML_DEPTH];
};

enum xml_event {
    XML_OPENED, /* *ret: the element, which is open[depth - 1] */
    XML_CLOSED, /* *ret: the element; its parent is open[depth - 1] if depth > 0 */
    XML_END,    /* of a whole document */
    XML_BAD,    /* not XML of this kind; at: where */
};

enum xml_event xml_next(struct xml *xml, struct xml_element *ret);

/* Is the element called name? */
bool xml_is(const struct xml_element *element, const char *name);

/* The text of an element without children, decoded; the caller frees it. 0; -EBADMSG: an unknown
 * entity, or a NUL byte; or -ENOMEM. */
int xml_text(const struct xml_element *element, char **ret);

#endif
