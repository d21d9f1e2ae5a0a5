/* The processors that this process may run on. */
#ifndef EPOCHFS_BASE_PROCESSORS_H
#define EPOCHFS_BASE_PROCESSORS_H

#include <stdint.h>

/* Nanoseconds that they have been idle in all, summed, since some moment; it only grows, in steps
 * of 10 ms. UINT64_MAX: this system does not tell. Reads a file of the kernel. Any thread. */
uint64_t processors_idle_ns(void);

#endif
