/* ~/.netrc: does it have a user for a host? libcurl reads the file for requests; this code is for
 * messages. */
#ifndef EPOCHFS_CACHE_HTTP_NETRC_H
#define EPOCHFS_CACHE_HTTP_NETRC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* Does a netrc of len bytes have an entry for host, or one for all hosts? */
bool netrc_names(const char *netrc, size_t len, const char *host);

/* The same for the file that libcurl reads. false also if it cannot be read. */
bool netrc_file_names(const char *host);

/* libcurl would wait for a pipe. 0; -EINVAL: it exists, and is not a regular file; the reason is in
 * d. */
int netrc_check(struct diag *d);

#endif
