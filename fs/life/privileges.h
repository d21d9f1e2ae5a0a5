/* What a daemon may do, and what others may do with it.
 *
 * A mount needs privileges to be made. Of these, what serves it keeps the few that are needed
 * later; docs/internals/life-of-a-mount.md says for what. */
#ifndef EPOCHFS_FS_LIFE_PRIVILEGES_H
#define EPOCHFS_FS_LIFE_PRIVILEGES_H

#include <stdbool.h>

/* Keep the capabilities that a serving daemon needs, if we have any. Root, who unmounts without
 * help, gives up for himself and for what he runs to become more by it. By a process of one thread.
 * 0 or -errno. */
int privileges_reduce(void);

/* Give up all of them, also those that running a program could bring. Only system calls. */
void privileges_give_up(void);

/* Have the kernel look for others first when memory is short, if we may and nobody has chosen
 * anything else. */
void privileges_spare_from_oom(void);

/* From now on memory has secrets: no core dumps, and no debugger of the same user. */
void privileges_hide_memory(void);

#endif
