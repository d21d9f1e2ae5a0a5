/* The transport of files on this machine, for paths that deserve to be staged: a parallel file
 * system. URLs are absolute paths; versions' etags are texts of file_version_text(). */
#ifndef EPOCHFS_CACHE_PATH_TRANSPORT_H
#define EPOCHFS_CACHE_PATH_TRANSPORT_H

#include "cache/transport.h"

/* jobs: transfers at once, at least 1. 0 or -ENOMEM. */
int path_transport_new(unsigned jobs, struct transport **ret);

#endif
