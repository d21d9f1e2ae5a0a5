/* What a daemon may do, and what others may do with it.
 *
 * Mounting needs privileges. The daemon then keeps the few of them that serving needs;
 * docs/internals/life-of-a-mount.md says for what. */
#ifndef EPOCHFS_FS_LIFE_PRIVILEGES_H
#define EPOCHFS_FS_LIFE_PRIVILEGES_H

#include <stdbool.h>

/* Keep only the capabilities that a serving daemon needs, if we have any. For root, which needs no
 * helper to unmount, also prevent this process, and programs that it runs, from gaining more. Only
 * in a process of one thread. 0 or -errno. */
int privileges_reduce(void);

/* Give up all capabilities, and those that running a program could bring. Makes system calls only.
 */
void privileges_give_up(void);

/* Let the kernel kill other processes first when memory is short, if we may and the value still is
 * the default. */
void privileges_spare_from_oom(void);

/* From now on memory holds secrets: forbid core dumps, and debuggers of the same user. */
void privileges_hide_memory(void);

#endif
