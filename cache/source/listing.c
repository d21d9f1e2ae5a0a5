/* Listings: kept between mounts, and as lists of files for those that look at each file. */
#include "cache/source/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/source/kept_list.h"
#include "cache/source/source.h"
#include "cache/stage/transport.h"

/* A folder that was changed so shortly before it was listed may be changed again without another
 * time: clocks of file systems are coarse, and may differ from ours. */
#define SETTLED_NS INT64_C(2000000000)

/* ---- kept ---- */

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
static bool has_settled(const struct listing *listing, int64_t now)
{
    uint64_t most = (uint64_t)(now - SETTLED_NS);

    for (uint32_t i = 0; i < listing->files.n_folders; i++)
        if (listing->folder[i].state[1] > most || listing->folder[i].state[2] > most)
            return false;
    return true;
}

static int local_listing(const struct source *source, int64_t now, struct listing *ret,
                         struct diag *d)
{
    AUTO_KEPT_LIST struct kept_list kept = {0};
    int r;

    if (kept_list_load(source, NULL, &kept) == 0) {
        if (is_current(source, &kept)) {
            *ret = (struct listing){.files = kept.files, .folder = kept.folder, .kept = kept.bytes};
            kept = (struct kept_list){0};
            return 0;
        }
        kept_list_forget(source);
    }
    r = listing_scan(source, ret, d);
    if (r == 0 && ret->files.n >= LISTING_KEPT && !ret->failed.n && has_settled(ret, now))
        kept_list_save(source, &(struct kept_list){.folder = ret->folder}, &ret->files);
    return r;
}

/* ---- of remotes ---- */

/* The files are those of source->known, in the same table. */
static int remote_listing(const struct source *source, struct listing *ret)
{
    const struct known *known = &source->known;
    AUTO_LISTING struct listing listing = {.files = known->files};
    int r = 0;

    listing.files.borrowed = true;
    for (size_t i = 0; i < known->failed.n && r == 0; i++)
        r = source_list_copy(&listing.failed, &known->failed.entry[i]);
    listing.folder = calloc(listing.files.n_folders + 1, sizeof(*listing.folder));
    if (r < 0 || !listing.folder)
        return r < 0 ? r : -ENOMEM;
    for (uint32_t i = 0; i < listing.files.n_folders; i++)
        listing.folder[i] =
            (struct listing_folder){.mode = 0444, .uid = geteuid(), .gid = getegid()};
    *ret = listing;
    listing = (struct listing){0};
    return 0;
}

int source_listing(const struct source *source, int64_t now, struct listing *ret, struct diag *d)
{
    if (source->only_file || (!source->remote->join && !source->remote->far))
        return -EOPNOTSUPP;
    return source->remote->far ? remote_listing(source, ret) : local_listing(source, now, ret, d);
}

/* ---- what is made of it ---- */

int listing_entry(const struct source *source, const struct listing *listing, size_t i,
                  struct source_entry *ret)
{
    const struct members *files = &listing->files;

    if (source->remote->far)
        return known_entry(source, i, ret);
    *ret = (struct source_entry){.folder = strdup(members_folder_of(files, i)),
                                 .name = strdup(members_name(files, i))};
    if (ret->folder && ret->name)
        return 0;
    source_entry_release(ret);
    return -ENOMEM;
}

static int add_rest(const struct source *source, const struct listing *listing, size_t i,
                    struct source_list *ret)
{
    struct source_entry entry;
    int r = listing_entry(source, listing, i, &entry);

    return r < 0 ? r : source_list_take(ret, &entry);
}

int listing_rest(const struct source *source, const struct listing *listing, const uint8_t *taken,
                 struct source_list *ret)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    int r = 0;

    for (size_t i = 0; i < listing->files.n && r == 0; i++)
        if (!taken || !taken[i])
            r = add_rest(source, listing, i, &list);
    for (size_t i = 0; i < listing->failed.n && r == 0; i++)
        r = source_list_copy(&list, &listing->failed.entry[i]);
    if (r < 0)
        return r;
    source_list_sort(&list);
    *ret = list;
    list = (struct source_list){0};
    return 0;
}

int listing_end(const struct source *source, struct listing *listing, const uint8_t *joined)
{
    int r = source->remote->far ? known_drop(known_of(source), joined) : 0;

    listing_release(listing); /* its files may be gone */
    return r;
}

void listing_head(const struct listing *listing, const uint32_t *file, size_t n,
                  struct joined_head *ret)
{
    uint32_t last = UINT32_MAX;

    *ret = (struct joined_head){.mode = 0777};
    for (size_t i = 0; i < n; i++) {
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
