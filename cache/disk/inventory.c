/* Is a file in use? All users of a file hold a lock on it: FILE_LOCK_USE. The maker of a part holds
 * its flock. Asking for locks of others disturbs no one, so any number of tools may do it at any
 * time. */
#include "cache/disk/inventory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/folder.h"
#include "cache/disk/local_file.h"
#include "cache/disk/made_files.h"
#include "cache/disk/staged_file.h"

#define MARKER    "EPOCHFS"
#define ID_DIGITS (ENTRY_ID_SIZE - 1)

/* What is done with the files of a folder, at path. */
typedef int inspect_fn(const struct cache_group *group, const char *path,
                       struct inventory_file *ret);
typedef int verify_fn(const struct cache_group *group, const char *path, uint64_t *good,
                      uint64_t *bad);
struct file_sort {
    const char *folder;
    inspect_fn *inspect;
    verify_fn *verify;
    int (*remove)(const struct cache_group *group, const char *path);
};

static inspect_fn look_at_both, look_at_made, look_at_entry;
static verify_fn verify_entry;
static int remove_unused(const struct cache_group *group, const char *path);

static const struct file_sort sorts[] = {
    {"staged", look_at_both, staged_verify, staged_remove},
    {"made", look_at_made, made_verify, remove_unused},
    {"unpacked", look_at_entry, verify_entry, remove_unused},
    {"commands", look_at_entry, verify_entry, remove_unused},
    {"rows", look_at_entry, verify_entry, remove_unused},
    {"tables", look_at_entry, verify_entry, remove_unused},
    {"labels", look_at_entry, verify_entry, remove_unused},
    {"batches", look_at_entry, verify_entry, remove_unused},
    {"listing", look_at_entry, verify_entry, remove_unused},
};

static const struct file_sort *sort_of(const struct inventory_file *file)
{
    size_t i = 0;

    while (sorts[i].folder != file->folder)
        i++;
    return &sorts[i];
}

void inventory_release(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->n; i++)
        free(inventory->file[i].source);
    free(inventory->file);
    free(inventory->path);
    *inventory = (struct inventory){0};
}

static void path_of(const struct inventory *inventory, const struct inventory_file *file,
                    char ret[static PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%s/%s/%s%s", inventory->path, file->folder, file->id,
             file->is_part ? ".part" : "");
}

/* "<id>", "<id>.part", or the content of a staged file. */
static bool parse_file_name(const char *name, struct inventory_file *ret, bool *ret_content)
{
    size_t digits = strspn(name, "0123456789abcdef");
    const char *end = name + digits;

    if (digits != ID_DIGITS && digits != STAGED_OLD_DIGITS)
        return false;
    ret->is_foreign = digits == STAGED_OLD_DIGITS;
    ret->is_part = strcmp(end, ".part") == 0;
    *ret_content = ret->is_staged && strcmp(end, STAGED_CONTENT_SUFFIX) == 0;
    if (*end && !ret->is_part && !*ret_content)
        return false;
    memcpy(ret->id, name, digits);
    return true;
}

/* Whether it is in use, or damaged, is known by now. */
static int look_at_made(const struct cache_group *group, const char *path,
                        struct inventory_file *ret)
{
    int r = made_inspect(group, path, ret);

    if (r == -EBADMSG) /* older versions have other headers */
        ret->is_damaged = !ret->is_foreign;
    return r == -EBADMSG || r == -EACCES || r == -EPERM ? 0 : r; /* another user's may be closed */
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* An entry of which it is not known counts as unused: removing an entry is always safe. */
static bool entry_in_use(const struct cache_group *group, const char *path, bool is_part)
{
    AUTO_CLOSE int fd = group_open(group, path, O_RDONLY, NULL);

    if (fd < 0)
        return false;
    return is_part ? file_flock(fd, 0) < 0 : file_has_lock(fd, FILE_LOCK_USE, 1);
}

static int verify_entry(const struct cache_group *group, const char *path, uint64_t *good,
                        uint64_t *bad)
{
    AUTO_CLOSE int fd = -1;
    uint64_t size;
    int r = entry_inspect(group, path, &fd, &size);

    (void)bad;
    if (r == 0)
        r = entry_check(fd, size);
    *good = r == 0;
    return r;
}

/* What a whole entry is, and what it was made from. 0 or -ENOMEM. */
static int look_at_entry(const struct cache_group *group, const char *path,
                         struct inventory_file *ret)
{
    char source[ENTRY_SOURCE_MAX + 1];
    AUTO_CLOSE int fd = -1;
    int r = entry_inspect(group, path, &fd, &ret->size);

    ret->is_damaged = r == -EBADMSG;
    ret->is_foreign = ret->is_foreign || r == -EPROTO;
    if (r < 0 || entry_source(fd, ret->size, source) < 0 || !*source)
        return 0;
    ret->source = strdup(source);
    return ret->source ? 0 : -ENOMEM;
}

static time_t used_at(const struct stat *st)
{
    return st->st_atim.tv_sec > st->st_mtim.tv_sec ? st->st_atim.tv_sec : st->st_mtim.tv_sec;
}

/* A staged file was used when either of its two files was. path: of the one that names it. */
static int look_at_both(const struct cache_group *group, const char *path,
                        struct inventory_file *ret)
{
    char content[PATH_MAX];
    struct stat st;
    int r;

    snprintf(content, sizeof(content), "%s" STAGED_CONTENT_SUFFIX, path);
    if (group_stat(group, content, &st) == 0) {
        ret->used = used_at(&st) > ret->used ? used_at(&st) : ret->used;
        ret->changed = is_later(&st.st_mtim, &ret->changed) ? st.st_mtim : ret->changed;
    }
    r = staged_inspect(group, path, ret);
    if (r == -EPROTO || r == -EINVAL || r == -EACCES || r == -EPERM) {
        ret->in_use = true; /* of another version or user: we know nothing of it, leave it alone */
        return 0;
    }
    return r;
}

static int inventory_add_file(struct inventory *inventory, const struct file_sort *sort,
                              const char *name)
{
    const struct cache_group *group = &inventory->group;
    struct inventory_file file = {.folder = sort->folder,
                                  .is_staged = sort == sorts,
                                  .is_sparse = sort->inspect != look_at_entry};
    char path[PATH_MAX];
    bool is_content;
    struct stat st;
    int r = 0;

    if (!parse_file_name(name, &file, &is_content))
        return 0;
    path_of(inventory, &file, path);
    if (is_content && group_stat(group, path, &st) == 0)
        return 0; /* that one names both */
    snprintf(path, sizeof(path), "%s/%s/%s", inventory->path, sort->folder, name);
    if (group_stat(group, path, &st) < 0)
        return 0; /* it has gone */
    file.is_no_file = !S_ISREG(st.st_mode);
    file.is_foreign = file.is_foreign && !file.is_no_file;
    file.size = (uint64_t)st.st_size;
    file.disk = (uint64_t)st.st_blocks * 512;
    file.uid = st.st_uid;
    file.used = used_at(&st);
    file.changed = st.st_mtim;
    if (array_capacity(&inventory->file, inventory->n, sizeof(file)) < 0)
        return -ENOMEM;
    if (is_content) {
        file.is_no_file = false;
        file.is_damaged = true;
    } else if (file.is_no_file) {
        file.is_damaged = true;
    } else {
        if (!file.is_staged || file.is_part)
            file.in_use = entry_in_use(group, path, file.is_part);
        if (!file.is_part)
            r = sort->inspect(group, path, &file);
    }
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    inventory->file[inventory->n++] = file;
    inventory->disk += file.disk;
    return 0;
}

static int inventory_add_folder(struct inventory *inventory, const struct file_sort *sort)
{
    AUTO_DIR DIR *dir = NULL;
    char path[PATH_MAX];
    const char *name;
    int r = 0;

    snprintf(path, sizeof(path), "%s/%s", inventory->path, sort->folder);
    dir = folder_open(AT_FDCWD, path);
    if (!dir) /* a link is not ours */
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    while (r == 0 && (name = folder_next(dir)))
        r = inventory_add_file(inventory, sort, name);
    return r;
}

/* Listing a folder that has no marker must not turn it into a cache folder. */
static int find_folder(const struct cache_folder *cache, struct diag *d)
{
    char path[PATH_MAX];
    struct stat st;

    if (stat(cache->path, &st) < 0)
        return diag_set(d, -errno, "cache folder %s: %s", cache->path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return diag_set(d, -EPROTO, "cache folder %s: expected a folder, got something else",
                        cache->path);
    if (snprintf(path, sizeof(path), "%s/" MARKER, cache->path) >= (int)sizeof(path))
        return diag_set(d, -ENAMETOOLONG, "cache folder %s: path too long", cache->path);
    if (lstat(path, &st) < 0 && errno != ENOENT)
        return diag_set(d, -errno, "cache folder %s: %s", cache->path, strerror(errno));
    if (lstat(path, &st) < 0)
        return diag_set(d, -EPROTO,
                        "%s: expected a cache folder of epochfs, got a folder without its "
                        "marker " MARKER,
                        cache->path);
    return cache_folder_sub(cache, "", path, sizeof(path), d); /* checks version and owner */
}

/* Those whose source is not known come first; each of them is alone. */
static int compare_url(const void *a, const void *b)
{
    const struct inventory_file *const *x = a, *const *y = b;

    return (*x)->source && (*y)->source ? strcmp((*x)->source, (*y)->source)
                                        : ((*x)->source != NULL) - ((*y)->source != NULL);
}

/* Mark those of files [0, n), all of one URL, that are older than the latest good one. */
static void mark_group(struct inventory_file **file, size_t n)
{
    const struct inventory_file *latest = NULL;

    for (size_t i = 0; i < n; i++)
        if (!file[i]->is_damaged && !file[i]->is_foreign &&
            (!latest || is_later(&file[i]->changed, &latest->changed)))
            latest = file[i];
    for (size_t i = 0; i < n; i++)
        file[i]->is_superseded =
            file[i]->is_foreign || (latest && is_later(&latest->changed, &file[i]->changed));
}

int inventory_mark_superseded(struct inventory *inventory)
{
    AUTO_FREE struct inventory_file **staged =
        calloc(inventory->n + 1, sizeof(struct inventory_file *));
    size_t n = 0;

    if (!staged)
        return -ENOMEM;
    for (size_t i = 0; i < inventory->n; i++) {
        struct inventory_file *file = &inventory->file[i];

        file->is_superseded = file->is_foreign;
        if (file->is_staged && !file->is_part)
            staged[n++] = file;
    }
    qsort(staged, n, sizeof(struct inventory_file *), compare_url);
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && staged[i]->source && !compare_url(&staged[i], &staged[next]);
             next++)
            ;
        mark_group(staged + i, next - i);
    }
    return 0;
}

static int compare_used(const void *a, const void *b)
{
    const struct inventory_file *x = a, *y = b;
    int by_id = strcmp(x->id, y->id);

    return x->used != y->used ? (x->used < y->used ? -1 : 1) : by_id;
}

int inventory_take(const struct cache_folder *cache, struct inventory *ret, struct diag *d)
{
    AUTO_INVENTORY struct inventory inventory = {0};
    int r = find_folder(cache, d);

    if (r < 0)
        return r;
    inventory.group = cache->group;
    inventory.path = strdup(cache->path);
    if (!inventory.path)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_LEN(sorts); i++) {
        r = inventory_add_folder(&inventory, &sorts[i]);
        if (r < 0)
            return diag_set(d, r, "cache folder %s: %s: %s", cache->path, sorts[i].folder,
                            strerror(-r));
    }
    if (inventory.n)
        qsort(inventory.file, inventory.n, sizeof(inventory.file[0]), compare_used);
    r = inventory_mark_superseded(&inventory);
    if (r < 0)
        return r;
    *ret = inventory;
    inventory = (struct inventory){0};
    return 0;
}

int inventory_verify(const struct inventory *inventory, const struct inventory_file *file,
                     uint64_t *good, uint64_t *bad)
{
    const struct cache_group *group = &inventory->group;
    const struct file_sort *sort = sort_of(file);
    char path[PATH_MAX];
    struct stat st;
    int r;

    path_of(inventory, file, path);
    *good = *bad = 0;
    if ((file->is_part && !file->is_no_file) || file->is_foreign)
        return 0;
    if (file->is_no_file) {
        *bad = 1;
        return file_clear_place(group, path, NULL);
    }
    r = group_stat(group, path, &st);
    if (r < 0) {
        if (r != -ENOENT || !file->is_staged || !file->is_damaged)
            return r;
        *bad = 1; /* a content alone */
        return staged_remove(group, path);
    }
    r = sort->verify(group, path, good, bad);
    if (r != -EBADMSG)
        return r;
    r = file->is_staged ? staged_remove(group, path) : group_unlink(group, path);
    *bad = r != -ENOENT;
    return r == -ENOENT ? 0 : r;
}

static int remove_unused(const struct cache_group *group, const char *path)
{
    return entry_in_use(group, path, false) ? -EBUSY : group_unlink(group, path);
}

/* Remove a part whose maker has died. */
static int remove_part(const struct cache_group *group, const char *path)
{
    AUTO_CLOSE int fd = group_open(group, path, O_RDWR, NULL);

    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    if (!group_names(group, path, fd))
        return -EBUSY; /* it was finished, and another process has begun a new one */
    return group_unlink(group, path);
}

int inventory_remove(const struct inventory *inventory, const struct inventory_file *file)
{
    const struct cache_group *group = &inventory->group;
    char path[PATH_MAX];

    path_of(inventory, file, path);
    if (file->is_no_file)
        return file_clear_place(group, path, NULL);
    if (file->is_part)
        return remove_part(group, path);
    return sort_of(file)->remove(group, path);
}

/* ---- what earlier versions left ---- */

static bool has_older(const char *folder)
{
    AUTO_DIR DIR *dir = opendir(folder);
    const char *name;
    bool found = false;

    while (dir && !found && (name = folder_next(dir))) {
        size_t digits = strspn(name, "0123456789abcdef");

        found = digits == STAGED_OLD_DIGITS && strchr(".", name[digits]);
    }
    return found;
}

/* Earlier versions do not say which outputs of commands they use, and open them by name. */
static bool may_remove_older(const struct inventory *inventory, const struct inventory_file *file)
{
    return file->is_foreign && strlen(file->id) == STAGED_OLD_DIGITS && !file->in_use &&
           strcmp(file->folder, "commands") != 0 &&
           (!inventory->group.is_shared || file->uid == geteuid());
}

uint64_t inventory_remove_older(const struct cache_folder *cache, uint64_t *ret_bytes)
{
    AUTO_INVENTORY struct inventory inventory = {0};
    char path[PATH_MAX];
    bool found = false;
    uint64_t n = 0;

    *ret_bytes = 0;
    for (size_t i = 0; i < ARRAY_LEN(sorts) && !found; i++) {
        snprintf(path, sizeof(path), "%s/%s", cache->path, sorts[i].folder);
        found = has_older(path);
    }
    if (!found || inventory_take(cache, &inventory, NULL) < 0)
        return 0;
    for (size_t i = 0; i < inventory.n; i++) {
        const struct inventory_file *file = &inventory.file[i];

        if (!may_remove_older(&inventory, file) || inventory_remove(&inventory, file) < 0)
            continue;
        *ret_bytes += file->disk;
        n++;
    }
    return n;
}
