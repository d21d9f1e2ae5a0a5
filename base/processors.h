/* The processors that this process may run on. */
#ifndef EPOCHFS_BASE_PROCESSORS_H
#define EPOCHFS_BASE_PROCESSORS_H

#include <stdint.h>

unsigned processors_count(void); /* that this process may use; at least 1 */

/* Nanoseconds that these processors have been idle, summed, since some fixed moment; only grows, in
 * steps of 10 ms. UINT64_MAX: not known on this system. Reads a file of the kernel. Any thread. */
uint64_t processors_idle_ns(void);

#endif
