/* Joined blobs, and those of local files that are read in place. */
#include "cache/source/joined.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file_io.h"
#include "cache/disk/local_file.h"
#include "cache/disk/sha256.h"
#include "cache/source/source.h"

/* A joined blob that is read in place; the others are blobs of a stage. */
struct local_joined {
    struct blob blob;
    struct members members;      /* owned */
    const struct source *source; /* which outlives it */
    int root;                    /* its folder, open */
};

/* ---- any joined blob ---- */

const struct members *joined_members(const struct blob *blob)
{
    const struct members *staged = stage_parts(blob);

    return staged ? staged : &((const struct local_joined *)blob)->members;
}

static const struct blob_ops local_ops;

bool joined_is(const struct blob *blob)
{
    return blob->ops == &local_ops || stage_parts(blob);
}

/* ---- local files, read in place ---- */

/* Open a member. The kernel follows no link that leaves the folder; a link that does, or has an
 * absolute path, is judged by where it leads (cache/source/within.h). */
static int open_member(const struct local_joined *local, const char *path, int *ret_fd)
{
    AUTO_CLOSE int fd = within_openat2(local->root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    char whole[PATH_MAX];
    struct stat st;
    int r;

    if (fd < 0 && fd != -EXDEV && fd != -ENOSYS && fd != -EPERM && fd != -EAGAIN)
        return fd;
    if (fd < 0) {
        if (snprintf(whole, sizeof(whole), "%s/%s", local->source->root, path) >=
            (int)sizeof(whole))
            return -ENAMETOOLONG;
        r = file_open(whole, &fd, &st);
        if (r == 0)
            r = within_check(&local->source->within, fd, whole, path, NULL);
        if (r < 0)
            return r;
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Open a member, read a part of it (len 0: none), and give its descriptor to the caller. The
 * version is compared after the read: what was read before a change is of the version in the table.
 */
static int joined_take_member(const struct local_joined *local, size_t i, void *buf, size_t len,
                              uint64_t off, int *ret_fd, struct diag *d)
{
    const struct members *m = &local->members;
    AUTO_CLOSE int fd = -1;
    char path[PATH_MAX];
    struct stat st;
    int r = members_path(m, i, path, sizeof(path));

    if (r == 0)
        r = open_member(local, path, &fd);
    if (r == 0 && len)
        r = file_pread(fd, buf, len, off);
    if (r == 0 && fstat(fd, &st) < 0)
        r = -errno;
    if (r == 0 && (!st.st_nlink || !joined_version_is(m, i, &st)))
        r = -ESTALE;
    if (r == -ESTALE || r == -ENOENT || r == -ENOTDIR || r == -EXDEV || r == -ELOOP ||
        r == -EISDIR || r == -ESPIPE || r == -ENXIO) {
        source_forget((void *)(uintptr_t)local->source);
        return diag_set(d, -ESTALE,
                        "%s: the file was changed, replaced or removed; mount again to read it as "
                        "it is now",
                        path);
    }
    if (r < 0)
        return diag_set(d, r, "%s: %s", path, strerror(-r));
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int joined_local_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                                  struct diag *d)
{
    const struct local_joined *local = (const struct local_joined *)blob;
    const struct members *m = &local->members;
    size_t i = members_find(m, off);

    if (off != m->member[i].place || len != members_size(m, i))
        return -EOPNOTSUPP;
    return joined_take_member(local, i, NULL, 0, 0, ret_fd, d);
}

static int joined_local_pread(struct read_context *rc, const struct blob *blob, void *buf,
                              size_t len, uint64_t off, struct diag *d)
{
    const struct local_joined *local = (const struct local_joined *)blob;
    const struct members *m = &local->members;
    size_t i = members_find(m, off);

    (void)rc;
    for (uint8_t *at = buf; len; i++) {
        uint64_t in = off - m->member[i].place;
        size_t n = (size_t)min_u64(len, members_size(m, i) - in);
        AUTO_CLOSE int fd = -1;
        int r = n ? joined_take_member(local, i, at, n, in, &fd, d) : 0;

        if (r < 0)
            return r;
        at += n;
        off += n;
        len -= n;
    }
    return 0;
}

static uint64_t local_in_files(const struct blob *blob, uint64_t least)
{
    const struct members *m = joined_members(blob);
    uint64_t sum = 0;

    for (size_t i = 0; i < m->n; i++)
        sum += members_size(m, i) >= least ? members_size(m, i) : 0;
    return sum;
}

static int joined_local_identity(const struct blob *blob, char **ret)
{
    return joined_identity(joined_members(blob), blob_source(blob), ret);
}

static void joined_local_free(struct blob *blob)
{
    struct local_joined *local = (struct local_joined *)blob;

    scope_close(&local->root);
    free(blob->name);
    free(blob->source);
    members_release(&local->members);
    free(local);
}

static const struct blob_ops local_ops = {.pread = joined_local_pread,
                                          .identity = joined_local_identity,
                                          .free = joined_local_free,
                                          .in_files = local_in_files,
                                          .open_file = joined_local_open_file};

/* source_join() of local sources whose files are read in place. */
static int joined_local(const struct source *source, const struct joined_head *head,
                        struct members *members, struct blob **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    struct local_joined *local = calloc(1, sizeof(*local));

    if (!local)
        return -ENOMEM;
    local->members = *members;
    *members = (struct members){0};
    blob = &local->blob;
    *blob = (struct blob){.ops = &local_ops,
                          .name = strdup(*head->name ? head->name : "."),
                          .size = members_end(&local->members),
                          .mtime = head->mtime,
                          .mode = head->mode,
                          .uid = head->uid,
                          .gid = head->gid};
    local->source = source;
    local->root = open(source->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (local->root < 0)
        return diag_set(d, -errno, "%s: %s", source->root, strerror(errno));
    if (!blob->name ||
        text_print(&blob->source, "%s%s%s", source->root, *head->name ? "/" : "", head->name) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(blob);
    return 0;
}

int source_join(const struct source *source, const struct joined_head *head,
                struct members *members, struct blob **ret, struct diag *d)
{
    int r = source->remote->ordered
                ? -EOPNOTSUPP
                : (source->stage ? joined_staged : joined_local)(source, head, members, ret, d);

    members_release(members);
    return r;
}
