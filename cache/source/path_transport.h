/* The transport of files on a parallel file system: local paths, staged because repeated reads
 * would be slow. */
#ifndef EPOCHFS_CACHE_SOURCE_PATH_TRANSPORT_H
#define EPOCHFS_CACHE_SOURCE_PATH_TRANSPORT_H

#include "cache/stage/transport.h"

/* At most jobs (1 or more) transfers are under way at once, others wait for their turn. url: an
 * absolute path. For a version, size and mtime count. data() gets a piece only if the file was
 * still that version after the piece was read. Pausing does nothing: a paused transfer would keep
 * its thread from others.
 *
 *   TRANSFER_CHANGED  the file is not there, is no file, or has another size or mtime
 *   TRANSFER_REFUSED  it may not be read
 *   TRANSFER_AGAIN    what else open and read may say
 *
 * 0 or -ENOMEM. */
int path_transport_new(unsigned jobs, struct transport **ret);

#endif
