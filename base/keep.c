#include "base/keep.h"

#include <sys/mman.h>

void kept_release(struct kept *kept)
{
    if (kept->bytes)
        munmap((void *)(uintptr_t)kept->bytes, kept->size);
    *kept = (struct kept){0};
}
