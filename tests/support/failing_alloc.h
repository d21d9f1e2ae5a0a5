/* Allocations that fail as a test says. fail_allocations() in tests/unit/CMakeLists.txt makes the
 * linker redirect all our allocations, but not those of libraries, to failing_alloc.c. For tests
 * that allocate in one thread. */
#ifndef EPOCHFS_TESTS_SUPPORT_FAILING_ALLOC_H
#define EPOCHFS_TESTS_SUPPORT_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Count from now on, and let allocation n = 1, 2, 3 ... fail; 0: none. */
void failing_alloc_begin(unsigned long n);

/* No allocation fails any more. True if the n-th one was reached, and so failed. */
bool failing_alloc_end(void);

/* The number of the allocation that fails; 0: none. */
unsigned long failing_alloc_at(void);

/* Since failing_alloc_begin(): allocations less those freed; bytes of the largest malloc(). */
long failing_alloc_live(void);
size_t failing_alloc_largest(void);

#endif
