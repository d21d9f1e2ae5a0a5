/* What files take of a quota: one growing file; all files of a folder; those that no process uses.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "cache/disk/inventory.h"
#include "cache/disk/quota.h"

#define DISK_BLOCK  4096 /* the quota counts these, as files take them */
#define COUNT_SHARE 16   /* a share is counted again when so much of its limit was taken */

/* ---- allowances ----
 *
 * Each write is reported to the quota at once: a count of the files finds the written bytes in the
 * file, and counts them as in flight, until they are reported. */

static uint64_t on_disk(uint64_t size)
{
    return ceil_div(size, DISK_BLOCK) * DISK_BLOCK;
}

/* After needed + more was refused: how much of `more` can still be taken with `want`; less than
 * more, perhaps 0. */
static uint64_t less_ahead(const struct allowance *a, uint64_t needed, uint64_t more)
{
    uint64_t limit = quota_limit(a->quota), used = quota_used(a->quota), left;

    left = limit > used ? limit - used : 0;
    left = left > needed ? (left - needed) / DISK_BLOCK * DISK_BLOCK : 0;
    return left < more ? left : 0;
}

int allowance_raise(struct allowance *a, uint64_t size, uint64_t ahead)
{
    uint64_t needed, more;
    int r = 0;

    if (!a->quota || size <= a->taken)
        return 0;
    if (size > INT64_MAX || ahead > INT64_MAX / 2)
        return -EFBIG;
    needed = on_disk(size) - a->taken;
    more = on_disk(ahead);
    while ((r = quota_take(a->quota, needed + more)) == -ENOSPC && more)
        more = less_ahead(a, needed, more);
    if (r == 0)
        a->taken += needed + more;
    else if (r == -ENOSPC)
        a->wanted = size;
    return r;
}

void allowance_written(struct allowance *a, uint64_t size)
{
    uint64_t written = min_u64(on_disk(size), a->taken);

    if (!a->quota || written <= a->settled)
        return;
    quota_settle(a->quota, written - a->settled);
    a->settled = written;
}

void allowance_end(struct allowance *a, uint64_t size)
{
    allowance_written(a, size);
    if (a->quota && a->taken > a->settled)
        quota_give_back(a->quota, a->taken - a->settled);
    a->taken = a->settled;
}

void allowance_drop(struct allowance *a, int fd)
{
    uint64_t mark = a->quota ? quota_mark(a->quota) : 0;
    int r = ftruncate(fd, 0);

    if (!a->quota)
        return;
    if (r == 0 && a->settled)
        quota_freed(a->quota, a->settled, mark);
    if (a->taken > a->settled)
        quota_give_back(a->quota, a->taken - a->settled);
    a->taken = a->settled = 0;
}

int allowance_refused(const struct allowance *a, const char *folder, struct diag *d)
{
    const char *slash = strrchr(folder, '/');

    return diag_set(d, -ENOSPC,
                    "expected space for at least %llu bytes in the cache folder %.*s, got %llu of "
                    "its limit of %llu in use; see cache_size= and `epochfs cache prune`",
                    (unsigned long long)a->wanted,
                    (int)(slash && slash > folder ? slash - folder : (int)strlen(folder)), folder,
                    (unsigned long long)quota_used(a->quota),
                    (unsigned long long)quota_limit(a->quota));
}

/* ---- unused files, and shares ---- */

uint64_t quota_remove_unused(struct quota *quota, const struct inventory *inventory,
                             bool (*may_go)(const void *ctx, const struct inventory_file *),
                             const void *ctx, uint64_t bytes)
{
    uint64_t freed = 0;

    for (size_t i = 0; i < inventory->n && freed < bytes; i++) {
        const struct inventory_file *file = &inventory->file[i];
        uint64_t mark = quota ? quota_mark(quota) : 0;

        if (file->in_use || !may_go(ctx, file) || inventory_remove(inventory, file) < 0)
            continue;
        freed += file->disk;
        if (quota)
            quota_freed(quota, file->disk, mark);
    }
    return freed;
}

static bool is_of_share(const void *ctx, const struct inventory_file *file)
{
    return !strcmp(file->folder, ((const struct quota_share *)ctx)->folder);
}

/* Count what all files take, and remove unused ones until `bytes` more fit. 0 or -errno. */
static int share_count_locked(struct quota_share *share, uint64_t bytes)
{
    AUTO_INVENTORY struct inventory inventory = {0};
    uint64_t used = 0;
    int r;

    lock_assert_held(&share->lock);
    r = inventory_take(share->cache, &inventory, NULL);
    if (r < 0)
        return r;
    for (size_t i = 0; i < inventory.n; i++)
        used += is_of_share(share, &inventory.file[i]) ? inventory.file[i].disk : 0;
    if (used + bytes > share->limit)
        used -= min_u64(quota_remove_unused(share->cache->quota, &inventory, is_of_share, share,
                                            used + bytes - share->limit),
                        used);
    share->used = used;
    share->uncounted = 0;
    share->is_counted = true;
    return 0;
}

int quota_share_take(struct quota_share *share, uint64_t bytes)
{
    int r = 0;
    LOCK_SCOPE(&share->lock);

    if (!share->is_counted || share->used + bytes > share->limit ||
        share->uncounted > share->limit / COUNT_SHARE)
        r = share_count_locked(share, bytes);
    if (r < 0)
        return r == -ENOSPC ? -EIO : r;
    if (share->used + bytes > share->limit)
        return -ENOSPC;
    share->used += bytes;
    share->uncounted += bytes;
    return 0;
}
