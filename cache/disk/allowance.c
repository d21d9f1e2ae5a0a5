/* The quota counts disk blocks, as files take them. Each write is reported to the quota at once: a
 * count of the files finds the written bytes in the file, and counts them as in flight, too, until
 * they are reported. */
#include "cache/disk/allowance.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "cache/disk/quota.h"

#define DISK_BLOCK 4096

static uint64_t on_disk(uint64_t size)
{
    return ceil_div(size, DISK_BLOCK) * DISK_BLOCK;
}

/* After want + more was refused: how much of `more` can still be taken with `want`; less than more,
 * perhaps 0. */
static uint64_t less_ahead(const struct allowance *a, uint64_t want, uint64_t more)
{
    uint64_t limit = quota_limit(a->quota), used = quota_used(a->quota), left;

    left = limit > used ? limit - used : 0;
    left = left > want ? (left - want) / DISK_BLOCK * DISK_BLOCK : 0;
    return left < more ? left : 0;
}

int allowance_raise(struct allowance *a, uint64_t size, uint64_t ahead)
{
    uint64_t want, more;
    int r = 0;

    if (!a->quota || size <= a->taken)
        return 0;
    if (size > INT64_MAX || ahead > INT64_MAX / 2)
        return -EFBIG;
    want = on_disk(size) - a->taken;
    more = on_disk(ahead);
    while ((r = quota_take(a->quota, want + more)) == -ENOSPC && more)
        more = less_ahead(a, want, more);
    if (r == 0)
        a->taken += want + more;
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
    int r = fd < 0 ? -1 : ftruncate(fd, 0);

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
