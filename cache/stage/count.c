/* How much is here already, for status and progress displays. */
#include "cache/stage/parts.h"

void stage_count(struct stage *stage)
{
    struct file *file;

    lock_take(&stage->lock);
    file = stage->files;
    lock_drop(&stage->lock);
    for (; file; file = atomic_load(&file->next)) {
        if (!file->blocks || file_take(file, NULL) < 0)
            continue;
        file_count(file);
        file_put(file);
    }
}

uint64_t stage_staged(const struct blob *blob)
{
    const struct file *file = (const struct file *)blob;

    return blob->ops == &stage_blob_ops ? atomic_load_explicit(&file->counted, memory_order_relaxed)
                                        : blob->size;
}
