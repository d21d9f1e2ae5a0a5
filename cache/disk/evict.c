#include "cache/disk/evict.h"

#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/disk/quota.h"

#define AGAIN_S 30 /* after all that was unused had gone */
#define SHARE   64 /* part of the limit that is freed at a time, at least */

uint64_t evict_files(const struct inventory *inventory, const struct evict *evict, uint64_t bytes)
{
    uint64_t freed = 0;

    for (size_t i = 0; i < inventory->n && freed < bytes; i++) {
        const struct inventory_file *file = &inventory->file[i];
        uint64_t mark = evict->quota ? quota_mark(evict->quota) : 0;

        if (file->in_use || !evict->may_go(evict->ctx, file) ||
            inventory_remove(inventory, file) < 0)
            continue;
        freed += file->disk;
        if (evict->quota)
            quota_freed(evict->quota, file->disk, mark);
    }
    return freed;
}

/* ---- evictors ---- */

void evictor_init(struct evictor *ret, const struct cache_folder *folder, const struct clock *clock)
{
    *ret = (struct evictor){
        .folder = folder, .clock = clock, .began = (time_t)(now_ns() / 1000000000)};
    lock_init(&ret->lock);
}

void evictor_release(struct evictor *evictor)
{
    lock_release(&evictor->lock);
}

static bool may_go(void *ctx, const struct inventory_file *file)
{
    const struct evictor *evictor = ctx;

    if (file->used >= evictor->began)
        return false;
    if (file->is_staged)
        return !file->source || !evictor->keeps || !evictor->keeps(evictor->ctx, file->source);
    return file->is_part || !strcmp(file->kind, "unpacked");
}

uint64_t evictor_could_free(struct evictor *evictor)
{
    AUTO_INVENTORY struct inventory inventory = {0};
    uint64_t bytes = 0;

    if (inventory_take(evictor->folder, &inventory, NULL) < 0)
        return 0;
    for (size_t i = 0; i < inventory.n; i++)
        if (!inventory.file[i].in_use && may_go(evictor, &inventory.file[i]))
            bytes += inventory.file[i].disk;
    return bytes;
}

static bool begins(struct evictor *evictor)
{
    LOCK_SCOPE(&evictor->lock);

    if (evictor->is_busy || clock_monotonic(evictor->clock) < evictor->next)
        return false;
    evictor->is_busy = true;
    return true;
}

bool evictor_free_space(struct evictor *evictor, struct quota *quota, uint64_t bytes)
{
    AUTO_INVENTORY struct inventory inventory = {0};
    const struct evict evict = {may_go, evictor, quota};
    uint64_t freed = 0;

    if (!begins(evictor))
        return false;
    bytes += quota_limit(quota) / SHARE;
    if (inventory_take(evictor->folder, &inventory, NULL) == 0)
        freed = evict_files(&inventory, &evict, bytes);
    LOCK_SCOPE(&evictor->lock);

    evictor->is_busy = false;
    if (freed < bytes)
        evictor->next = clock_monotonic(evictor->clock) + AGAIN_S * INT64_C(1000000000);
    return freed;
}
