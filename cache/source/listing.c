/* Listings of local folders, kept between mounts. */
#include "cache/source/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/source/kept_list.h"
#include "cache/source/source.h"
#include "cache/stage/transport.h"

/* A folder that was changed so shortly before it was listed may be changed again without another
 * time: clocks of file systems are coarse, and may differ from ours. */
#define SETTLED_NS INT64_C(2000000000)

/* Are all folders as they were? */
static bool is_current(const struct source *source, const struct kept_list *kept)
{
    AUTO_CLOSE int root = open(source->root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (uint32_t i = 0; i < kept->files.n_folders; i++) {
        const char *path = members_folder(&kept->files, i);
        struct listing_folder now;
        struct stat st;

        if (root < 0 || fstatat(root, *path ? path : ".", &st, 0) < 0)
            return false;
        listing_state(&st, &now);
        if (memcmp(now.state, kept->folder[i].state, sizeof(now.state)) != 0)
            return false;
    }
    return true;
}

/* Nothing may have changed while the listing was made, or so shortly before that it cannot be
 * seen. */
static bool has_settled(const struct known *listing, int64_t now)
{
    uint64_t most = (uint64_t)(now - SETTLED_NS);

    for (uint32_t i = 0; i < listing->files.n_folders; i++)
        if (listing->folder[i].state[1] > most || listing->folder[i].state[2] > most)
            return false;
    return true;
}

static int local_listing(const struct source *source, int64_t now, struct known *ret,
                         struct diag *d)
{
    AUTO_KEPT_LIST struct kept_list kept = {0};
    int r;

    if (kept_list_load(source, NULL, &kept) == 0) {
        if (is_current(source, &kept)) {
            known_use(ret, &kept);
            return 0;
        }
        kept_list_forget(source);
    }
    r = listing_scan(source, ret, d);
    if (r == 0 && ret->files.n >= LISTING_KEPT && !ret->failed.n && has_settled(ret, now))
        kept_list_save(source, &(struct kept_list){.folder = ret->folder}, &ret->files);
    return r;
}

int source_listing(const struct source *source, int64_t now, struct known *local,
                   struct known **ret, struct diag *d)
{
    bool far = source->remote->far;

    if (source->only_file || (!source->remote->join && !far))
        return -EOPNOTSUPP;
    *ret = far ? known_of(source) : local;
    return far ? 0 : local_listing(source, now, local, d);
}

void listing_head(const struct known *listing, const uint32_t *file, size_t n,
                  struct joined_head *ret)
{
    uint32_t last = UINT32_MAX;

    *ret = (struct joined_head){.mode = 0777};
    if (!listing->folder)
        *ret = (struct joined_head){.mode = 0444, .uid = geteuid(), .gid = getegid()};
    for (size_t i = 0; listing->folder && i < n; i++) {
        uint32_t number = listing->files.member[file[i]].folder;
        const struct listing_folder *f = &listing->folder[number];

        if (number == last)
            continue;
        if (last == UINT32_MAX)
            *ret = (struct joined_head){.mode = f->mode, .uid = f->uid, .gid = f->gid};
        last = number;
        ret->mode &= access_classes(ret->uid, ret->gid, f->uid, f->gid, f->mode, 4) | ~0444u;
        if (f->latest_s > ret->mtime.tv_sec ||
            (f->latest_s == ret->mtime.tv_sec && f->latest_ns > ret->mtime.tv_nsec))
            ret->mtime = (struct timespec){f->latest_s, f->latest_ns};
    }
}
