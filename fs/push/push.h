/* Push: makes what the active plans will read next ahead of time, and stores it into the kernel's
 * page cache, so that its first read costs no round trip. Push is best effort: failures are only
 * counted, because the read itself will report them.
 *
 * A store may wait for a page that a read under way has locked. So stores run in threads of their
 * own, on which no reply depends; they end before the threads that reply. */
#ifndef EPOCHFS_FS_PUSH_PUSH_H
#define EPOCHFS_FS_PUSH_PUSH_H

#include <sys/types.h>

#include "base/clock.h"
#include "cache/stage/stage.h"
#include "fs/drive/active_plans.h"
#include "fs/push/read_ahead.h"
#include "fs/tree/view.h"

struct fuse_session;
struct push;

/* What is pushed, and where. All of it must outlive the push. */
struct push_setup {
    struct open_files *open_files;     /* makes the bytes */
    struct active_plans *active_plans; /* say what is read next */
    struct stage *stage;               /* NULL: the source is read in place, */
    struct needs *needs;               /* and these are asked for on its disk; NULL: nothing is */
    uint64_t ahead;                    /* bytes of readahead= */
    const struct stage_options *options;
    struct fuse_session *session;
    const char *mountpoint;
    const struct clock *clock;  /* that of active_plans */
    dev_t device;               /* of the mount, as stat() reports it */
    const _Atomic bool *passes; /* the kernel reads files of this machine itself */
};

/* Start the threads, fewer where the system has no more. 0, or -errno and none runs. */
int push_start(const struct push_setup *setup, struct push **ret);

/* Report that there may be something to push. Takes NULL. */
void push_kick(struct push *push);

/* Begin nothing more; does not wait. Takes NULL. Any thread. */
void push_quit(struct push *push);

/* End the threads. Until it returns, reads must still be answered, or the mount be gone; and
 * stage_end() must have released the threads that wait for bytes. Called by one thread. Takes NULL.
 */
void push_stop(struct push *push);
void push_free(struct push *push); /* stopped, or NULL; no thread may kick it any more */

#endif
