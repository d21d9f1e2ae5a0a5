/* How much memory this process may use for caches. */
#ifndef EPOCHFS_BASE_MEMORY_H
#define EPOCHFS_BASE_MEMORY_H

#include <stdint.h>

/* Bytes of the machine, or of the smallest cgroup around this process that is limited.
 */
uint64_t memory_total(void);

/* Bytes available without pushing others out: of the machine, or of that cgroup. */
uint64_t memory_free(void);

#endif
