/* How much memory this process may use for caches, and how much it uses. */
#ifndef EPOCHFS_BASE_MEMORY_H
#define EPOCHFS_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the machine, or of the smallest cgroup around this process that is limited.
 */
uint64_t memory_total(void);

/* Bytes available without pushing others out: of the machine, or of that cgroup. */
uint64_t memory_free(void);

struct memory_used {
    uint64_t resident; /* bytes that are in memory now, shared ones and those of files as well */
    uint64_t
        allocated;   /* bytes allocated and not freed; some were never touched, so not resident */
    uint64_t unused; /* bytes freed that the allocator keeps for later */
};

/* For this process. All 0 where it is not known. */
struct memory_used memory_used(void);

/* Memory for an array of n elements of size bytes, with large pages if it is large: to find a small
 * page for each look-up, or to make a million of them, takes long. NULL: none. For free(). */
void *memory_array(uint64_t n, size_t size);

/* Memory that is kept because it may save work, as far as its limit. */
struct memory_held {
    uint64_t bytes, limit;
};

struct memory_holder {
    const char *what;
    struct memory_held (*held)(void *owner); /* any thread; memory only */
    void *owner;
};

#endif
