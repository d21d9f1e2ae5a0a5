/* URLs and the names of files in them. */
#ifndef EPOCHFS_CACHE_HTTP_URL_H
#define EPOCHFS_CACHE_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* The parts of a URL that url_clean() has taken: places in it, bytes. */
struct url_parts {
    size_t host;  /* behind "://" */
    size_t path;  /* the '/' behind the host */
    size_t query; /* the '?', or the end */
};

/* A URL as a server takes it: what must not stand in one is percent-encoded, what is encoded stays,
 * and there is a path. The caller frees *ret. 0; -EINVAL: it is none, or has a user in it; -ENOMEM;
 * with the reason in d, which does not show the query or the user. */
int url_clean(const char *url, char **ret, struct url_parts *parts, struct diag *d);

/* Decode percent-encoded bytes into ret, which has room for len + 1. false: it is not encoded
 * rightly, or has a NUL byte; then ret is undefined. */
bool url_decode(const char *text, size_t len, char *ret);

/* Why path, relative, cannot be the name of a file below a folder: one of its names is "" or ".."
 * and the like, is too long, or has a control byte; for people. NULL: it can. */
const char *name_wrong(const char *path);

/* Is a name in it hidden? Files whose names begin with '.' are no part of a dataset. */
bool name_hidden(const char *path);

/* Copy text into ret without the bytes that terminals take for commands, cut off as needed. */
void name_show(const char *text, char *ret, size_t capacity);

#endif
