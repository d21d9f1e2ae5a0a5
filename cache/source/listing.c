/* Listings of local folders: a walk over all folders below one, kept between mounts. The files of a
 * folder are added before its folders are entered, both in the order of their names. */
#include "cache/source/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cache/source/kept_list.h"
#include "cache/source/source.h"
#include "cache/source/within.h"

/* A folder that was changed so shortly before it was listed may be changed again without another
 * time: clocks of file systems are coarse, and may differ from ours. */
#define SETTLED_NS INT64_C(2000000000)

/* Depth of folders below SOURCE. Each one being scanned takes some stack. */
#define DEPTH_MOST 100

/* ---- the walk ---- */

static void listing_state(const struct stat *st, struct listing_folder *ret)
{
    ret->state[0] = st->st_ino;
    ret->state[1] = (uint64_t)timespec_ns(&st->st_mtim);
    ret->state[2] = (uint64_t)timespec_ns(&st->st_ctim);
}

/* A folder being scanned, and its parents: links may form circles. */
struct level {
    const struct level *above;
    unsigned depth;
    const char *folder; /* relative to SOURCE */
    const char *path;
    struct stat st;
};

struct scan {
    const struct source *source;
    struct known *listing;
    struct diag *d;
};

/* What is in a folder, by name. */
struct names {
    int n;
    struct dirent **entry; /* [n] each owned */
};

static void names_release(struct names *names)
{
    for (int i = 0; i < names->n; i++)
        free(names->entry[i]);
    free(names->entry);
}

static int listing_shows(const struct dirent *entry)
{
    return *entry->d_name != '.';
}

/* Describe why a name leads nowhere. git-annex leaves links to objects that are elsewhere. Returns
 * the -errno; a file that can be fetched is not -ENOENT. */
static int describe_dangling(const char *path, const char *relative, int err, char *ret,
                             size_t capacity)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target) - 1);

    target[n > 0 ? n : 0] = '\0';
    if (strstr(target, "annex/objects")) {
        snprintf(ret, capacity,
                 "%s: a git-annex link whose content is not here: expected the file, got a link to "
                 "%.300s; fetch it with `git annex get`",
                 relative, target);
        return -ENOMEDIUM;
    }
    if (n > 0)
        snprintf(ret, capacity, "%s: a link to %.300s: %s", relative, target, strerror(err));
    else
        snprintf(ret, capacity, "%s: %s", relative, strerror(err));
    return -err;
}

/* ---- files ---- */

/* With allow_other: the permission bits of a file count as far as the folders on the way let its
 * users pass. */
static unsigned mode_of(const struct scan *scan, const char *path, const struct stat *st)
{
    char real[PATH_MAX];

    if (!scan->source->within.for_others)
        return st->st_mode & 0777;
    return realpath(path, real) ? within_mode(&scan->source->within, -1, path, real, st) : 0;
}

/* What holds for all files of a folder, with one file more. */
static void add_to_folder(struct listing_folder *f, bool first, const struct stat *st,
                          unsigned mode)
{
    if (first) {
        f->uid = st->st_uid;
        f->gid = st->st_gid;
        f->mode = mode;
    } else {
        f->mode &= access_classes(f->uid, f->gid, st->st_uid, st->st_gid, mode, 4);
    }
    if (first || st->st_mtim.tv_sec > f->latest_s ||
        (st->st_mtim.tv_sec == f->latest_s && (uint32_t)st->st_mtim.tv_nsec > f->latest_ns)) {
        f->latest_s = st->st_mtim.tv_sec;
        f->latest_ns = (uint32_t)st->st_mtim.tv_nsec;
    }
}

static int listing_add_file(const struct scan *scan, uint32_t folder, const char *name,
                            bool may_be_link, const char *path, const char *relative,
                            const struct stat *st)
{
    struct members *files = &scan->listing->files;
    bool first = !files->n || files->member[files->n - 1].folder != folder;
    struct diag outside = DIAG_INIT;
    char real[PATH_MAX];
    struct member version;
    struct stat link;
    int r = 0;

    if (may_be_link && lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && realpath(path, real))
        r = within_check_real(&scan->source->within, real, relative, &outside);
    if (r < 0)
        return known_add_failed(scan->listing, relative, outside.text, r);
    joined_version_of_stat(st, &version);
    r = members_add(files, folder, name, (uint64_t)st->st_size, version.version);
    if (r == 0)
        r = members_set_more(files, files->n - 1, version.more, NULL);
    if (r == 0)
        add_to_folder(&scan->listing->folder[folder], first, st, mode_of(scan, path, st));
    return r == -E2BIG
               ? diag_set(scan->d, r, "%s: too many files, or too large, for one mount", relative)
               : r;
}

/* ---- folders ---- */

static int scan_folder(const struct scan *scan, const struct level *level);

/* Enter a folder, unless it is one of those above. */
static int enter(const struct scan *scan, const struct level *level, const char *relative,
                 const char *path, const struct stat *st)
{
    for (const struct level *l = level; l; l = l->above)
        if (l->st.st_dev == st->st_dev && l->st.st_ino == st->st_ino)
            return 0;
    return scan_folder(scan, &(struct level){.above = level,
                                             .depth = level->depth + 1,
                                             .folder = relative,
                                             .path = path,
                                             .st = *st});
}

/* Add the file of that name, or enter the folder: one of the two, as wanted. */
static int scan_name(const struct scan *scan, const struct level *level, uint32_t folder,
                     const struct dirent *entry, bool folders)
{
    char relative[PATH_MAX + NAME_MAX + 2], path[PATH_MAX], error[PATH_MAX + 512];
    const char *name = entry->d_name;
    struct stat st;

    snprintf(relative, sizeof(relative), "%s%s%s", level->folder, *level->folder ? "/" : "", name);
    if (strlen(relative) >= PATH_MAX || path_below(level->path, name, path) < 0) {
        snprintf(error, sizeof(error), "%.200s...: expected a path of at most %d bytes, got more",
                 level->folder, PATH_MAX - 1);
        return folders ? 0 : known_add_failed(scan->listing, relative, error, -EINVAL);
    }
    if (stat(path, &st) < 0) {
        int failure = describe_dangling(path, relative, errno, error, sizeof(error));

        return folders ? 0 : known_add_failed(scan->listing, relative, error, failure);
    }
    if (folders)
        return S_ISDIR(st.st_mode) ? enter(scan, level, relative, path, &st) : 0;
    /* Not a device, a pipe, a socket. */
    return S_ISREG(st.st_mode)
               ? listing_add_file(scan, folder, name, entry->d_type != DT_REG, path, relative, &st)
               : 0;
}

/* By bytes: alphasort() compares as the locale of the process does. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_names(const struct scan *scan, const struct level *level, struct names *ret,
                      struct diag *d)
{
    AUTO_CLOSE int fd = open(level->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r =
        fd < 0 ? -errno : within_check(&scan->source->within, fd, level->path, level->folder, d);
    int n = r < 0 ? 0 : scandirat(fd, ".", &ret->entry, listing_shows, compare_names);

    if (n < 0)
        r = -errno;
    if (r < 0)
        return diag_set(d, r, "%s: %s", *level->folder ? level->folder : level->path, strerror(-r));
    ret->n = n;
    return 0;
}

static int listing_add_folder(const struct scan *scan, const struct level *level, uint32_t *ret)
{
    struct known *listing = scan->listing;
    uint32_t n = listing->files.n_folders;

    if (array_capacity(&listing->folder, n, sizeof(*listing->folder)) < 0)
        return -ENOMEM;
    listing->folder[n] = (struct listing_folder){0};
    listing_state(&level->st, &listing->folder[n]);
    return members_add_folder(&listing->files, level->folder, ret);
}

static int scan_folder(const struct scan *scan, const struct level *level)
{
    AUTO(names_release) struct names names = {0};
    struct diag why = DIAG_INIT;
    char error[PATH_MAX + 128];
    uint32_t folder;
    int r;

    if (level->depth > DEPTH_MOST) {
        snprintf(error, sizeof(error),
                 "%s: expected at most %d folders on the way from SOURCE, got more; mount a folder "
                 "further down",
                 level->folder, DEPTH_MOST);
        return known_add_failed(scan->listing, level->folder, error, -EINVAL);
    }
    r = read_names(scan, level, &names, &why);
    if (r == -ENOMEM || (r < 0 && !*level->folder))
        return diag_set(scan->d, r, "%s", diag_text(&why, r));
    if (r < 0)
        r = known_add_failed(scan->listing, level->folder, diag_text(&why, r), r);
    /* One that cannot be read is a folder all the same, without files: as a class it has a number.
     */
    if (r == 0)
        r = listing_add_folder(scan, level, &folder);
    for (int i = 0; i < names.n && r == 0; i++)
        if (names.entry[i]->d_type != DT_DIR)
            r = scan_name(scan, level, folder, names.entry[i], false);
    for (int i = 0; i < names.n && r == 0; i++)
        if (names.entry[i]->d_type != DT_REG)
            r = scan_name(scan, level, folder, names.entry[i], true);
    return r;
}

int listing_scan(const struct source *source, struct known *ret, struct diag *d)
{
    struct scan scan = {source, ret, d};
    struct level top = {.folder = "", .path = source->root};

    return stat(source->root, &top.st) < 0
               ? diag_set(d, -errno, "%s: %s", source->root, strerror(errno))
               : scan_folder(&scan, &top);
}

/* ---- kept ---- */

/* Are all folders as they were? */
static bool is_current(const struct source *source, const struct known *kept)
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
    AUTO_KNOWN struct known kept = {0};
    int r;

    if (kept_list_load(source, NULL, &kept) == 0) {
        if (is_current(source, &kept)) {
            known_replace(ret, &kept);
            return 0;
        }
        kept_list_forget(source);
    }
    r = listing_scan(source, ret, d);
    if (r == 0 && ret->files.n >= LISTING_KEPT && !ret->failed.n && has_settled(ret, now))
        kept_list_save(source, ret);
    return r;
}

int source_listing(const struct source *source, int64_t now, struct known *local,
                   struct known **ret, struct diag *d)
{
    bool far = source->remote->far;

    if (source->only_file || source->remote->ordered)
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
