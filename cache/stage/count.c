/* Counts how much is here already, for status and progress displays. */
#include "base/checked.h"
#include "cache/stage/parts.h"

#define RECORDS 512

static void count_file(struct file *file)
{
    struct stage *stage = file->stage;
    uint64_t record[RECORDS];

    for (uint64_t at = 0; at < file->blocks && !atomic_load(&stage->ending); at += RECORDS) {
        size_t n = (size_t)min_u64(RECORDS, file->blocks - at);

        staged_records(&file->staged, at, n, record);
        LOCK_SCOPE(&stage->lock);

        for (size_t i = 0; i < n; i++)
            if (record[i] && file_state(file, at + i) != BLOCK_COMING)
                file_count_locked(file, at + i);
    }
}

void stage_count(struct stage *stage)
{
    struct file *file;

    lock_take(&stage->lock);
    file = stage->files;
    lock_drop(&stage->lock);
    for (; file; file = atomic_load(&file->next)) {
        if (!file->blocks || file_take(file, NULL) < 0)
            continue;
        count_file(file);
        file_put(file);
    }
}

uint64_t stage_staged(const struct blob *blob)
{
    const struct file *file = (const struct file *)blob;

    return blob->ops == &stage_blob_ops ? atomic_load_explicit(&file->counted, memory_order_relaxed)
                                        : blob->size;
}
