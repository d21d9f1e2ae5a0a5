/* URLs and the names of files in them. */
#ifndef EPOCHFS_CACHE_HTTP_URL_H
#define EPOCHFS_CACHE_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* The parts of a URL that url_clean() accepted: byte offsets. */
struct url_parts {
    size_t host;  /* behind "://" */
    size_t path;  /* the '/' behind the host */
    size_t query; /* the '?', or the end */
};

/* Make a URL as a server takes it: characters not allowed in a URL are percent-encoded, what is
 * encoded remains, and there is a path. The caller frees *ret. 0; -EINVAL: it is not a URL, or has
 * a user in it; -ENOMEM; with the reason in d, which does not show the query or the user. */
int url_clean(const char *url, char **ret, struct url_parts *parts, struct diag *d);

/* The same for the URL of an endpoint, which has no query, and no '/' at its end. what: names it in
 * messages. */
int url_endpoint(const char *url, const char *what, char **ret, struct diag *d);

/* Copy the host of a URL with a scheme, without its port; one of IPv6 has its brackets. */
void url_host(const char *url, char *ret, size_t capacity);

/* Decode percent-encoded bytes into ret, which has len + 1 bytes. false: the encoding is wrong, or
 * there is a NUL byte; then ret is undefined. */
bool url_decode(const char *text, size_t len, char *ret);

/* Why a relative path cannot name a file below a folder: one of its names is "" or ".." and the
 * like, is too long, or has a control byte; a text for messages. NULL: it can. */
const char *name_wrong(const char *path);

/* Is a name in the path hidden? Files whose names begin with '.' are not part of a dataset. */
bool name_hidden(const char *path);

/* Copy text into ret without the bytes that terminals take for commands, cut off as needed. */
void name_show(const char *text, char *ret, size_t capacity);

#endif
