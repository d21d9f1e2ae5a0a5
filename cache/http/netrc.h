/* ~/.netrc: is there a user for a host? libcurl reads it; this is what we tell people of it. */
#ifndef EPOCHFS_CACHE_HTTP_NETRC_H
#define EPOCHFS_CACHE_HTTP_NETRC_H

#include <stdbool.h>
#include <stddef.h>

/* Does a netrc of len bytes have an entry for host, or one for all? */
bool netrc_names(const char *netrc, size_t len, const char *host);

/* The same of the file that libcurl reads. false also where it cannot be read. */
bool netrc_file_names(const char *host);

#endif
