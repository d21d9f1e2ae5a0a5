/* Room is counted by disk blocks, as files take it. What is written is told to the room at once: a
 * count of the files finds it there, and in flight as well as long as it is not told. */
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

/* How much can be taken with `want`, where more was refused: 0 or less than that. */
static uint64_t less_ahead(const struct allowance *a, uint64_t want, uint64_t more)
{
    uint64_t limit = room_limit(a->room), used = room_used(a->room), left;

    left = limit > used ? limit - used : 0;
    left = left > want ? (left - want) / DISK_BLOCK * DISK_BLOCK : 0;
    return left < more ? left : 0;
}

int allowance_raise(struct allowance *a, uint64_t size, uint64_t ahead)
{
    uint64_t want, more;
    int r = 0;

    if (!a->room || size <= a->taken)
        return 0;
    if (size > INT64_MAX || ahead > INT64_MAX / 2)
        return -EFBIG;
    want = on_disk(size) - a->taken;
    more = on_disk(ahead);
    while ((r = room_take(a->room, want + more)) == -ENOSPC && more)
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

    if (!a->room || written <= a->settled)
        return;
    room_settle(a->room, written - a->settled);
    a->settled = written;
}

void allowance_end(struct allowance *a, uint64_t size)
{
    allowance_written(a, size);
    if (a->room && a->taken > a->settled)
        room_give_back(a->room, a->taken - a->settled);
    a->taken = a->settled;
}

void allowance_drop(struct allowance *a, int fd)
{
    uint64_t mark = a->room ? room_mark(a->room) : 0;
    int r = fd < 0 ? -1 : ftruncate(fd, 0);

    if (!a->room)
        return;
    if (r == 0 && a->settled)
        room_freed(a->room, a->settled, mark);
    if (a->taken > a->settled)
        room_give_back(a->room, a->taken - a->settled);
    a->taken = a->settled = 0;
}

int allowance_refused(const struct allowance *a, const char *folder, struct diag *d)
{
    const char *slash = strrchr(folder, '/');

    return diag_set(d, -ENOSPC,
                    "want at least %llu bytes of room in the cache folder %.*s, found %llu of the "
                    "limit %llu in use; see cache_size= and `epochfs cache prune`",
                    (unsigned long long)a->wanted,
                    (int)(slash && slash > folder ? slash - folder : (int)strlen(folder)), folder,
                    (unsigned long long)room_used(a->room),
                    (unsigned long long)room_limit(a->room));
}
