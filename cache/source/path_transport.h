/* The transport of files on a parallel file system: paths of this machine, that are staged because
 * reading them each time would be slow. */
#ifndef EPOCHFS_CACHE_SOURCE_PATH_TRANSPORT_H
#define EPOCHFS_CACHE_SOURCE_PATH_TRANSPORT_H

#include "cache/stage/transport.h"

/* At most jobs (1 or more) transfers are under way at once, others wait for their turn. url: an
 * absolute path; of a version size and mtime count. A piece is given to data() only if the file was
 * that version after it had been read. Pausing does nothing: a transfer that is paused would keep
 * its thread from others.
 *
 *   TRANSFER_CHANGED  the file is not there, is no file, or has another size or mtime
 *   TRANSFER_REFUSED  it may not be read
 *   TRANSFER_AGAIN    what else open and read may say
 *
 * 0 or -ENOMEM. */
int path_transport_new(unsigned jobs, struct transport **ret);

#endif
