/* Reading ahead on the disks of this machine: the plans say what is read next, so the kernel is
 * asked for it many ranges at once, before it is needed. For sources that are read in place; those
 * with a stage are fetched by it.
 *
 * Like the push it is best effort: a range that cannot be read is left to its reader. Nothing is
 * asked of a source that is in memory already, nor of a filesystem that cannot say whether it is.
 */
#ifndef EPOCHFS_FS_PUSH_READ_AHEAD_H
#define EPOCHFS_FS_PUSH_READ_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "fs/drive/needs.h"

struct read_ahead;

/* ahead: bytes of readahead=. The needs, whose next() no other thread calls, and the clock and the
 * counters must outlive it. 0; -ENOMEM or -EAGAIN: no thread runs. */
int read_ahead_start(struct needs *needs, uint64_t ahead, const struct clock *clock,
                     struct active_plans_counters *counters, struct read_ahead **ret);

/* A reader, or the push, has moved. Takes NULL. */
void read_ahead_kick(struct read_ahead *ahead);

/* Do the sources that are read exceed the memory? Takes NULL. Any thread. */
bool read_ahead_exceeds(const struct read_ahead *ahead);

/* Ask for nothing more; does not wait. Takes NULL. */
void read_ahead_quit(struct read_ahead *ahead);

/* End the thread, which may wait for a read of the disk. Called by one thread. Takes NULL. */
void read_ahead_stop(struct read_ahead *ahead);
void read_ahead_free(struct read_ahead *ahead); /* stopped, or NULL; nothing may kick it any more */

#endif
