/* Listings: kept between mounts, and as lists of files for those that look at each file. */
#include "cache/source/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/checked.h"
#include "cache/disk/index_files.h"
#include "cache/source/source.h"
#include "cache/stage/transport.h"

#define KIND "listing"

/* A folder that was changed so shortly before it was listed may be changed again without another
 * time: clocks of file systems are coarse, and may differ from ours. */
#define SETTLED_NS INT64_C(2000000000)

/* How the bytes of a kept listing begin: then come folders, and the table. */
struct kept_head {
    uint64_t magic, hash; /* of all that follows */
    uint64_t n_folders;
};

/* ---- kept ---- */

static int identity_of(const struct source *source, char **ret)
{
    return asprintf(ret, "listing 2 %u:%u %d %s", (unsigned)geteuid(), (unsigned)getegid(),
                    source->within.allow_outside, source->root) < 0
               ? -ENOMEM
               : 0;
}

/* May the cache folder have listings? Most sources have too few files for one, and a mount of these
 * makes no cache folder, and says nothing of one that cannot be used. */
static bool may_have_kept(const struct source *source)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/" KIND, source->cache.path) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

void listing_forget(const struct source *source)
{
    AUTO_FREE char *identity = NULL;
    struct index_files keep;

    if (source->remote->far || !may_have_kept(source) || identity_of(source, &identity) < 0)
        return;
    index_files_init(&keep, &source->cache);
    index_store_remove(&keep.keep, KIND, identity);
}

/* Are all folders as they were? */
static bool is_current(const struct source *source, const struct listing *listing)
{
    AUTO_CLOSE int root = open(source->root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (uint32_t i = 0; i < listing->files.n_folders; i++) {
        const char *path = members_folder(&listing->files, i);
        struct listing_folder now;
        struct stat st;

        if (root < 0 || fstatat(root, *path ? path : ".", &st, 0) < 0)
            return false;
        listing_state(&st, &now);
        if (memcmp(now.state, listing->folder[i].state, sizeof(now.state)) != 0)
            return false;
    }
    return true;
}

int listing_take_kept(struct listing *listing)
{
    const struct kept_index *kept = &listing->kept;
    struct kept_head head;
    uint64_t folders;
    int r;

    if (kept->size < sizeof(head))
        return -EBADMSG;
    memcpy(&head, kept->bytes, sizeof(head));
    if (head.magic != LISTING_MAGIC ||
        head.hash != XXH3_64bits(kept->bytes + 16, kept->size - 16) ||
        !checked_mul(head.n_folders, sizeof(*listing->folder), &folders) ||
        folders > kept->size - sizeof(head))
        return -EBADMSG;
    r = members_from_bytes(kept->bytes + sizeof(head) + folders,
                           kept->size - sizeof(head) - folders, &listing->files);
    listing->folder = (struct listing_folder *)(uintptr_t)(kept->bytes + sizeof(head));
    return r == 0 && listing->files.n_folders != head.n_folders ? -EBADMSG : r;
}

/* 0, or -ENOENT: none was kept that is good. */
static int load(const struct source *source, const struct index_store *keep, const char *identity,
                struct listing *ret)
{
    AUTO_LISTING struct listing listing = {0};

    if (index_store_load(keep, KIND, identity, &listing.kept) < 0)
        return -ENOENT;
    if (listing_take_kept(&listing) < 0 || !is_current(source, &listing)) {
        index_store_remove(keep, KIND, identity);
        return -ENOENT;
    }
    *ret = listing;
    listing = (struct listing){0};
    return 0;
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

/* Keep a listing for the next mount. It is not worth a message if that is not possible. */
static void save(const struct source *source, const struct index_store *keep, const char *identity,
                 const struct listing *listing)
{
    struct kept_head head = {.magic = LISTING_MAGIC, .n_folders = listing->files.n_folders};
    AUTO(kept_index_release) struct kept_index again = {0};
    XXH3_state_t *state = XXH3_createState();
    struct iovec piece[2 + MEMBERS_PIECES];
    struct members_head members;
    struct diag d = DIAG_INIT;

    if (!state)
        return;
    members_bytes(&listing->files, &members, piece + 2);
    piece[0] = (struct iovec){&head, sizeof(head)};
    piece[1] = (struct iovec){listing->folder, listing->files.n_folders * sizeof(*listing->folder)};
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &head.n_folders, sizeof(head.n_folders));
    for (unsigned i = 1; i < ARRAY_LEN(piece); i++)
        XXH3_64bits_update(state, piece[i].iov_base, piece[i].iov_len);
    head.hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    index_store_save(keep, KIND, identity, source->root, piece, ARRAY_LEN(piece), &again, &d);
}

static int local_listing(const struct source *source, int64_t now, struct listing *ret,
                         struct diag *d)
{
    AUTO_FREE char *identity = NULL;
    struct index_files keep;
    int r = identity_of(source, &identity);

    if (r < 0)
        return r;
    index_files_init(&keep, &source->cache);
    /* Who may read a file is asked anew each time. */
    if (!source->within.for_others && may_have_kept(source) &&
        load(source, &keep.keep, identity, ret) == 0)
        return 0;
    r = listing_scan(source, ret, d);
    if (r == 0 && !source->within.for_others && ret->files.n >= LISTING_KEPT && !ret->failed.n &&
        has_settled(ret, now))
        save(source, &keep.keep, identity, ret);
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
    if (source->only_file || !source->remote->join)
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
