/* Push: what the active plans will read next is made ahead and stored into the kernel's page cache,
 * so that its first read costs no round trip. It is a wish: what goes wrong here is told to nobody
 * but the counters, for the read itself will tell it.
 *
 * A store may wait for a page that a read under way has locked. So it belongs to threads of its own
 * on which no reply depends, and they end before those that reply do. */
#ifndef EPOCHFS_FS_PUSH_PUSH_H
#define EPOCHFS_FS_PUSH_PUSH_H

#include <sys/types.h>

#include "cache/stage/stage.h"
#include "fs/drive/active_plans.h"
#include "fs/tree/view.h"

struct fuse_session;
struct push;

/* What is pushed, and where to. All of it outlives the push. */
struct push_setup {
    struct view *view;                 /* makes the bytes */
    struct active_plans *active_plans; /* know what is read next */
    struct stage *stage;               /* NULL: the source is read in place */
    const struct stage_options *options;
    struct fuse_session *session;
    const char *mountpoint;
    dev_t device; /* of the mount, as stat() tells it */
};

/* Start the threads. 0 or -errno; push_stop() then, too. */
int push_start(const struct push_setup *setup, struct push **ret);

/* There may be something to push. Takes NULL. */
void push_kick(struct push *push);

/* Begin nothing more; does not wait. Takes NULL. Any thread. */
void push_quit(struct push *push);

/* End the threads: reads must still be answered meanwhile, or the mount be gone. The bytes that
 * they wait for must have been let go by stage_end(). By one thread. Takes NULL. */
void push_stop(struct push *push);
void push_free(struct push *push); /* stopped, or NULL; nobody may kick it any more */

#endif
